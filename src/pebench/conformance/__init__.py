"""What every positional encoding is held to, as functions that tests, ``pebench verify`` and mutation tests run."""

from pebench.conformance.bench import SETTINGS, Bench, BrokenError, Setting, Subject
from pebench.conformance.properties import PROPERTIES, Property, check, checks

__all__ = ["PROPERTIES", "SETTINGS", "Bench", "BrokenError", "Property", "Setting", "Subject", "check", "checks"]
