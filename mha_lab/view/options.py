"""What a page shows first, in the words of its address; and what cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from mha_lab.indices import check_count
from mha_lab.view.header import Header
from mha_lab.view.page import Part

View = Literal["heads", "map", "lines", "overview", "image"]
Scale = Literal["row", "head", "global"]
Curve = Literal["linear", "root", "log"]
Theme = Literal["auto", "light", "dark"]

_CHOICES = {"view": View, "scale": Scale, "curve": Curve, "theme": Theme}


def check_options(
    *, max_size: Any, height: Any, difference: Any, head: Any, **choices: Any
) -> None:
    """Refuse options that cannot be, whatever the maps are.

    Raises:
        TypeError: If a value is of another type.
        ValueError: If a value cannot be.
    """
    for name, value in choices.items():
        known = get_args(_CHOICES[name])
        if value not in known:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(known)}")
    if max_size is not None:
        check_count("max_size", max_size)
    check_count("height", height)
    if not isinstance(difference, bool):
        raise TypeError(f"difference={difference!r} must be a bool")
    if head not in ("all", "mean") and (isinstance(head, bool) or not hasattr(head, "__index__")):
        raise ValueError(f"head={head!r} must be the number of a head, 'all' or 'mean'")


def first_sight(
    parts: Sequence[Part], *, layer: str | None, head: int | str, view: View
) -> dict[str, str]:
    """The layer, head and view that are shown first.

    Raises:
        ValueError: If there is no such layer or head, or nothing of which there is such a view.
    """
    names = [part.name for part in parts]
    if layer is not None and layer not in names:
        layer_found = next((name for name in names if fnmatchcase(name, str(layer))), None)
        if layer_found is None:
            raise ValueError(
                f"layer={layer!r} is not among the maps: {', '.join(dict.fromkeys(names))}"
            )
        layer = layer_found
    first = parts[0 if layer is None else names.index(layer)]
    header = Header.from_json(first.header)
    if view == "image" and header.images is None:
        raise ValueError(
            f"view='image' needs keys that are patches of an image, which those of {first.name!r} "
            "are not: record with tokens=[ImageTokens(image, grid), ...], and whole maps"
        )
    state = {"view": "map" if view == "heads" and head != "all" else view, "head": str(head)}
    if head not in ("all", "mean"):
        state["head"] = str(_place(int(head), header))
    if layer is not None:
        state["layer"] = first.tag
    return state


def _place(head: int, header: Header) -> int:
    """Where a head stands among those that were recorded."""
    heads = header.heads if header.heads is not None else list(range(header.shape[1]))
    if head not in heads:
        there = ", ".join(map(str, heads))
        if header.heads is not None and len(heads) > 1 and heads == list(range(len(heads))):
            there = f"0 to {heads[-1]}"
        raise ValueError(f"head={head} is not in {header.name!r}: it has the heads {there}")
    return heads.index(head)
