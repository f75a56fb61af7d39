"""The functions by which exponentials of scores are summed, and divided by their sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from mha_lab.recording.by_hand.moves import KEEPING, function_name
from mha_lab.recording.by_hand.products import subscripts

DIVIDE, MULTIPLY = "div", "mul"

_PLAIN = {
    "truediv": DIVIDE, "itruediv": DIVIDE, "idiv": DIVIDE, "divide": DIVIDE,
    "true_divide": DIVIDE, "imul": MULTIPLY, "rmul": MULTIPLY, "multiply": MULTIPLY,
    "isub": "sub", "subtract": "sub", "iadd": "add", "radd": "add",
    "rtruediv": "reciprocal", "rdiv": "reciprocal",
}  # fmt: skip
"""Names of the same function."""

NORMS = {"norm", "vector_norm"}

_SCATTERING = {"index_add", "index_reduce", "scatter_add", "scatter_reduce", "segment_reduce"}

SUMS = {"mean", "nansum", "sum", "einsum", *NORMS, *_SCATTERING}

_BLOCKING = {
    MULTIPLY, "add", "clamp", "clamp_max", "clamp_min", "clip", "masked_fill", "nan_to_num",
    "threshold", "tril", "triu", "where",
}  # fmt: skip

_JOINING = {"cat", "chunk", "concat", "index_select", "gather", "max", "maximum", "split", "stack",
            "sub", "unbind"}  # fmt: skip

_STAYS = {
    "WEIGHTS": {*_BLOCKING, "chunk", "split", "unbind"},
    "SUM": {*_BLOCKING, *_JOINING, DIVIDE},
    "INVERSE": {*_BLOCKING, *_JOINING},
    "LOG_SUM": {"add", "masked_fill", "nan_to_num", "where"},
    "LOG": {"add", "masked_fill", "nan_to_num", "where"},
    "PRODUCT": {*_BLOCKING, *_JOINING},
}
"""By which functions each part stays what it is."""

_TURNS = {
    ("SUM", "reciprocal"): "INVERSE",
    ("INVERSE", "reciprocal"): "SUM",
    ("SUM", "log"): "LOG_SUM",
}


def plain_name(func: Callable[..., Any]) -> str:
    """A function's name, the same for a method, an operator, and what works in place."""
    name = function_name(func)
    if name in ("__get__", "__getitem__", "__matmul__", "__rmatmul__", "__rpow__"):
        return name
    name = name.strip("_").removeprefix("linalg_").removeprefix("special_")
    return _PLAIN.get(name, name)


def is_exponential(name: str) -> bool:
    """Whether a function is an exponential one."""
    return name in ("exp", "exp2", "expm1", "__rpow__")


def is_by_sum(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a norm is the sum of absolute values."""
    order = kwargs.get("p", kwargs.get("ord", args[1] if len(args) > 1 else 2))
    return isinstance(order, int | float) and order == 1


def axis_of_sum(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """The one axis that is summed over, counted from the end; None where there are others."""
    summed = args[0] if args else None
    if name == "einsum" and isinstance(summed, str) and len(args) == 2:
        operand = args[1][0] if isinstance(args[1], list | tuple) else args[1]
        (own,), output = subscripts(summed, [operand.ndim])
        axes = [i - len(own) for i, letter in enumerate(own) if letter not in output]
        return axes[0] if len(axes) == 1 else None
    if name in _SCATTERING or not isinstance(summed, Tensor):
        return None
    place = 2 if name in (*NORMS, "normalize") else 1
    usual = 1 if name == "normalize" else None
    given = args[place] if len(args) > place else usual
    axis = kwargs.get("dim", kwargs.get("axis", given))
    if isinstance(axis, tuple | list) and len(axis) == 1:
        axis = axis[0]
    if not isinstance(axis, int):
        return None
    return axis if axis < 0 else axis - summed.ndim


def part_after(name: str, part: str, *, is_second: bool) -> str | None:
    """What a part of a quotient is after another function; None where it is none any more.

    Args:
        name: The function's plain name.
        part: What it was.
        is_second: Whether it was the function's second argument.
    """
    if name == DIVIDE and is_second:  # 1 / sum
        name = "reciprocal"
    if (part, name) in _TURNS:
        return _TURNS[part, name]
    return part if name in KEEPING or name in _STAYS[part] else None
