"""Copy: the output equals the input.

The task that shows whether a model can look at one position at a time.

Example: ``3 1 1 2`` → ``3 1 1 2``

Source: Graves, Wayne and Danihelka (2014), "Neural Turing Machines", section 4.1.
"""

from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask


def copy_task(
    *, min_length: Size = 1, max_length: Size = 10, vocab_size: Size = 10
) -> GeneratedTask:
    """Make the copy task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "copy", target_of, min_length=min_length, max_length=max_length, vocab_size=vocab_size
    )


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The source itself.

    Args:
        source: (N, L) ids, padded on the right with 0.
        lengths: (N,) how many ids of each row count.
    """
    return source
