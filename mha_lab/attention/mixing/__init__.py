"""Between heads: one mixing a file; see :mod:`mha_lab.attention.parts`."""
