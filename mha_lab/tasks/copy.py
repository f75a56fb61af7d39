"""The copy task by its public name, which the configs of runs hold; it is in ``copying/``."""

from mha_lab.tasks.copying.copy import copy_task, target_of

__all__ = ["copy_task", "target_of"]
