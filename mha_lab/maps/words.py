"""What a map is, in words for the line above a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mha_lab.maps.interface import Drawable

_VALUES = {
    "weights": "weight",
    "value-weighted": "weight × norm of its value",
    "rollout": "share of what reaches a position",
}


def described(one: Drawable) -> str:
    """The map's name and kind, what its numbers are if not weights, and of what it is the mean."""
    about = [one.kind]
    if one.measure != "weights":
        about.append(one.measure)
    if pooled_from(one):
        about.append(pooled_from(one))
    return f"{one.name} ({', '.join(about)})".strip()


def pooled_from(one: Drawable) -> str:
    """Of what a pooled map is the mean, such as "mean of 200 × 200"; else nothing."""
    size = tuple(one.size)
    if size == one.shape[2:]:
        return ""
    how = "largest" if one.pool == "max" else "mean"
    return f"{how} of {size[0]} × {size[1]}"


def values_of(one: Drawable) -> str:
    """What one of the map's numbers is."""
    return _VALUES[one.measure]
