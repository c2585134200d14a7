"""Submissions: rows of others beside the published ones, checked and laid out for a pull request."""
