"""`python -m pebench`."""

from pebench.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
