"""A question asked of many runs: what a folder ``experiments/NAME`` declares, run and judged."""
