"""Where the sort task was until version 0.1; the configs of older runs name it."""

from mha_lab.tasks.sorting.sort import sort_task, target_of

__all__ = ["sort_task", "target_of"]
