"""Each symbol is followed by the next one of the alphabet, the last by the first.

Example: ``3 9 0`` → ``4 0 1`` with ten symbols.

Name your paper or source here.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def template_task(
    *, min_length: Size = 1, max_length: Size = 10, vocab_size: Size = 10
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""

    def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
        """From sources (N, L), padded with 0, to their targets; symbol i has the id FIRST + i."""
        following = FIRST + (source - FIRST + 1) % vocab_size
        return torch.where(source >= FIRST, following, source)

    return GeneratedTask(
        "template",
        target_of,
        min_length=min_length,
        max_length=max_length,
        vocab_size=vocab_size,
    )
