"""What of many maps goes into one page: as much as a notebook's cell can hold, and it says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mha_lab.indices import Which, chosen_indices
from mha_lab.view.page import Part

LARGEST = 5_000_000
"""Weights in a page by default: 6 layers of 12 heads of 256 × 256, some 5 MB."""

_MOST_SAMPLES = 8
_SIZES = (384, 256, 192, 128, 96, 64)


class Showable(Protocol):
    """A map that can travel in a page; it may have a ``step`` too."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, H, L, S)."""

    def part(
        self,
        run: str | None = None,
        samples: Sequence[int] | None = None,
        max_size: int | None = None,
    ) -> Part:
        """The map as it travels in a page."""


def fit(
    maps: Sequence[Showable],
    run: str | None,
    *,
    samples: Which,
    max_size: int | None,
    room: int = LARGEST,
) -> tuple[list[Part], list[str]]:
    """Choose what goes into a page, and say what was left out.

    Args:
        maps: Maps of one run, of one step or of many.
        run: What to call where they come from; None leaves it to the maps.
        samples: How many samples, from the first, or which ones; None means as many as fit, one
            at least and at most eight.
        max_size: The largest length along each axis; None means as long as fits.
        room: How many weights fit. What was asked for is kept even if it does not.

    Returns:
        The parts, and a sentence for each thing left out.

    Raises:
        TypeError: If samples is no number and no list.
        ValueError: If no map has a chosen sample.
    """
    notes: list[str] = []
    most = max((one.shape[0] for one in maps), default=0)
    if samples is None:
        count = max(1, min(most, _MOST_SAMPLES, room // max(1, _weights(maps, 1, max_size))))
        if count < most:
            notes.append(f"{count} of {most} samples are shown; samples= chooses others.")
        which = list(range(count))
    else:
        whose = "the maps" if run is None else f"the maps of {run!r}"
        which = chosen_indices("samples", samples, most, of=whose)
        count = len(which)
    kept = list(maps)
    steps = sorted({_step(one) for one in maps})
    fitting = max(2, len(steps) * room // max(1, _weights(kept, count, max_size)))
    if fitting < len(steps):
        chosen = {steps[i * (len(steps) - 1) // (fitting - 1)] for i in range(fitting)}
        kept = [one for one in kept if _step(one) in chosen]
        notes.append(f"{len(chosen)} of {len(steps)} steps are shown.")
    if max_size is None and _weights(kept, count, None) > room:
        max_size = next((n for n in _SIZES if _weights(kept, count, n) <= room), _SIZES[-1])
        notes.append(f"Maps larger than {max_size} are shown as means; max_size= chooses.")
    parts = [
        one.part(run, [i for i in which if i < one.shape[0]] or [0], max_size)
        for one in kept
        if one.shape[0] > 0
    ]
    return parts, notes


def _weights(maps: Sequence[Showable], samples: int, max_size: int | None) -> int:
    """How many weights there are in so many samples of the maps."""
    total = 0
    for one in maps:
        n, heads, length, source = one.shape
        if max_size is not None:
            length, source = min(length, max_size), min(source, max_size)
        total += min(n, samples) * heads * length * source
    return total


def _step(one: Showable) -> int:
    return int(getattr(one, "step", 0))
