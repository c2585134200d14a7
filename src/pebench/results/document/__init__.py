"""The document of a page: headings, sentences, grids and lists as data, which every writer renders in its own order."""

from pebench.results.document.build import compared_groups, document
from pebench.results.document.model import Across, Comparison, Detail, Document, Quality, Section, SeriesPart

__all__ = [
    "Across", "Comparison", "Detail", "Document", "Quality", "Section", "SeriesPart", "compared_groups", "document",
]  # fmt: skip
