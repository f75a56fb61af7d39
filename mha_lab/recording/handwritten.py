"""Attention that is written by hand: a softmax whose result is multiplied with values.

A softmax may be anything. It is attention when its result, whatever was done to it before, is an
operand of a matrix product that sums over its axis (:mod:`mha_lab.recording.products`); until then
it is followed, and it is forgotten as soon as the model forgets it.

What is recorded is a twin of the model's tensor, to which the same is done, but for dropout and
changes of type: mixing of heads, renormalising, a head mask count, since they are what is applied.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from mha_lab.recording.heads import with_heads
from mha_lab.recording.products import COMPOSING, PRODUCTS, meeting_with_values
from mha_lab.recording.softmaxes import (
    Fate,
    Softmax,
    is_log_softmax,
    is_softmax,
    softmax_axis,
)

_RESHAPING = {
    "__get__", "__getitem__", "expand", "expand_as", "flatten", "movedim", "moveaxis",
    "narrow", "permute", "repeat", "repeat_interleave", "reshape", "reshape_as", "select",
    "squeeze", "swapaxes", "swapdims", "transpose", "unflatten", "unsqueeze", "view", "view_as",
}  # fmt: skip
"""Functions that move weights (``__get__`` is ``.mT``)."""

_KEEPING = {
    "alpha_dropout", "bfloat16", "clone", "contiguous", "cuda", "detach", "double", "dropout",
    "dropout_", "float", "half", "requires_grad_", "to", "type", "type_as",
}  # fmt: skip
"""Functions after which the twin stays as it is: dropout, copies, other types."""

_CHOOSING = {"argmax", "argsort", "bincount", "gather", "index_select", "multinomial", "sort",
             "topk"}  # fmt: skip

_UNRELATED = ("_like", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "bernoulli")
"""Ends of the names of functions whose result holds nothing of what they are given."""


@dataclass(frozen=True)
class Found:
    """Weights that meet values.

    Attributes:
        weights: (..., L, S), before dropout; None where they were only counted.
        values: (..., S, D).
        softmaxes: Those that the weights come from.
    """

    weights: Tensor | None
    values: Tensor | None
    softmaxes: Sequence[Softmax]


@dataclass(frozen=True)
class _Followed:
    """A tensor of the model that holds, or comes from, the results of softmaxes.

    Attributes:
        tensor: The tensor.
        softmaxes: The softmaxes.
        key_axis: Its axis of keys, counted from the end; None where that is not known.
        twin: The same without dropout; None where nothing is recorded.
    """

    tensor: weakref.ref[Tensor]
    softmaxes: tuple[Softmax, ...]
    key_axis: int | None
    twin: Tensor | None


class SoftmaxTracker:
    """Follows the results of softmaxes until they are multiplied with values.

    Args:
        keeps_weights: Whether they are wanted; else softmaxes are only counted.
        module_now: The path of the module that is running; None outside of the model.
    """

    def __init__(self, *, keeps_weights: bool, module_now: Callable[[], str | None]) -> None:
        self.softmaxes: list[Softmax] = []
        self._keeps_weights = keeps_weights
        self._module_now = module_now
        self._followed: dict[int, _Followed] = {}
        self._logarithms: dict[int, tuple[weakref.ref[Tensor], int]] = {}  # with the keys' axis

    def is_concerned(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> bool:
        """Whether a call of a torch function matters here; most do not, so this is cheap."""
        if is_softmax(func) or is_log_softmax(func):
            return True
        if self._logarithms and getattr(func, "__name__", "") == "exp":
            return True
        return bool(self._followed) and any(True for _ in self._sources([*args, *kwargs.values()]))

    def follow(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> Found | None:
        """Look at one call of a torch function.

        Args:
            func: The function.
            args: What it was called with.
            kwargs: The same, by name.
            result: What it returned.

        Returns:
            The weights when the call multiplies them with values for the first time, else None.
        """
        axis = softmax_axis(func, args, kwargs, result)
        if axis is not None:
            given: Tensor = args[0] if args else next(iter(kwargs.values()))
            if is_log_softmax(func):
                self._note_logarithm(result, axis)
            else:
                self._begin(-given if func.__name__ == "softmin" else given, result, axis)
            return None
        logarithm = args[0] if args and getattr(func, "__name__", "") == "exp" else None
        reference, axis = self._logarithms.get(id(logarithm), (None, 0))
        if reference is not None and reference() is logarithm:
            self._begin(args[0], result, axis)
            return None
        sources = list(self._sources([*args, *kwargs.values()]))
        if not sources:
            return None
        name = getattr(func, "__name__", "")
        if name in _CHOOSING or (name == "__getitem__" and _is_picking(args[1])):
            _all_become(Fate.CHOSE, sources)
        elif name in PRODUCTS:
            return self._multiplied(func, args, kwargs, result, sources)
        else:
            self._moved(func, name, args, kwargs, result, sources)
        return None

    def _note_logarithm(self, result: Tensor, axis: int) -> None:
        key, noted = id(result), self._logarithms

        def forget(reference: weakref.ref[Tensor]) -> None:
            if key in noted and noted[key][0] is reference:
                del noted[key]

        noted[key] = (weakref.ref(result, forget), axis)

    def answered(self, tensors: Sequence[Any]) -> None:
        """Note that a call that is recorded, or counted, was given these tensors."""
        _all_become(Fate.ANSWERED, list(self._sources(tensors)))

    def _begin(self, scores: Tensor, result: Tensor, axis: int) -> None:
        module = self._module_now()
        softmax = Softmax(module or "", tuple(result.shape))
        if module is not None:
            self.softmaxes.append(softmax)
        twin = None
        if self._keeps_weights:
            # A row whose every key is blocked has no distribution: softmax says NaN, we say 0.
            twin = result.detach().masked_fill(scores.detach() == -torch.inf, 0.0)
        self._remember(result, (softmax,), axis, twin)

    def _multiplied(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        sources: list[_Followed],
    ) -> Found | None:
        """Look at a product with weights among its operands."""
        if len(sources) > 1 and func.__name__ in COMPOSING:  # weights of weights
            axis = -1 if sources[0].key_axis == -1 else None
            self._move(func, args, kwargs, result, sources, axis)
            return None
        for source in sources:
            tensor = source.tensor()
            if source.key_axis is None or tensor is None:
                continue
            meeting = meeting_with_values(func.__name__, args, tensor, source.key_axis)
            if isinstance(meeting, int):
                self._move(func, args, kwargs, result, sources, meeting)
                return None
            if meeting is None:
                continue
            is_first = any(one.fate < Fate.MULTIPLIED for one in source.softmaxes)
            _all_become(Fate.MULTIPLIED, [source])
            if not is_first:
                return None
            weights = None if source.twin is None else meeting.arrange(source.twin)
            parted = partial(with_heads, shapes=[one.shape for one in source.softmaxes])
            return Found(parted(weights), parted(meeting.values), source.softmaxes)
        _all_become(Fate.LOST, sources)
        return None

    def _moved(
        self,
        func: Callable[..., Any],
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        sources: list[_Followed],
    ) -> None:
        """Look at any other function of weights."""
        first = self._find(args[0]) if args else None
        if name.endswith(_UNRELATED):
            return
        if name == "__setitem__":
            target = args[0]
            axis = None if first is None else first.key_axis
            self._remember(target, _softmaxes(sources), axis, None)  # seen no further
            return
        if not isinstance(result, Tensor):
            for part in result if isinstance(result, tuple | list) else ():
                if isinstance(part, Tensor):
                    self._remember(part, _softmaxes(sources), None, None)
            return
        if not (result.is_floating_point() or result.is_complex()):
            return
        if name in _KEEPING and first is not None:
            self._remember(result, first.softmaxes, first.key_axis, first.twin)
            return
        source = next((one for one in sources if one.key_axis is not None), sources[0])
        axis = source.key_axis
        before = source.tensor()
        if axis is not None and before is not None:
            if name in _RESHAPING:
                axis = _moved_axis(func, args, kwargs, before, axis)
            elif not _keeps_axes(before, result, axis):
                axis = None
                if result.numel() > before.numel():  # by elements, with values
                    _all_become(Fate.LOST, sources)
                    return
        self._move(func, args, kwargs, result, sources, axis)

    def _move(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        sources: list[_Followed],
        axis: int | None,
    ) -> None:
        """Do to the twins what was done to the tensors."""
        twin = None
        if all(one.twin is not None for one in sources):
            try:
                moved = func(*self._twins(args), **self._twins(kwargs))
                twin = moved if isinstance(moved, Tensor) else None
            except Exception:  # whatever it is, the model has done it, and shall go on
                twin = None
        if twin is None and self._keeps_weights:
            axis = None
        self._remember(result, _softmaxes(sources), axis, twin)

    def _twins(self, values: Any) -> Any:
        """The same arguments with twins in place of what is followed."""

        def twin_of(value: Any) -> Any:
            found = self._find(value)
            if found is None or found.twin is None:
                return value.detach() if isinstance(value, Tensor) else value
            # A copy, since the function may change it in place; in the type of the model's own.
            return found.twin.to(value.dtype, copy=True)

        return tree_map(twin_of, values)

    def _sources(self, values: Any) -> Iterator[_Followed]:
        for value in values:
            if isinstance(value, list | tuple):
                yield from self._sources(value)
            elif (found := self._find(value)) is not None:
                yield found

    def _find(self, tensor: Any) -> _Followed | None:
        found = self._followed.get(id(tensor))
        return found if found is not None and found.tensor() is tensor else None

    def _remember(
        self, tensor: Tensor, softmaxes: tuple[Softmax, ...], axis: int | None, twin: Tensor | None
    ) -> None:
        key, followed = id(tensor), self._followed

        def forget(reference: weakref.ref[Tensor]) -> None:
            if key in followed and followed[key].tensor is reference:
                del followed[key]

        followed[key] = _Followed(weakref.ref(tensor, forget), softmaxes, axis, twin)


def _softmaxes(sources: Sequence[_Followed]) -> tuple[Softmax, ...]:
    return tuple(dict.fromkeys(one for source in sources for one in source.softmaxes))


def _all_become(fate: Fate, sources: Sequence[_Followed]) -> None:
    for one in _softmaxes(sources):
        one.becomes(fate)


def _is_picking(index: Any) -> bool:
    """Whether an index picks places by a tensor, rather than ranges of them."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, Tensor) and part.ndim > 0 for part in parts)


def _keeps_axes(before: Tensor, result: Tensor, axis: int) -> bool:
    """Whether a function left the axes in place: as many, and those from the keys on as long."""
    return result.ndim == before.ndim and result.shape[axis:] == before.shape[axis:]


def _moved_axis(
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
    if func.__name__ in ("repeat", "repeat_interleave"):  # copies; their strides say nothing
        return axis if moved.shape[axis:] == before.shape[axis:] else None
    axes = [i - moved.ndim for i in range(moved.ndim) if moved.stride(i) and moved.shape[i] > 1]
    return axes[0] if len(axes) == 1 else None
