"""The attention distribution of one call, a block of query rows at a time.

With ``max_size`` each block is pooled at once: a long sequence needs memory linear in its length.
"""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from mha_lab.recording.calls.scores import Scores
from mha_lab.recording.pooling import Pool, PooledRows

_BLOCK_ELEMENTS = 2**22
"""How many scores are computed at a time when a map is pooled: 16 MiB in float32."""


def attention_distribution(
    scores: Scores,
    *,
    average_heads: bool = False,
    max_size: int | None = None,
    pool: Pool = "mean",
    visit: Callable[[Tensor, int], None] = lambda block, start: None,
) -> Float[Tensor, "N H L S"]:
    """The weights of a call: softmax of its scores, before dropout.

    Args:
        scores: The call, with as many key heads as query heads.
        average_heads: Whether to return the mean over heads, as one head.
        max_size: The largest length kept along each axis; longer axes are pooled.
        pool: How a block of weights becomes one: its mean or its largest.
        visit: When the map is pooled, called with each block of whole rows (N, H, rows, S) and
            the index of its first row, before it is pooled.

    Returns:
        (N, H, L, S) in ``scores.dtype``, H = 1 when averaged, L and S at most max_size. Each row
        of a map that was not pooled sums to 1, or to 0 where every key is blocked.
    """
    n, h, length, source = scores.shape

    def weights(start: int, stop: int) -> Tensor:
        block = scores.rows(start, stop)
        return block.mean(1, keepdim=True) if average_heads else block

    if max_size is None or max(length, source) <= max_size or 0 in (length, source):
        return weights(0, length)
    step = max(1, _BLOCK_ELEMENTS // max(1, n * h * source))
    rows = PooledRows(length, max_size, pool)
    for start in range(0, length, step):
        block = weights(start, min(start + step, length))
        visit(block, start)
        rows.add(block, start)
        del block  # before the next one is made
    return rows.map()
