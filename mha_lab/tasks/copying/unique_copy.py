"""Unique copy: the output equals the input, in which no symbol stands twice.

Where no symbol repeats, the symbol copied last tells which comes next: a model can copy by
content alone, at any length.

Example: ``3 1 0 2`` → ``3 1 0 2``

Source: Zhou et al. (2023), "What Algorithms can Transformers Learn? A Study in Length
Generalization" (copy with unique tokens).
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.drawing import distinct, padded
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def unique_copy_task(
    *, min_length: Size = 1, max_length: Size = 10, vocab_size: Size = 40
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``.

    Raises:
        ValueError: there are fewer symbols than the longest source needs.
    """

    def sampler(lengths: Tensor, width: int, generator: torch.Generator) -> Tensor:
        return padded(FIRST + distinct(len(lengths), width, vocab_size, generator), lengths)

    return GeneratedTask(
        "unique_copy", target_of, min_length=min_length, max_length=max_length,
        vocab_size=vocab_size, sampler=sampler, settings={"vocab_size": vocab_size},
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The source itself; see ``mha_lab.tasks.generated.Rule``."""
    return source
