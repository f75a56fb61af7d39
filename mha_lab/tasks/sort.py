"""The sort task by its public name, which the configs of runs hold; it is in ``sorting/``."""

from mha_lab.tasks.sorting.sort import sort_task, target_of

__all__ = ["sort_task", "target_of"]
