"""What is known of tensors: noted by which tensor it is, and forgotten with the tensor."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from torch import Tensor

Note = TypeVar("Note")


class TensorNotes(Generic[Note]):
    """One note a tensor, for as long as the tensor lives."""

    def __init__(self) -> None:
        self._notes: dict[int, tuple[weakref.ref[Tensor], Note]] = {}

    def __len__(self) -> int:
        return len(self._notes)

    def __setitem__(self, tensor: Tensor, note: Note) -> None:
        key, notes = id(tensor), self._notes

        def forget(reference: weakref.ref[Tensor]) -> None:
            if key in notes and notes[key][0] is reference:
                del notes[key]

        notes[key] = (weakref.ref(tensor, forget), note)

    def get(self, tensor: Any) -> Note | None:
        """What is known of a tensor; None of another value, or where nothing is."""
        reference, note = self._notes.get(id(tensor), (None, None))
        return note if reference is not None and reference() is tensor else None

    def among(self, values: Iterable[Any]) -> Iterator[tuple[Tensor, Note]]:
        """The tensors among some values, and in their lists and tuples, with their notes."""
        for value in values:
            if isinstance(value, list | tuple):
                yield from self.among(value)
            elif (note := self.get(value)) is not None:
                yield value, note

    def forget(self, tensor: Any) -> None:
        """Nothing is known of a tensor any more."""
        if self.get(tensor) is not None:
            del self._notes[id(tensor)]
