"""Tables of records: rows are encodings, which differ by encoding and seed alone. Building and comparing are apart."""

from pebench.results.tables.building import build_tables
from pebench.results.tables.row import Row
from pebench.results.tables.settings import changed_settings
from pebench.results.tables.table import REGIME_TEXT, Table

__all__ = ["REGIME_TEXT", "Row", "Table", "build_tables", "changed_settings"]
