"""Analysis of a trained model: where content and position are in its vectors, and how attention uses the two."""

from pebench.training.analysis.run import MEASURES, Analysis, analyze

__all__ = ["MEASURES", "Analysis", "analyze"]
