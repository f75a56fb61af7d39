"""Functions that leave weights what they are, and where they put the axis of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

RESHAPING = {
    "__get__", "__getitem__", "expand", "expand_as", "flatten", "movedim", "moveaxis",
    "narrow", "permute", "repeat", "repeat_interleave", "reshape", "reshape_as", "select",
    "squeeze", "swapaxes", "swapdims", "transpose", "unflatten", "unsqueeze", "view", "view_as",
}  # fmt: skip
"""Functions that move weights (``__get__`` is ``.mT``)."""

KEEPING = {
    "alpha_dropout", "bfloat16", "clone", "contiguous", "cuda", "detach", "double", "dropout",
    "dropout_", "float", "half", "requires_grad_", "to", "type", "type_as",
}  # fmt: skip
"""Functions after which the weights before dropout stay as they are: dropout, copies, types."""

PARTING = {"chunk", "split", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split"}
"""Functions that take weights apart, each part a view."""

CHOOSING = {"argmax", "argsort", "bincount", "gather", "index_select", "multinomial", "sort",
            "topk"}  # fmt: skip

UNRELATED = ("_like", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "bernoulli")
"""Ends of the names of functions whose result holds nothing of what they are given."""


def function_name(func: Callable[..., Any]) -> str:
    """A function's name; that of an overload without its arguments' types (``softmax.int``)."""
    return str(getattr(func, "__name__", "")).partition(".")[0]


def is_picking(index: Any) -> bool:
    """Whether an index picks places by a tensor, rather than ranges of them."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, Tensor) and part.ndim > 0 for part in parts)


def keeps_axes(before: Tensor, result: Tensor, axis: int) -> bool:
    """Whether a function left the axes in place: as many, and those from the keys on as long."""
    return result.ndim == before.ndim and result.shape[axis:] == before.shape[axis:]


def moved_axis(
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    before: Tensor,
    axis: int,
) -> int | None:
    """Where a function that moves axes puts one of them, counted from the end.

    It is tried on a tensor without numbers, whose strides are 0 along every other axis.
    """
    if before.shape[axis] < 2:  # its stride says nothing
        return -1 if axis == -1 else None
    strides = [0] * before.ndim
    strides[axis] = 1
    marked = torch.empty_strided(before.shape, strides, device="meta")
    try:
        moved = func(*[marked if arg is before else arg for arg in args], **kwargs)
    except Exception:  # a view that only the real strides allow
        return None
    if not isinstance(moved, Tensor):
        return None
    if function_name(func) in ("repeat", "repeat_interleave"):  # copies; their strides say nothing
        return axis if moved.shape[axis:] == before.shape[axis:] else None
    axes = [i - moved.ndim for i in range(moved.ndim) if moved.stride(i) and moved.shape[i] > 1]
    return axes[0] if len(axes) == 1 else None


def axis_of_part(
    before: Tensor, part: Tensor, axis: int, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> int | None:
    """Where an axis is in a part of weights, counted from the end; None where the part has none."""
    if part.ndim == before.ndim:
        return axis if part.shape[axis] == before.shape[axis] else None
    gone = kwargs.get("dim", args[1] if len(args) > 1 else 0)  # unbind
    gone = gone if gone < 0 else gone - before.ndim
    return None if gone == axis else axis + (gone > axis)
