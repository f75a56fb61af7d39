"""Repeated-token copy: the output equals the input, which is made of two symbols alone.

Every short stretch stands in the source again and again, so content does not tell what comes next:
the model has to keep its place.

Example: ``0 0 1 0 1 1`` → ``0 0 1 0 1 1``

Source: Zhou et al. (2023), "What Algorithms can Transformers Learn? A Study in Length
Generalization" (copy with repeated tokens, of two symbols).
"""

from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask


def repeated_copy_task(
    *, min_length: Size = 1, max_length: Size = 10, vocab_size: Size = 2
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "repeated_copy", target_of, min_length=min_length, max_length=max_length,
        vocab_size=vocab_size,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The source itself; see ``mha_lab.tasks.generated.Rule``."""
    return source
