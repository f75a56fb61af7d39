"""What functions make of exponentials, their sums, and their products with values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from mha_lab.recording.by_hand.exponential_parts import (
    Exponential,
    Normalised,
    Note,
    Part,
    Product,
    Source,
    exponentials_of,
)
from mha_lab.recording.by_hand.moves import KEEPING, moved_axis
from mha_lab.recording.by_hand.products import Meeting, meeting_with_values, summed_axis
from mha_lab.recording.by_hand.quotients import DIVIDE, MULTIPLY, part_after

_LASTING = list(Part)
"""Of two parts in one call, the later one is what its result is."""


def divided(name: str, a: Note | None, b: Note | None) -> Normalised | None:
    """What was divided, where two operands are exponentials, or their product, and a sum of them.

    Args:
        name: The function's plain name.
        a: What is known of its first argument.
        b: Of its second.
    """
    if name == MULTIPLY and a is not None and a.part is Part.INVERSE:
        a, b = b, a
    if a is None or b is None or not _are_alike(a.of, b.of):
        return None
    divisors = {DIVIDE: (Part.SUM, Part.PRODUCT), MULTIPLY: (Part.INVERSE,)}.get(name, ())
    if b.part not in divisors:
        return None
    if a.part is Part.WEIGHTS:
        return Normalised(b.axis if a.axis is None else a.axis)
    if a.part is not Part.PRODUCT or all(one.has_met for one in a.of):
        return None
    for one in a.of:
        one.has_met = True
    return Normalised(met=a.of, product=a.product if b.part is not Part.PRODUCT else None)


def _are_alike(a: Sequence[Exponential], b: Sequence[Exponential]) -> bool:
    """Whether a sum is one of these exponentials, or of others like them.

    Much code computes ``s.exp() / s.exp().sum(-1, keepdim=True)``, and ``s`` anew each time.
    """
    return bool({one.shape for one in a} & {one.shape for one in b})


def multiplied(
    name: str, args: Sequence[Any], sources: Sequence[Source], *, keeps_weights: bool
) -> Note | None:
    """What a product of matrices is, some of whose operands are known; None if nothing.

    Args:
        name: The function's name.
        args: What it was called with.
        sources: The operands that are known.
        keeps_weights: Whether the weights are wanted.
    """
    of, parts = exponentials_of(sources), {note.part for _, note in sources}
    if not parts <= {Part.WEIGHTS, Part.SUM, Part.PRODUCT} or name == "linear":
        return None
    if Part.SUM in parts or len(sources) > 1:
        return Note(Part.SUM if Part.SUM in parts else Part.PRODUCT, of)
    tensor, note = sources[0]
    if note.part is not Part.WEIGHTS:
        return Note(Part.PRODUCT, of, note.axis)
    axis = note.axis or summed_axis(name, args, tensor)
    meeting = None if axis is None else meeting_with_values(name, args, tensor, axis)
    is_read = keeps_weights and isinstance(meeting, Meeting)
    product = Product(tensor.detach(), tensor._version, meeting) if is_read else None  # type: ignore[arg-type]
    return Note(Part.PRODUCT, of, axis, product)


def logarithm(scores: Any, note: Note | None, result: Tensor) -> Note | None:
    """What scores are, less something known: the logarithm of weights if that is of their sum."""
    if note is None or note.part is not Part.LOG_SUM or not isinstance(scores, Tensor):
        return None
    is_of_them = tuple(scores.shape) == tuple(result.shape) == note.of[0].shape
    return Note(Part.LOG, axis=note.axis) if is_of_them else None


def moved(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], source: Source
) -> Note:
    """What a tensor is after a function that moves its axes."""
    tensor, note = source
    if note.part not in (Part.WEIGHTS, Part.LOG) or note.axis is None:
        return note
    return replace(note, axis=moved_axis(func, args, kwargs, tensor, note.axis))


def after(name: str, args: Sequence[Any], sources: Sequence[Source]) -> Note | None:
    """What any other function makes of what is known; None if it is no such part any more."""
    tensor, note = max(sources, key=lambda source: _LASTING.index(source[1].part))
    is_second = len(args) > 1 and args[1] is tensor and args[0] is not tensor
    part = part_after(name, note.part.name, is_second=is_second)
    is_sum_of_two = name == "add" and all(isinstance(arg, Tensor) for arg in args[:2])
    if part is None or (is_sum_of_two and note.part is Part.WEIGHTS):
        return None
    product = note.product if name in KEEPING else None
    return Note(Part[part], exponentials_of(sources), note.axis, product)
