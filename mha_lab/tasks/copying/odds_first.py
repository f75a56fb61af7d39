"""Odds first: the symbols at odd places come first, then those at even places.

The published text counts places from 1, as here. (The published code has the second, fourth, ...
symbol first; the task is the same up to the order of the halves.)

Example: ``0 0 1 1 0 1 0 1`` → ``0 1 0 0 0 1 1 1``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; two
symbols, lengths 1 to 40 in training.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask


def odds_first_task(
    *, min_length: Size = 1, max_length: Size = 40, vocab_size: Size = 2
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "odds_first", target_of, min_length=min_length, max_length=max_length,
        vocab_size=vocab_size,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """Columns 0, 2, 4, ... of each row, then 1, 3, 5, ...; see ``generated.Rule``."""
    columns = torch.arange(source.shape[1])
    odds = (lengths[:, None] + 1) // 2
    from_column = torch.where(columns < odds, 2 * columns, 2 * (columns - odds) + 1)
    is_inside = columns < lengths[:, None]
    return source.gather(1, from_column.where(is_inside, 0)).masked_fill_(~is_inside, 0)
