"""Duplicate string: the output is the input twice.

Example: ``1 0 1`` → ``1 0 1 1 0 1``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; two
symbols, lengths 1 to 40 in training.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask


def duplicate_string_task(
    *, min_length: Size = 1, max_length: Size = 40, vocab_size: Size = 2
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "duplicate_string", target_of, min_length=min_length, max_length=max_length,
        vocab_size=vocab_size, longest_target=lambda longest: 2 * longest,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N M"]:
    """The source, then the source again; see ``mha_lab.tasks.generated.Rule``."""
    columns = torch.arange(2 * source.shape[1])
    again = source.gather(1, columns % lengths[:, None].clamp(min=1))
    return again.masked_fill_(columns >= 2 * lengths[:, None], 0)
