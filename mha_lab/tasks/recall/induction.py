"""Induction: at a symbol that stood before, which symbol followed it the last time?

``[A][B] ... [A]`` asks for ``[B]``. Symbols are uniform; nothing is asked at a symbol's first
occurrence.

Example: ``3 1 2 3 1`` → ``_ _ _ 1 2``

Source: Olsson et al. (2022), "In-context Learning and Induction Heads", section "What are
induction heads?".
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask


def induction_task(
    *, min_length: Size = 1, max_length: Size = 20, vocab_size: Size = 10
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "induction", target_of, min_length=min_length, max_length=max_length,
        vocab_size=vocab_size, along=True,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """What followed each symbol's last earlier occurrence; see ``generated.Rule``."""
    target = torch.zeros_like(source)
    followed_by = torch.zeros(len(source), int(source.max()) + 1, dtype=torch.long)
    for column in range(1, source.shape[1]):
        before, now = source[:, column - 1, None], source[:, column, None]
        followed_by.scatter_(1, before, now)
        target[:, column] = followed_by.gather(1, now)[:, 0]
    return target.masked_fill_(source == 0, 0)
