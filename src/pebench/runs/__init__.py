"""Runs before and after training: suites, plans, records, costs. Nothing here imports torch at its top."""
