"""Sort: the output is the input in ascending order, repeats kept.

The order is that of the symbols in the vocabulary: 2 comes before 10. A set-to-sequence task, as in
Vinyals, Bengio and Kudlur (2016), "Order Matters: Sequence to sequence for sets", section 4.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.vocabulary import Vocabulary


def sort_task(*, min_length: int = 1, max_length: int = 10, vocab_size: int = 10) -> GeneratedTask:
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
    last = torch.iinfo(source.dtype).max  # padding must stay behind the symbols
    ordered = source.masked_fill(source == Vocabulary.PAD, last).sort(dim=1).values
    return ordered.masked_fill(ordered == last, Vocabulary.PAD)
