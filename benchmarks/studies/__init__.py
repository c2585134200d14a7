"""Scripts that measure pebench itself, or work out from published records what no suite's page shows.

Each writes one page in results/studies/, which names its command: ``python -m benchmarks.studies.growth --output
FILE``.
"""
