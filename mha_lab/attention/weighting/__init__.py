"""From scores to weights: one weighting a file; see :mod:`mha_lab.attention.parts`."""
