"""Matrix products of weights with values, told from other products of weights.

Weights meet values where a product sums over their keys. One that sums over another axis, such as
the heads, mixes weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

PRODUCTS = {
    "__matmul__", "__rmatmul__", "addmm", "baddbmm", "bmm", "einsum", "linalg_matmul", "linear",
    "matmul", "mm", "mv",
}  # fmt: skip

COMPOSING = {"__matmul__", "bmm", "linalg_matmul", "matmul", "mm"}
"""Products of two matrices in this order, with which weights of weights are computed."""


@dataclass(frozen=True)
class Meeting:
    """How weights meet values in a product.

    Attributes:
        order: The axes of the weights, those of queries and keys last.
        values: (..., S, D), or None where they are a parameter of a layer.
    """

    order: tuple[int, ...]
    values: Tensor | None

    def arrange(self, weights: Tensor) -> Tensor:
        """The weights as (..., L, S); L is 1 where there is no axis of queries."""
        weights = weights.permute(self.order)
        return weights if weights.ndim > 1 else weights.unsqueeze(0)


def meeting_with_values(
    name: str, args: Sequence[Any], weights: Tensor, key_axis: int
) -> Meeting | int | None:
    """Look at a product that weights are an operand of.

    Args:
        name: That of the function, one of ``PRODUCTS``.
        args: What it was called with.
        weights: The operand.
        key_axis: Its axis of keys, counted from the end.

    Returns:
        How the weights meet values; or, if they are only mixed, the axis of keys of the result,
        counted from its end; or None where the product cannot be read.
    """
    if name == "einsum":
        return _of_einsum(args, weights, key_axis)
    if name == "linear":  # sums over the last axis, which is replaced
        return None if key_axis == -1 or args[0] is not weights else key_axis
    left, right = args[-2:] if name in ("addmm", "baddbmm") else args[:2]
    if name == "__rmatmul__":
        left, right = right, left
    if not isinstance(left, Tensor) or not isinstance(right, Tensor) or weights.ndim < 2:
        return None
    axes = list(range(weights.ndim))
    if left is weights:
        if key_axis == -1:
            return Meeting(tuple(axes), right if right.ndim > 1 else right.unsqueeze(-1))
        return key_axis
    if key_axis == -2:
        order = (*axes[:-2], axes[-1], axes[-2])
        return Meeting(order, left.mT if left.ndim > 1 else left.unsqueeze(-1))
    return key_axis


def summed_axis(name: str, args: Sequence[Any], operand: Tensor) -> int | None:
    """The axis of an operand that a product sums over, counted from the end; None if not one."""
    if name == "einsum":
        operands = list(args[1]) if isinstance(args[1], list | tuple) else list(args[1:])
        inputs, output = subscripts(args[0], [one.ndim for one in operands])
        own = inputs[next(i for i, one in enumerate(operands) if one is operand)]
        axes = [i - len(own) for i, letter in enumerate(own) if letter not in output]
        return axes[0] if len(axes) == 1 else None
    left = args[-2] if name in ("addmm", "baddbmm") else args[name == "__rmatmul__"]
    return -1 if left is operand else -2


def _of_einsum(args: Sequence[Any], weights: Tensor, key_axis: int) -> Meeting | int | None:
    if not args or not isinstance(args[0], str):
        return None
    operands = list(args[1]) if isinstance(args[1], list | tuple) else list(args[1:])
    inputs, output = subscripts(args[0], [operand.ndim for operand in operands])
    place = next(i for i, operand in enumerate(operands) if operand is weights)
    own = inputs[place]
    key = own[key_axis]
    if len(set(own)) < len(own):
        return None
    if key in output:
        return output.index(key) - len(output)
    if len(operands) != 2 or key not in inputs[1 - place]:
        return None
    other = inputs[1 - place]
    queries = [letter for letter in own if letter in output and letter not in other]
    if not queries:
        return None
    batch = [letter for letter in own if letter not in (queries[-1], key)]
    order = [*batch, queries[-1], key]
    of_values = [letter for letter in batch if letter in other]
    rest = [letter for letter in other if letter not in own]
    values = operands[1 - place].permute([other.index(x) for x in (*of_values, key, *rest)])
    sizes = [
        *(weights.shape[own.index(x)] if x in other else 1 for x in (*batch, key)),
        math.prod(values.shape[values.ndim - len(rest) :]),
    ]
    return Meeting(tuple(own.index(letter) for letter in order), values.reshape(sizes))


def subscripts(equation: str, ndims: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand's axes and of the result's; what "..." stands for gets some."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    written = left.split(",")
    if not arrow:
        letters = sorted(set(left) - set(".,"))
        output = ("..." if "." in left else "") + "".join(x for x in letters if left.count(x) == 1)
    unnamed = [n - len(own.replace("...", "")) for own, n in zip(written, ndims, strict=True)]
    longest = max(unnamed) if "..." in left else 0
    dots = "".join(chr(0x100 + i) for i in range(longest))  # no letters of an equation
    inputs = [
        own.replace("...", dots[longest - n :]) for own, n in zip(written, unnamed, strict=True)
    ]
    return inputs, output.replace("...", dots)
