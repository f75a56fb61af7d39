"""Tensors of a model that come from softmaxes, each with a twin that dropout never touched.

What is done to a tensor is done to its twin, but for dropout and changes of type: mixing of heads,
renormalising, a head mask count, since they are what is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_map

from mha_lab.recording.moves import KEEPING, RESHAPING, UNRELATED, keeps_axes, moved_axis
from mha_lab.recording.notes import TensorNotes
from mha_lab.recording.softmaxes import Fate, Softmax


@dataclass(frozen=True)
class Followed:
    """What is known of a tensor that holds, or comes from, the results of softmaxes.

    Attributes:
        softmaxes: The softmaxes.
        key_axis: Its axis of keys, counted from the end; None where that is not known.
        twin: The same without dropout; None where nothing is recorded.
    """

    softmaxes: tuple[Softmax, ...]
    key_axis: int | None
    twin: Tensor | None


Source = tuple[Tensor, Followed]
"""A tensor, and what is known of it."""


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
        for value in values:
            if isinstance(value, list | tuple):
                yield from self.sources(value)
            elif (found := self._notes.get(value)) is not None:
                yield value, found

    def after(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        sources: Sequence[Source],
    ) -> None:
        """Follow what a function that is no product made of weights."""
        name = getattr(func, "__name__", "")
        first = self._notes.get(args[0]) if args else None
        if name.endswith(UNRELATED):
            return
        if name == "__setitem__":
            axis = None if first is None else first.key_axis
            self[args[0]] = Followed(softmaxes_of(sources), axis, None)  # seen no further
            return
        if not isinstance(result, Tensor):
            for part in result if isinstance(result, tuple | list) else ():
                if isinstance(part, Tensor):
                    self[part] = Followed(softmaxes_of(sources), None, None)
            return
        if not (result.is_floating_point() or result.is_complex()):
            return
        if name in KEEPING and first is not None:
            self[result] = first
            return
        before, source = next((one for one in sources if one[1].key_axis is not None), sources[0])
        axis = source.key_axis
        if axis is not None and name in RESHAPING:
            axis = moved_axis(func, args, kwargs, before, axis)
        elif axis is None or not keeps_axes(before, result, axis):
            if (
                name not in RESHAPING and result.numel() > before.numel()
            ):  # by elements, with values
                all_become(Fate.LOST, sources)
                return
            axis = None
        self.move(func, args, kwargs, result, sources, axis)

    def move(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        sources: Sequence[Source],
        axis: int | None,
    ) -> None:
        """Do to the twins what was done to the tensors; axis is that of keys in the result."""
        twin = None
        if all(one.twin is not None for _, one in sources):
            try:
                moved = func(*self._twins(args), **self._twins(kwargs))
                twin = moved if isinstance(moved, Tensor) else None
            except Exception:  # whatever it is, the model has done it, and shall go on
                twin = None
        if twin is None and self._keeps_weights:
            axis = None
        self[result] = Followed(softmaxes_of(sources), axis, twin)

    def _twins(self, values: Any) -> Any:
        """The same arguments with twins in place of what is followed."""

        def twin_of(value: Any) -> Any:
            found = self._notes.get(value)
            if found is None or found.twin is None:
                return value.detach() if isinstance(value, Tensor) else value
            # A copy, since the function may change it in place; in the type of the model's own.
            return found.twin.to(value.dtype, copy=True)

        return tree_map(twin_of, values)


def softmaxes_of(sources: Sequence[Source]) -> tuple[Softmax, ...]:
    """The softmaxes that some tensors come from, each once."""
    return tuple(dict.fromkeys(one for _, source in sources for one in source.softmaxes))


def all_become(fate: Fate, sources: Sequence[Source]) -> None:
    """Note what became of the softmaxes that some tensors come from."""
    for one in softmaxes_of(sources):
        one.becomes(fate)
