"""Where the copy task was until version 0.1; the configs of older runs name it."""

from mha_lab.tasks.copying.copy import copy_task, target_of

__all__ = ["copy_task", "target_of"]
