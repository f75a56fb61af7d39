"""Softmaxes that are written out: exponentials of scores, divided by their own sum.

An exponential may be anything: a scale, a gate, a kernel. So nothing is said of one until it, or
its product with values, is divided by a sum of it; ``quotients.py`` knows by which functions. The
logarithm of a sum counts too: ``(s - s.logsumexp(-1, keepdim=True)).exp()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from mha_lab.recording.by_hand import exponential_rules as rules
from mha_lab.recording.by_hand import quotients
from mha_lab.recording.by_hand.exponential_parts import (
    Exponential,
    Normalised,
    Note,
    Part,
    Source,
    exponentials_of,
)
from mha_lab.recording.by_hand.moves import RESHAPING, function_name
from mha_lab.recording.by_hand.notes import TensorNotes
from mha_lab.recording.by_hand.products import PRODUCTS


class ExponentialTracker:
    """Follows exponentials until they are divided by their sums.

    Args:
        keeps_weights: Whether the weights are wanted.
    """

    def __init__(self, *, keeps_weights: bool) -> None:
        self._keeps_weights = keeps_weights
        self._notes: TensorNotes[Note] = TensorNotes()

    def __len__(self) -> int:
        return len(self._notes)

    def sources(self, values: Any) -> Iterator[Source]:
        """The tensors among some values, and in their lists and tuples, that are known."""
        return self._notes.among(values)

    def note_logarithm(self, result: Tensor, axis: int) -> None:
        """Note the result of a softmax's logarithm."""
        self._notes[result] = Note(Part.LOG, axis=axis)

    def follow(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> Normalised | None:
        """Look at one call of a torch function.

        Args:
            func: The function.
            args: What it was called with.
            kwargs: The same, by name.
            result: What it returned.

        Returns:
            What it divided, if it divided exponentials by their sum; else None.
        """
        name = quotients.plain_name(func)
        sources = list(self.sources([*args, *kwargs.values()]))
        divided = rules.divided(name, *map(self._notes.get, (*args, None, None)[:2]))
        if any(tensor is result for tensor, _ in sources):  # in place: it is another thing now
            self._notes.forget(result)
        if divided is not None:
            return divided
        if isinstance(result, tuple | list):
            for part in result if sources else ():
                self._note(part, rules.after(name, args, sources))
        elif isinstance(result, Tensor) and result.is_floating_point() and result.ndim > 0:
            if quotients.is_exponential(name):
                return self._begin(sources, result)
            if name == "normalize" and sources and quotients.is_by_sum(args, kwargs):
                return Normalised(quotients.axis_of_sum(name, args, kwargs))
            self._note(result, self._after(func, name, args, kwargs, result, sources))
        return None

    def _begin(self, sources: Sequence[Source], result: Tensor) -> Normalised | None:
        note = sources[0][1] if sources else None
        if note is not None and note.part is Part.LOG:
            return Normalised(note.axis)
        if note is not None and note.part is Part.LOG_SUM:
            self._notes[result] = replace(note, part=Part.SUM)
        elif result.ndim > 1:
            self._notes[result] = Note(Part.WEIGHTS, (Exponential(tuple(result.shape)),))
        return None

    def _after(
        self,
        func: Callable[..., Any],
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Tensor,
        sources: Sequence[Source],
    ) -> Note | None:
        """What a function makes of what is known."""
        if name == "logsumexp" and args:
            axis = quotients.axis_of_sum(name, args, kwargs)
            of = (Exponential(tuple(args[0].shape)),)
            return None if axis is None else Note(Part.LOG_SUM, of, axis)
        if not sources:
            return None
        if name in PRODUCTS:
            called = function_name(func)
            return rules.multiplied(called, args, sources, keeps_weights=self._keeps_weights)
        if name in quotients.SUMS:
            return self._summed(name, args, kwargs, sources)
        if name == "sub" and len(args) > 1:
            log = rules.logarithm(args[0], self._notes.get(args[1]), result)
            if log is not None:
                return log
        if name in RESHAPING:
            return rules.moved(func, args, kwargs, sources[0])
        return rules.after(name, args, sources)

    def _summed(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        sources: Sequence[Source],
    ) -> Note | None:
        """A sum; of what is summed, the axis of keys is known from now on."""
        if name in quotients.NORMS and not quotients.is_by_sum(args, kwargs):
            return None
        axis = quotients.axis_of_sum(name, args, kwargs)
        for tensor, note in sources:
            if note.part is Part.WEIGHTS and note.axis is None and axis is not None:
                self._notes[tensor] = replace(note, axis=axis)
        if sources[0][1].part not in (Part.WEIGHTS, Part.SUM):
            return None
        return Note(Part.SUM, exponentials_of(sources), axis)

    def _note(self, result: Any, note: Note | None) -> None:
        if isinstance(result, Tensor) and note is not None:
            self._notes[result] = note
