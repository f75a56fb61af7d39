"""Attention that is written by hand: a softmax whose result is multiplied with values.

A softmax may be anything. It is attention when its result, whatever was done to it before, is an
operand of a matrix product that sums over its axis (``products.py``); until then it is followed
(``following.py``). A softmax is torch's function, or what amounts to it (``exponentials.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mha_lab.recording.by_hand.exponential_parts import Normalised
from mha_lab.recording.by_hand.exponentials import ExponentialTracker
from mha_lab.recording.by_hand.followed import Followed, Source, all_become
from mha_lab.recording.by_hand.following import FollowedTensors
from mha_lab.recording.by_hand.moves import CHOOSING, function_name, is_picking
from mha_lab.recording.by_hand.notes import TensorNotes
from mha_lab.recording.by_hand.products import COMPOSING, PRODUCTS, Meeting, meeting_with_values
from mha_lab.recording.by_hand.softmaxes import (
    Fate,
    Softmax,
    is_log_softmax,
    may_begin,
    softmax_axis,
)
from mha_lab.recording.heads import with_heads


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
        self._followed = FollowedTensors(keeps_weights=keeps_weights)
        self._met_parts: TensorNotes[bool] = TensorNotes()
        self._exponentials = ExponentialTracker(keeps_weights=keeps_weights)

    def is_concerned(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> bool:
        """Whether a call of a torch function matters here; most do not, so this is cheap."""
        if may_begin(func):
            return True
        known = [notes for notes in (self._followed, self._exponentials) if len(notes)]
        values = [*args, *kwargs.values()]
        return any(True for notes in known for _ in notes.sources(values))

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
        if axis is not None and is_log_softmax(func):
            self._exponentials.note_logarithm(result, axis)
            return None
        if axis is not None:
            given: Tensor = args[0] if args else next(iter(kwargs.values()))
            self._begin(result, axis, -given if function_name(func) == "softmin" else given)
            return None
        sources = list(self._followed.sources([*args, *kwargs.values()]))
        if not sources:
            normalised = self._exponentials.follow(func, args, kwargs, result)
            return None if normalised is None else self._begin_written(normalised, result)
        name = function_name(func)
        if name in CHOOSING or (name == "__getitem__" and is_picking(args[1])):
            all_become(Fate.CHOSE, sources)
        elif name in PRODUCTS:
            return self._multiplied(func, args, kwargs, result, sources)
        else:
            self._followed.after(func, args, kwargs, result, sources)
        return None

    def answered(self, tensors: Sequence[Any]) -> None:
        """Note that a call that is recorded, or counted, was given these tensors."""
        all_become(Fate.ANSWERED, list(self._followed.sources(tensors)))

    def _begin(self, result: Tensor, axis: int | None, scores: Tensor | None = None) -> None:
        """Follow the result of a softmax; of one that is written out no scores are known."""
        softmax = self._count(tuple(result.shape))
        twin = None
        if self._keeps_weights and axis is not None:
            # A row whose every key is blocked has no distribution: softmax says NaN, we say 0.
            if scores is None:
                blocked = result.detach().isnan().all(axis, keepdim=True)
            else:
                blocked = scores.detach() == -torch.inf
            twin = result.detach().masked_fill(blocked, 0.0)
        self._followed[result] = Followed((softmax,), () if axis is None else (axis,), twin)

    def _begin_written(self, normalised: Normalised, result: Tensor) -> Found | None:
        """Count a softmax that is written out; follow its result, if it did not meet values yet."""
        if normalised.met is None:
            self._begin(result, normalised.axis)
            return None
        softmaxes = [self._count(one.shape) for one in normalised.met]
        product = normalised.product
        weights = None if product is None else product.distribution()
        for softmax in softmaxes:
            is_read = weights is not None or not self._keeps_weights
            softmax.becomes(Fate.MULTIPLIED if is_read and len(softmaxes) == 1 else Fate.LOST)
        if product is None or weights is None:
            return None
        return _found(weights, product.meeting, softmaxes)

    def _count(self, shape: tuple[int, ...]) -> Softmax:
        """A new softmax, counted if a module of the model computes it."""
        module = self._module_now()
        softmax = Softmax(module or "", shape)
        if module is not None:
            self.softmaxes.append(softmax)
        return softmax

    def _multiplied(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        sources: Sequence[Source],
    ) -> Found | None:
        """Look at a product with weights among its operands."""
        if len(sources) > 1 and function_name(func) in COMPOSING:  # weights of weights
            axes = (-1,) if -1 in sources[0][1].axes else ()
            self._followed.move(func, args, kwargs, result, sources, axes)
            return None
        mixed = []
        for tensor, source in sources:
            for axis in source.axes:
                meeting = meeting_with_values(function_name(func), args, tensor, axis)
                if isinstance(meeting, Meeting):
                    return self._met(tensor, source, meeting)
                mixed += [] if meeting is None else [meeting]
        if mixed:
            self._followed.move(func, args, kwargs, result, sources, tuple(mixed))
        else:
            all_become(Fate.LOST, sources)
        return None

    def _met(self, tensor: Tensor, source: Followed, meeting: Meeting) -> Found | None:
        """Weights that meet values: once all of them, or each of their parts once."""
        whole = max(math.prod(one.shape) for one in source.softmaxes)
        is_new = any(one.fate < Fate.MULTIPLIED for one in source.softmaxes) or (
            tensor.numel() < whole and self._met_parts.get(tensor) is None
        )
        all_become(Fate.MULTIPLIED, [(tensor, source)])
        if not is_new:
            return None
        self._met_parts[tensor] = True
        weights = None if source.twin is None else meeting.arrange(source.twin)
        return _found(weights, meeting, source.softmaxes)


def _found(weights: Tensor | None, meeting: Meeting, softmaxes: Sequence[Softmax]) -> Found:
    parted = partial(with_heads, shapes=[one.shape for one in softmaxes])
    return Found(parted(weights), parted(meeting.values), softmaxes)
