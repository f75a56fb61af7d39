"""Sort: the output is the input in ascending order, repeats kept.

The order is that of the symbols in the vocabulary: 2 comes before 10. With five symbols and up to
40 of them it is the bucket sort of Delétang et al. (2023).

Example: ``3 1 2 1`` → ``1 1 2 3``

Source: Vinyals, Bengio and Kudlur (2016), "Order Matters: Sequence to sequence for sets",
section 4.
"""

from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.ordering import ascending


def sort_task(
    *, min_length: Size = 1, max_length: Size = 10, vocab_size: Size = 10
) -> GeneratedTask:
    """Make the sort task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "sort", target_of, min_length=min_length, max_length=max_length, vocab_size=vocab_size
    )


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The source's ids in ascending order.

    Args:
        source: (N, L) ids, padded on the right with 0.
        lengths: (N,) how many ids of each row count.
    """
    return ascending(source)
