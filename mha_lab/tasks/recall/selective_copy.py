"""Selective copy: the symbols that stand among noise, in their order.

The symbols' places are uniform; there are ``tokens`` of them, or as many as the source is long. Of
``vocab_size`` symbols, 0 is the noise.

Example: ``0 3 0 0 1 2 0`` → ``3 1 2``

Source: Gu and Dao (2023), "Mamba: Linear-Time Sequence Modeling with Selective State Spaces",
section 4.1.1; 16 of 4,096 tokens, 16 symbols with the noise there.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.drawing import padded
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def selective_copy_task(
    *, min_length: Size = 1, max_length: Size = 20, vocab_size: Size = 16, tokens: Size = 6
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``, and how many tokens to copy.

    Raises:
        ValueError: there is no symbol beside the noise.
    """
    if vocab_size < 2:
        raise ValueError(
            f"vocab_size must be at least 2, one symbol and the noise, got {vocab_size}"
        )

    def sampler(lengths: Tensor, width: int, generator: torch.Generator) -> Tensor:
        shape = (len(lengths), width)
        data = torch.randint(FIRST + 1, FIRST + vocab_size, shape, generator=generator)
        lots = torch.rand(shape, generator=generator)
        lots = lots.masked_fill_(torch.arange(width) >= lengths[:, None], 2)
        last = lots.sort(1).values[:, min(tokens, width) - 1, None]
        return padded(data.masked_fill_(lots > last, FIRST), lengths)

    def rule(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N M"]:
        is_data = source > FIRST
        order = (~is_data).byte().argsort(dim=1, stable=True)
        ordered = source.masked_fill(~is_data, 0).gather(1, order)
        return ordered[:, : min(tokens, source.shape[1])]

    return GeneratedTask(
        "selective_copy", rule, min_length=min_length, max_length=max_length,
        vocab_size=vocab_size, sampler=sampler, answers=vocab_size - 1,
        longest_target=lambda longest: min(tokens, longest),
        settings={"vocab_size": vocab_size, "tokens": tokens},
    )  # fmt: skip
