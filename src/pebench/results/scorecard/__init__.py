"""The scorecard: every encoding, a row each, on the tasks that tell encodings apart, made from records."""

from pebench.results.scorecard.advice import Advice, advice
from pebench.results.scorecard.build import Entry, Line, Scorecard, scorecard
from pebench.results.scorecard.measures import MEASURES, Measure

__all__ = ["MEASURES", "Advice", "Entry", "Line", "Measure", "Scorecard", "advice", "scorecard"]
