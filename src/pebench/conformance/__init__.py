"""The properties that every positional encoding must have, as functions that tests and ``pebench verify`` run."""

from pebench.conformance.bench import SETTINGS, Bench, Setting, Subject
from pebench.conformance.comparisons import BrokenError
from pebench.conformance.properties import PROPERTIES, Property, check, checks

__all__ = ["PROPERTIES", "SETTINGS", "Bench", "BrokenError", "Property", "Setting", "Subject", "check", "checks"]
