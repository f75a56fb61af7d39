"""Types with ranges, for what a config may set.

A constructor says with them which values it takes, and the command line reads that before anything
is made: ``def __init__(self, *, size: Size, dropout: Probability = 0.0)``. To Python and to mypy
each is the plain type.
"""

from typing import Annotated

from annotated_types import Ge, Gt, Interval

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
