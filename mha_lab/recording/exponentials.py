"""Softmaxes that are written out: exponentials of scores, divided by their own sum.

An exponential may be anything: a scale, a gate, a kernel. So nothing is said of one until it, or
its product with values, is divided by a sum of it; :mod:`mha_lab.recording.quotients` knows by
which functions. The logarithm of a sum counts too: ``(s - s.logsumexp(-1, keepdim=True)).exp()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from torch import Tensor

from mha_lab.recording import quotients
from mha_lab.recording.moves import KEEPING, RESHAPING, function_name, moved_axis
from mha_lab.recording.notes import TensorNotes
from mha_lab.recording.products import PRODUCTS, Meeting, meeting_with_values, summed_axis


class Part(Enum):
    """What a tensor is to the exponentials that it comes from."""

    WEIGHTS = "the exponentials themselves, some of them blocked"
    SUM = "their sum over keys"
    INVERSE = "1 divided by it"
    LOG_SUM = "its logarithm"
    LOG = "the logarithm of weights that sum to 1"
    PRODUCT = "their product with values"


_LASTING = (Part.WEIGHTS, Part.LOG, Part.LOG_SUM, Part.INVERSE, Part.SUM, Part.PRODUCT)
"""Of two parts in one call, the later one is what its result is."""


@dataclass(eq=False)
class Exponential:
    """One call of an exponential function.

    Attributes:
        shape: Of its result.
        has_met: Whether its product with values was divided by its sum.
    """

    shape: tuple[int, ...]
    has_met: bool = False


@dataclass(frozen=True)
class Product:
    """Exponentials that were multiplied with values before they were divided by their sum.

    Attributes:
        weights: The exponentials.
        version: How often they had been changed in place.
        meeting: How they met the values.
    """

    weights: Tensor
    version: int
    meeting: Meeting

    def distribution(self) -> Tensor | None:
        """The weights (..., L, S) that were applied; None where they were changed since."""
        if self.weights._version != self.version:
            return None
        weights = self.meeting.arrange(self.weights)
        return weights / weights.sum(-1, keepdim=True)


@dataclass(frozen=True)
class Normalised:
    """Exponentials that were divided by their sum: a softmax.

    Attributes:
        axis: The axis of keys of the result, counted from the end; None where it is not known.
        met: The exponentials whose product was divided, not they themselves; else None.
        product: That product, if it can be read and its weights are wanted.
    """

    axis: int | None = None
    met: tuple[Exponential, ...] | None = None
    product: Product | None = None


@dataclass(frozen=True)
class _Note:
    part: Part
    of: tuple[Exponential, ...] = ()
    axis: int | None = None
    product: Product | None = None


class ExponentialTracker:
    """Follows exponentials until they are divided by their sums.

    Args:
        keeps_weights: Whether the weights are wanted.
    """

    def __init__(self, *, keeps_weights: bool) -> None:
        self._keeps_weights = keeps_weights
        self._notes: TensorNotes[_Note] = TensorNotes()

    def __bool__(self) -> bool:
        return len(self._notes) > 0

    def knows_any(self, values: Any) -> bool:
        """Whether some of these values come from an exponential or a logarithm of weights."""
        return len(self._notes) > 0 and any(True for _ in self._sources(values))

    def note_logarithm(self, result: Tensor, axis: int) -> None:
        """Note the result of a softmax's logarithm."""
        self._notes[result] = _Note(Part.LOG, axis=axis)

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
        sources = list(self._sources([*args, *kwargs.values()]))
        divided = self._divided(name, args)
        if any(tensor is result for tensor, _ in sources):  # in place: it is another thing now
            self._notes.forget(result)
        if divided is not None:
            return divided
        if isinstance(result, tuple | list):
            for part in result:
                self._note(part, sources, name)
        if not isinstance(result, Tensor) or not result.is_floating_point() or result.ndim < 1:
            return None
        if quotients.is_exponential(name):
            return self._begin(sources, result)
        if name == "logsumexp":
            axis = quotients.axis_of_sum(name, args, kwargs)
            if axis is not None and isinstance(args[0], Tensor):
                self._notes[result] = _Note(
                    Part.LOG_SUM, (Exponential(tuple(args[0].shape)),), axis
                )
            return None
        if not sources:
            return None
        if name == "normalize" and quotients.is_by_sum(args, kwargs):
            return Normalised(quotients.axis_of_sum(name, args, kwargs))
        if name in PRODUCTS:
            self._multiplied(func, args, result, sources)
        elif name in quotients.SUMS:
            self._summed(name, args, kwargs, result, sources)
        elif name == "sub" and (log_sum := self._log_sum(args, result)) is not None:
            self._notes[result] = _Note(Part.LOG, axis=log_sum.axis)
        elif name in RESHAPING:
            self._moved(func, args, kwargs, result, sources)
        else:
            self._note(result, sources, name, args)
        return None

    def _begin(self, sources: Sequence[tuple[Tensor, _Note]], result: Tensor) -> Normalised | None:
        note = sources[0][1] if sources else None
        if note is not None and note.part is Part.LOG:
            return Normalised(note.axis)
        if note is not None and note.part is Part.LOG_SUM:
            self._notes[result] = replace(note, part=Part.SUM)
        elif result.ndim > 1:
            self._notes[result] = _Note(Part.WEIGHTS, (Exponential(tuple(result.shape)),))
        return None

    def _divided(self, name: str, args: Sequence[Any]) -> Normalised | None:
        """What was divided, where it was and by a sum of it."""
        if name not in (quotients.DIVIDE, quotients.MULTIPLY) or len(args) < 2:
            return None
        a, b = self._notes_of(args[:2])
        divisors = (Part.SUM, Part.PRODUCT) if name == quotients.DIVIDE else (Part.INVERSE,)
        if name == quotients.MULTIPLY and a is not None and a.part is Part.INVERSE:
            a, b = b, a
        if a is None or b is None or b.part not in divisors or not _are_alike(a.of, b.of):
            return None
        if a.part is Part.WEIGHTS:
            return Normalised(b.axis if a.axis is None else a.axis)
        if a.part is not Part.PRODUCT or all(one.has_met for one in a.of):
            return None
        for one in a.of:
            one.has_met = True
        return Normalised(met=a.of, product=a.product if b.part is not Part.PRODUCT else None)

    def _multiplied(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        result: Tensor,
        sources: Sequence[tuple[Tensor, _Note]],
    ) -> None:
        of, parts = _joined(sources), {note.part for _, note in sources}
        if not parts <= {Part.WEIGHTS, Part.SUM, Part.PRODUCT} or function_name(func) == "linear":
            return
        if Part.SUM in parts or len(sources) > 1:
            self._notes[result] = _Note(Part.SUM if Part.SUM in parts else Part.PRODUCT, of)
            return
        tensor, note = sources[0]
        product, axis = None, note.axis
        if note.part is Part.WEIGHTS:
            axis = axis or summed_axis(function_name(func), args, tensor)
            meeting = axis and meeting_with_values(function_name(func), args, tensor, axis)
            if self._keeps_weights and isinstance(meeting, Meeting):
                product = Product(tensor.detach(), tensor._version, meeting)
        self._notes[result] = _Note(Part.PRODUCT, of, axis, product)

    def _summed(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Tensor,
        sources: Sequence[tuple[Tensor, _Note]],
    ) -> None:
        if not quotients.is_by_sum(args, kwargs) and name in quotients.NORMS:
            return
        axis = quotients.axis_of_sum(name, args, kwargs)
        for tensor, note in sources:
            if note.part is Part.WEIGHTS and note.axis is None and axis is not None:
                self._notes[tensor] = replace(note, axis=axis)
        if sources[0][1].part in (Part.WEIGHTS, Part.SUM) and result.ndim > 0:
            self._notes[result] = _Note(Part.SUM, _joined(sources), axis)

    def _log_sum(self, args: Sequence[Any], result: Tensor) -> _Note | None:
        """The logarithm of a sum, where it is taken from scores of the shape that was summed."""
        note = self._notes.get(args[1]) if len(args) > 1 else None
        if note is None or note.part is not Part.LOG_SUM or not isinstance(args[0], Tensor):
            return None
        is_of_them = tuple(args[0].shape) == tuple(result.shape) == note.of[0].shape
        return note if is_of_them else None

    def _moved(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Tensor,
        sources: Sequence[tuple[Tensor, _Note]],
    ) -> None:
        tensor, note = sources[0]
        if note.part in (Part.WEIGHTS, Part.LOG) and note.axis is not None:
            note = replace(note, axis=moved_axis(func, args, kwargs, tensor, note.axis))
        self._notes[result] = note

    def _note(
        self,
        result: Any,
        sources: Sequence[tuple[Tensor, _Note]],
        name: str,
        args: Sequence[Any] = (),
    ) -> None:
        """Note what another function made, if it is still such a part."""
        if not isinstance(result, Tensor) or not sources:
            return
        tensor, note = max(sources, key=lambda source: _LASTING.index(source[1].part))
        part = quotients.part_after(name, note.part.name, is_second=_is_second(args, tensor))
        if part is None or (name == "add" and note.part is Part.WEIGHTS and _are_tensors(args)):
            return
        product = note.product if name in KEEPING else None
        self._notes[result] = _Note(Part[part], _joined(sources), note.axis, product)

    def _notes_of(self, values: Sequence[Any]) -> list[_Note | None]:
        return [self._notes.get(value) for value in values]

    def _sources(self, values: Any) -> Iterator[tuple[Tensor, _Note]]:
        for value in values:
            if isinstance(value, list | tuple):
                yield from self._sources(value)
            elif (note := self._notes.get(value)) is not None:
                yield value, note


def _are_alike(a: Sequence[Exponential], b: Sequence[Exponential]) -> bool:
    """Whether a sum is one of these exponentials, or of others like them.

    Much code computes ``s.exp() / s.exp().sum(-1, keepdim=True)``, and ``s`` anew each time.
    """
    return bool({one.shape for one in a} & {one.shape for one in b})


def _joined(sources: Sequence[tuple[Tensor, _Note]]) -> tuple[Exponential, ...]:
    return tuple(dict.fromkeys(one for _, note in sources for one in note.of))


def _is_second(args: Sequence[Any], tensor: Tensor) -> bool:
    return len(args) > 1 and args[1] is tensor and args[0] is not tensor


def _are_tensors(args: Sequence[Any]) -> bool:
    return len(args) > 1 and all(isinstance(arg, Tensor) for arg in args[:2])
