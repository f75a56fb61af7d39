"""What ``show`` returns: a page that a notebook shows, and that can be saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from mha_lab.view.files import file_to_write
from mha_lab.view.fitting import LARGEST, fit
from mha_lab.view.options import Curve, Scale, Theme, View, check_options, first_sight
from mha_lab.view.page import Part, cell, page
from mha_lab.view.panes import Maps, named_maps, told_apart

_PANES = ("run", "vs", "vs3", "vs4")


@dataclass(frozen=True)
class Shown:
    """A view of maps, ready to be looked at: in a notebook as a cell's last line, or as a file."""

    parts: Sequence[Part]
    state: Mapping[str, str]
    notes: Sequence[str]
    height: int
    title: str

    @cached_property
    def html(self) -> str:
        """The self-contained page."""
        return page(self.parts, title=self.title, state=self.state, notes=self.notes)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file that ends in .html; one that is there is replaced.

        Raises:
            ValueError: If the path ends otherwise.
            FileNotFoundError: If its folder does not exist.
        """
        path = file_to_write(path, (".html",))
        path.write_text(self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return cell(self.html, self.height)

    def __repr__(self) -> str:
        runs = ", ".join(dict.fromkeys(part.run for part in self.parts))
        return f"<{len(self.parts)} attention maps of {runs}, shown in a notebook>"


def show(
    maps: Maps | Mapping[str, Maps] | None = None,
    *,
    before: Maps | None = None,
    after: Maps | None = None,
    samples: int | Sequence[int] | None = None,
    max_size: int | None = None,
    view: View = "heads",
    layer: str | None = None,
    head: int | Literal["all", "mean"] = "all",
    difference: bool = False,
    scale: Scale = "head",
    curve: Curve = "root",
    theme: Theme = "auto",
    height: int = 720,
) -> Shown:
    """Show maps as the Attention tab does: layers, heads, samples, lines, scores, exports.

    Example:
        >>> show(before=maps_of_one_model, after=maps_of_another, difference=True)

    Args:
        maps: What ``record_attention`` or ``read_attention`` gave, or one map of it; or up to four
            such by name, which stand side by side.
        before: Maps to stand before these: of another model, step or input.
        after: Maps to stand after these.
        samples: How many samples, from the first, or which ones, counted among those that were
            recorded; None means as many as fit.
        max_size: The largest length of a map; a longer one is shown as means of blocks. None means
            as long as fits.
        view: "heads" (all of a layer), "map" (one head), "lines", "overview" (all of all layers)
            or "image" (keys on an image, where tokens are patches).
        layer: The name of the map that is shown first, or a glob that it matches; None means the
            first.
        head: The head that is shown, as the model counts its heads; "all" or "mean".
        difference: Whether to show the first minus the second too.
        scale: By what a colour is full: the row's largest weight, what is large in the head, or
            the largest weight of all.
        curve: How colour grows with weight: in proportion, with its root, or with its logarithm.
        theme: "auto" follows the notebook, else the system.
        height: Of a notebook's cell, in pixels.

    Returns:
        What a notebook shows; ``save(path)`` writes it to a file.

    Raises:
        TypeError: If something is given that is no map, or an option is of another type.
        ValueError: If there is nothing to show, or an option's value cannot be.
    """
    check_options(
        max_size=max_size, height=height, difference=difference, head=head,
        view=view, scale=scale, curve=curve, theme=theme,
    )  # fmt: skip
    named = named_maps(maps, before, after)
    parts: list[Part] = []
    notes: list[str] = []
    for run, those in named.items():
        found, said = fit(
            those, run, samples=samples, max_size=max_size, room=LARGEST // len(named)
        )
        parts += told_apart(found)
        notes += [f"{run}: {note}" if len(named) > 1 else note for note in said]
    if not parts:
        raise ValueError("there are no maps to show: they hold no samples")
    runs = list(dict.fromkeys(part.run for part in parts))
    if difference and len(named) < 2:
        raise ValueError("difference=True needs two lists of maps: show(before=..., after=...)")
    state = {
        **first_sight(parts, layer=layer, head=head, view=view),
        "scale": scale, "curve": curve, "theme": theme, "diff": str(int(difference)),
    }  # fmt: skip
    if len(named) > 1:
        state |= dict(zip(_PANES, runs, strict=False))
    return Shown(parts, state, tuple(dict.fromkeys(notes)), height, " · ".join(runs[:4]))
