"""Types with ranges, for what a config may set.

A constructor says with them which values it takes, and the command line reads that before anything
is made: ``def __init__(self, *, size: Size, dropout: Probability = 0.0)``. To Python and to mypy
each is the plain type.
"""

from typing import Annotated

from annotated_types import Ge, Gt, Interval, MinLen, Predicate

Size = Annotated[int, Ge(1)]
"""How many of what there must be at least one of, or how long."""

Count = Annotated[int, Ge(0)]
"""How many; none is a number too."""

Positive = Annotated[float, Gt(0)]
"""Above 0, and finite."""

NotNegative = Annotated[float, Ge(0)]
"""0 or above, and finite."""

Probability = Annotated[float, Interval(ge=0, le=1)]
"""From 0 to 1."""

Share = Annotated[float, Interval(gt=0, le=1)]
"""Above 0, and at most 1."""

BelowOne = Annotated[float, Interval(ge=0, lt=1)]
"""From 0, and below 1: what decays."""

Seed = Annotated[int, Interval(ge=0, lt=2**32)]
"""What seeds random numbers: numpy's takes no more."""

Text = Annotated[str, MinLen(1)]
"""A name, a path: not the empty word."""


def is_folder_name(text: str) -> bool:
    """For one folder: of at most 100 characters, without slashes, no dot first."""
    return (
        text.isprintable() and len(text) <= 100 and not (set(text) & set("/\\") or text[0] == ".")
    )


FolderName = Annotated[str, MinLen(1), Predicate(is_folder_name)]
"""What a folder is named after."""
