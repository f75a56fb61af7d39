"""Tensors of a model that come from softmaxes, each with a twin that dropout never touched.

What is done to a tensor is done to its twin, but for dropout and changes of type: mixing of heads,
renormalising, a head mask count, since they are what is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_map

from mha_lab.recording.by_hand.followed import Followed, Source, all_become, softmaxes_of
from mha_lab.recording.by_hand.moves import (
    KEEPING,
    PARTING,
    RESHAPING,
    UNRELATED,
    axis_of_part,
    function_name,
    keeps_axes,
    moved_axis,
)
from mha_lab.recording.by_hand.notes import TensorNotes
from mha_lab.recording.by_hand.quotients import DIVIDE, SUMS, axis_of_sum, plain_name
from mha_lab.recording.by_hand.softmaxes import Fate


class FollowedTensors:
    """What is known of tensors that come from softmaxes; forgotten when the model forgets them.

    Args:
        keeps_weights: Whether twins are wanted.
    """

    def __init__(self, *, keeps_weights: bool) -> None:
        self._keeps_weights = keeps_weights
        self._notes: TensorNotes[Followed] = TensorNotes()

    def __len__(self) -> int:
        return len(self._notes)

    def __setitem__(self, tensor: Tensor, followed: Followed) -> None:
        self._notes[tensor] = followed

    def sources(self, values: Any) -> Iterator[Source]:
        """The followed tensors among some values, and in their lists and tuples."""
        return self._notes.among(values)

    def after(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        sources: Sequence[Source],
    ) -> None:
        """Follow what a function that is no product made of weights."""
        name = function_name(func)
        first = self._notes.get(args[0]) if args else None
        if name.endswith(UNRELATED):
            return
        if name == "__setitem__":
            axes = () if first is None else first.axes
            self[args[0]] = Followed(softmaxes_of(sources), axes)  # seen no further
            return
        if isinstance(result, tuple | list):
            self._part(func, args, kwargs, result, sources)
        if not isinstance(result, Tensor):
            return
        if not (result.is_floating_point() or result.is_complex()):
            return
        if name in KEEPING and first is not None:
            self[result] = first
            return
        before, source = next((one for one in sources if one[1].axes), sources[0])
        axes = source.axes
        if name in RESHAPING:
            moved = (moved_axis(func, args, kwargs, before, axis) for axis in axes)
            axes = tuple(axis for axis in moved if axis is not None)
        elif not all(keeps_axes(before, result, axis) for axis in axes) or not axes:
            if result.numel() > before.numel():  # by elements, with values
                all_become(Fate.LOST, sources)
                return
            axes = ()
        divisor = self._notes.get(args[1]) if len(args) > 1 else None
        if (
            axes
            and divisor is not None
            and divisor.summed is not None
            and plain_name(func) == DIVIDE
        ):
            axes = tuple(dict.fromkeys((*axes, divisor.summed)))
        self.move(func, args, kwargs, result, sources, axes)

    def _part(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        results: Sequence[Any],
        sources: Sequence[Source],
    ) -> None:
        """Follow the parts of weights that a function takes apart."""
        before, source = sources[0]
        name, twins = function_name(func), self._moved(func, args, kwargs, sources)
        for i, part in enumerate(results):
            if not isinstance(part, Tensor):
                continue
            axes: tuple[int, ...] = ()
            if name in PARTING:
                moved = (axis_of_part(before, part, axis, args, kwargs) for axis in source.axes)
                axes = tuple(axis for axis in moved if axis is not None)
            twin = twins[i] if isinstance(twins, tuple | list) else None
            axes = axes if twin is not None or not self._keeps_weights else ()
            self[part] = Followed(softmaxes_of(sources), axes, twin)

    def move(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Tensor,
        sources: Sequence[Source],
        axes: tuple[int, ...],
    ) -> None:
        """Do to the twins what was done to the tensors; axes are those of keys in the result."""
        moved = self._moved(func, args, kwargs, sources)
        twin = moved if isinstance(moved, Tensor) else None
        if twin is None and self._keeps_weights:
            axes = ()
        name = plain_name(func)
        summed = axis_of_sum(name, args, kwargs) if name in SUMS else None
        self[result] = Followed(softmaxes_of(sources), axes, twin, summed)

    def _moved(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        sources: Sequence[Source],
    ) -> Any:
        """What a function makes of the twins; None where there are none."""
        if any(one.twin is None for _, one in sources):
            return None
        try:
            return func(*self._twins(args), **self._twins(kwargs))
        except Exception:  # whatever it is, the model has done it, and shall go on
            return None

    def _twins(self, values: Any) -> Any:
        """The same arguments with twins in place of what is followed."""

        def twin_of(value: Any) -> Any:
            found = self._notes.get(value)
            if found is None or found.twin is None:
                return value.detach() if isinstance(value, Tensor) else value
            # A copy, since the function may change it in place; in the type of the model's own.
            return found.twin.to(value.dtype, copy=True)

        return tree_map(twin_of, values)
