"""A trained run used again: tested, asked about sequences, and tried on other lengths."""

from mha_lab.evaluation.trained import evaluate, load_trained

__all__ = ["evaluate", "load_trained"]
