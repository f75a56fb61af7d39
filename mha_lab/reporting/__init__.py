"""Comparisons of runs: from run folders to tables, figures and pages; without torch and Hydra.

The way of the data: ``finding`` (which folders) → ``reading`` (a folder as a :class:`Run`) →
``grouping`` and ``statistics`` (mean ± standard deviation over seeds) → ``contents`` (what the
report says, as a ``document``) → ``markdown`` and ``page`` → ``writing``.
"""
