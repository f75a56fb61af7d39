"""What ``show`` returns: a page that a notebook shows, and that can be saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from mha_lab.view.fitting import LARGEST, Showable, fit
from mha_lab.view.page import Part, cell, page

View = Literal["heads", "map", "lines", "overview", "image"]
Scale = Literal["row", "head", "global"]
Curve = Literal["linear", "root", "log"]
Theme = Literal["auto", "light", "dark"]

_MOST_PANES = 4
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
        """Write the page to a file that ends in .html.

        Raises:
            ValueError: If the path ends otherwise.
        """
        path = Path(path)
        if path.suffix != ".html":
            raise ValueError(f"path={str(path)!r} must end in .html")
        path.write_text(self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return cell(self.html, self.height)

    def __repr__(self) -> str:
        runs = ", ".join(dict.fromkeys(part.run for part in self.parts))
        return f"<{len(self.parts)} attention maps of {runs or 'nothing'}, shown in a notebook>"


def show(
    maps: Sequence[Showable] | Mapping[str, Sequence[Showable]] | None = None,
    *,
    before: Sequence[Showable] | None = None,
    after: Sequence[Showable] | None = None,
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
        maps: What ``record_attention`` or ``read_attention`` gave; or several such by name, of
            which the first four stand side by side.
        before: Maps to stand before these: of another model, step or input.
        after: Maps to stand after these.
        samples: How many samples, from the first, or which ones; None means as many as fit.
        max_size: The largest length of a map; a longer one is shown as means of blocks. None means
            as long as fits.
        view: "heads" (all of a layer), "map" (one head), "lines", "overview" (all of all layers)
            or "image" (keys on an image, where tokens are patches).
        layer: The name of the map that is shown first; None means the first.
        head: The head that is shown, "all" or "mean".
        difference: Whether to show the first minus the second too.
        scale: By what a colour is full: the row's largest weight, what is large in the head, or
            the largest weight of all.
        curve: How colour grows with weight: in proportion, with its root, or with its logarithm.
        theme: "auto" follows the notebook, else the system.
        height: Of a notebook's cell, in pixels.

    Returns:
        What a notebook shows; ``save(path)`` writes it to a file.

    Raises:
        ValueError: If there is nothing to show, or an option's value cannot be.
    """
    for name, value, kind in (
        ("view", view, View),
        ("scale", scale, Scale),
        ("curve", curve, Curve),
        ("theme", theme, Theme),
    ):
        if value not in get_args(kind):
            raise ValueError(f"{name}={value!r} must be one of {', '.join(get_args(kind))}")
    if max_size is not None and max_size < 1:
        raise ValueError(f"max_size={max_size} must be at least 1")
    named = _named(maps, before, after)
    if not any(named.values()):
        raise ValueError("there are no maps to show: the list is empty")
    parts: list[Part] = []
    notes: list[str] = []
    for run, those in named.items():
        found, said = fit(
            those, run, samples=samples, max_size=max_size, room=LARGEST // len(named)
        )
        parts += found
        notes += [f"{run}: {note}" if len(named) > 1 else note for note in said]
    if not parts:
        raise ValueError("there are no maps to show: they hold no samples")
    names = [part.name for part in parts]
    if layer is not None and layer not in names:
        raise ValueError(
            f"layer={layer!r} is not among the maps: {', '.join(dict.fromkeys(names))}"
        )
    state = {
        "view": view, "head": str(head), "scale": scale, "curve": curve, "theme": theme,
        "diff": str(int(difference)),
    }  # fmt: skip
    if layer is not None:
        state["layer"] = parts[names.index(layer)].tag
    if head != "all" and view == "heads":
        state["view"] = "map"
    runs = list(dict.fromkeys(part.run for part in parts))
    if len(named) > 1:
        state |= dict(zip(_PANES, runs[:_MOST_PANES], strict=False))
    return Shown(parts, state, tuple(dict.fromkeys(notes)), height, " · ".join(runs[:_MOST_PANES]))


def _named(
    maps: Sequence[Showable] | Mapping[str, Sequence[Showable]] | None,
    before: Sequence[Showable] | None,
    after: Sequence[Showable] | None,
) -> dict[str | None, Sequence[Showable]]:
    """Each list of maps by what to call it; None leaves that to the maps."""
    if isinstance(maps, Mapping):
        if before is not None or after is not None:
            raise ValueError("give maps by name, or before= and after=, not both")
        return {name: those for name, those in maps.items()}  # noqa: C416
    if before is None and after is None:
        return {getattr(maps, "title", None): maps or ()}
    named: dict[str | None, Sequence[Showable]] = {}
    if before is not None:
        named["before"] = before
    if maps is not None and maps is not before and maps is not after:
        free = [name for name, one in (("before", before), ("after", after)) if one is None]
        named[free[0] if free else "between"] = maps
    if after is not None:
        named["after"] = after
    return named
