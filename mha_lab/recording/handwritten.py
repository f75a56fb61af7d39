"""Attention that is written by hand: a softmax that is multiplied with values.

A softmax over the last axis may be anything. It is attention when its result, perhaps after
dropout, a cast, a mask or a change of shape, is an operand of a matrix product; until then it is
only followed, and it is forgotten as soon as the model forgets it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_RESHAPING = {
    "__get__", "__getitem__", "contiguous", "expand", "expand_as", "flatten", "movedim", "permute",
    "repeat", "repeat_interleave", "reshape", "reshape_as", "squeeze", "swapaxes", "swapdims",
    "transpose", "unflatten", "unsqueeze", "view", "view_as",
}  # fmt: skip
"""Functions that move weights (``__get__`` is ``.mT``); what is recorded moves with them."""

_KEEPING = {
    "__imul__", "__mul__", "__rmul__", "__truediv__", "alpha_dropout", "bfloat16", "clone",
    "detach", "div", "double", "dropout", "dropout_", "float", "half", "masked_fill",
    "masked_fill_", "mul", "mul_", "nan_to_num", "to", "type", "type_as",
}  # fmt: skip
"""Functions that change weights (dropout, a head mask) or their type; what is recorded stays."""

_PRODUCTS = {"__matmul__", "__rmatmul__", "baddbmm", "bmm", "einsum", "matmul", "mm"}


@dataclass
class _Softmax:
    """One softmax of the model, under whatever shapes its result goes by."""

    is_recorded: bool = False


@dataclass(frozen=True)
class _Followed:
    """A tensor of the model that holds the weights of a softmax."""

    tensor: weakref.ref[Tensor]
    weights: Tensor
    softmax: _Softmax


class SoftmaxTracker:
    """Follows the results of softmaxes until they are multiplied with values."""

    def __init__(self) -> None:
        self._followed: dict[int, _Followed] = {}

    def follow(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> Tensor | None:
        """Look at one call of a torch function.

        Args:
            func: The function.
            args: What it was called with.
            kwargs: The same, by name.
            result: What it returned.

        Returns:
            The weights (..., L, S) before dropout when the call multiplies them with values for
            the first time, else None.
        """
        name = getattr(func, "__name__", "")
        if is_softmax(func, args, kwargs, result):
            scores = args[0] if args else kwargs["input"]
            # A copy, since the model may change its own in place.
            weights = result.detach().masked_fill(scores.detach() == -torch.inf, 0.0)
            self._remember(result, weights, _Softmax())
        elif not self._followed or not args:
            return None
        elif name in _PRODUCTS:
            return self._multiplied(name, args)
        elif isinstance(result, Tensor) and (source := self._find(args[0])) is not None:
            if name in _RESHAPING:
                moved = func(source.weights, *args[1:], **kwargs)
                if isinstance(moved, Tensor):
                    self._remember(result, moved, source.softmax)
            elif name in _KEEPING:
                self._remember(result, source.weights, source.softmax)
        return None

    def _multiplied(self, name: str, args: Sequence[Any]) -> Tensor | None:
        """The weights among the operands of a matrix product."""
        operands = [*args]
        if name == "einsum":  # equation, then operands or a list of them
            operands = list(args[1]) if isinstance(args[1], list | tuple) else operands[1:]
        elif name == "baddbmm":  # what is added comes first
            operands = operands[1:]
        elif name == "__rmatmul__":
            operands = operands[::-1]
        for place, operand in enumerate(operands):
            found = self._find(operand)
            if found is None or found.softmax.is_recorded or found.weights.ndim < 2:
                continue
            found.softmax.is_recorded = True
            values_come_first = place == 1 and name != "einsum"
            return found.weights.transpose(-2, -1) if values_come_first else found.weights
        return None

    def _find(self, tensor: Any) -> _Followed | None:
        found = self._followed.get(id(tensor))
        return found if found is not None and found.tensor() is tensor else None

    def _remember(self, tensor: Tensor, weights: Tensor, softmax: _Softmax) -> None:
        key, followed = id(tensor), self._followed

        def forget(reference: weakref.ref[Tensor]) -> None:
            if key in followed and followed[key].tensor is reference:
                del followed[key]

        followed[key] = _Followed(weakref.ref(tensor, forget), weights, softmax)


def is_softmax(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> bool:
    """Whether a call is a softmax of a score tensor (at least two axes) over its last axis."""
    if getattr(func, "__name__", "") != "softmax" or not isinstance(result, Tensor):
        return False
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    return result.ndim >= 2 and dim in (-1, result.ndim - 1)
