"""Reverse string: the output is the input backwards.

Example: ``0 1 1 0 1 0`` → ``0 1 0 1 1 0``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; two
symbols, lengths 1 to 40 in training.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask


def reverse_task(
    *, min_length: Size = 1, max_length: Size = 40, vocab_size: Size = 2
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "reverse", target_of, min_length=min_length, max_length=max_length, vocab_size=vocab_size
    )


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The source's ids, last one first; see ``mha_lab.tasks.generated.Rule``."""
    columns = lengths[:, None] - 1 - torch.arange(source.shape[1])
    return source.gather(1, columns.clamp(min=0)).masked_fill_(columns < 0, 0)
