"""Local count: at each symbol, how often it stands among the last ``window`` symbols, itself one.

Example: ``x0 x1 x0 x0 x0 x1`` → ``1 1 2 3 3 1``

Source: Behrens, Biggio and Zdeborová (2024), "Counting in Small Transformers: The Delicate
Interplay between Attention and Feed-Forward Layers" (the histogram task, here over a window).
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def local_count_task(
    *, min_length: Size = 1, max_length: Size = 20, vocab_size: Size = 4, window: Size = 4
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``, and how far back is counted."""

    def rule(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
        count = torch.zeros_like(source)
        for back in range(min(window, source.shape[1])):
            count[:, back:] += source[:, back:] == source[:, : source.shape[1] - back]
        return (FIRST + vocab_size - 1 + count).masked_fill_(source == 0, 0)

    return GeneratedTask(
        "local_count", rule, min_length=min_length, max_length=max_length, vocab_size=vocab_size,
        symbols=[*(f"x{n}" for n in range(vocab_size)), *(str(n + 1) for n in range(window))],
        along=True, answers=window, settings={"window": window},
    )  # fmt: skip
