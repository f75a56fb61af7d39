"""What is known of a tensor that comes from softmaxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from mha_lab.recording.by_hand.softmaxes import Fate, Softmax


@dataclass(frozen=True)
class Followed:
    """What is known of a tensor that holds, or comes from, the results of softmaxes.

    Attributes:
        softmaxes: The softmaxes.
        axes: Its axes that may be that of keys, counted from the end: those along which it was
            normalised. None where that is not known.
        twin: The same without dropout; None where nothing is recorded.
        summed: The axis that was summed over, where it is a sum of weights.
    """

    softmaxes: tuple[Softmax, ...]
    axes: tuple[int, ...] = ()
    twin: Tensor | None = None
    summed: int | None = None


Source = tuple[Tensor, Followed]
"""A tensor, and what is known of it."""


def softmaxes_of(sources: Sequence[Source]) -> tuple[Softmax, ...]:
    """The softmaxes that some tensors come from, each once."""
    return tuple(dict.fromkeys(one for _, source in sources for one in source.softmaxes))


def all_become(fate: Fate, sources: Sequence[Source]) -> None:
    """Note what became of the softmaxes that some tensors come from."""
    for one in softmaxes_of(sources):
        one.becomes(fate)
