"""Who may see whom: one pattern a file; see :mod:`mha_lab.attention.parts`."""
