"""Tensors of attention calls, whatever their axes, as (N, H, ., .)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

HeadsOf = Callable[[int], int | None]
"""H of a tensor (N·H, L, D), from its N·H; None when the caller does not tell."""


def as_heads(tensor: Tensor, heads_of: HeadsOf) -> Tensor:
    """Give a tensor (..., A, B) the four axes (N, H, A, B).

    Args:
        tensor: (A, B), (N·H, A, B), (N, H, A, B), or with more leading axes, which join H.
        heads_of: Splits the first of three axes, batch-major.

    Returns:
        A view where possible.
    """
    if tensor.ndim == 3:
        heads = heads_of(tensor.shape[0]) or 1
        return tensor.reshape(tensor.shape[0] // heads, heads, *tensor.shape[1:])
    if tensor.ndim > 4:
        return tensor.flatten(1, -3)
    return tensor.reshape((1,) * (4 - tensor.ndim) + tensor.shape)


def with_heads(tensor: Tensor | None, shapes: Sequence[Sequence[int]]) -> Tensor | None:
    """Part samples and heads again that were joined after the softmax, as ``torch.bmm`` wants it.

    Args:
        tensor: (N·H, A, B), or any other, which stays as it is.
        shapes: Of the softmaxes that it comes from: (N, H, L, S), or any other.

    Returns:
        (N, H, A, B) where all softmaxes had the same N and H, and N·H is the first axis.
    """
    leading = {tuple(shape[:2]) if len(shape) == 4 else () for shape in shapes}
    first = leading.pop() if len(leading) == 1 else ()
    if tensor is None or tensor.ndim != 3 or not first or first[0] * first[1] != tensor.shape[0]:
        return tensor
    return tensor.reshape(*first, *tensor.shape[1:])
