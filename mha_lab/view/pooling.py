"""Larger maps made smaller: weights by the mean of blocks, tokens by a block's first and last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PADDING = ("", "<pad>", "[PAD]", "<PAD>", "<|pad|>", "[pad]")
"""Labels of places that are no tokens: none, and what tokenizers call padding."""


def blocks(length: int, size: int) -> list[tuple[int, int]]:
    """Where each of ``size`` blocks of a sequence begins and ends; those of adaptive pooling."""
    return [(i * length // size, -(-(i + 1) * length // size)) for i in range(size)]


def pool_weights(
    weights: NDArray[np.float32], max_size: int, pool: str = "mean"
) -> NDArray[np.float32]:
    """Shrink maps (..., L, S) to at most max_size along each axis, by "mean" or "max" of blocks."""
    for axis in (-2, -1):
        length = weights.shape[axis]
        if length > max_size and pool == "max":
            rows = np.moveaxis(weights, axis, 0)
            largest = [rows[start:stop].max(0) for start, stop in blocks(length, max_size)]
            weights = np.moveaxis(np.stack(largest), 0, axis)
        elif length > max_size:
            means = np.zeros((max_size, length), np.float32)
            for row, (start, stop) in zip(means, blocks(length, max_size), strict=True):
                row[start:stop] = 1 / (stop - start)
            weights = means @ weights if axis == -2 else weights @ means.T
    return weights


def pool_tokens(tokens: Sequence[str], length: int, size: int) -> list[str]:
    """Label ``size`` blocks of a sequence of ``length`` tokens, by first and last token.

    Tokens that are missing at the end, as those of padding often are, have empty labels.
    """
    labels = [str(token) for token in tokens[:length]] + [""] * (length - len(tokens))
    if size == length:
        return labels
    ends = [(labels[start], labels[stop - 1]) for start, stop in blocks(length, size)]
    return [f"{first}…{last}" if first or last else "" for first, last in ends]
