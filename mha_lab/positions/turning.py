"""Pairs of numbers turned by angles, and back again for the gradients.

Made of the usual operations, a turn and its gradients read and write q and k some twenty times;
written out, it is three passes each way. They go along all heads of a token at once: along one half
of one head, a few numbers, they take three times as long.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from mha_lab.by_hand import is_batched, is_plain
from mha_lab.projected import Heads, Part, Projected, joined, rows_of

_ROW = 128
"""Numbers that lie side by side, from which on longer rows are not faster."""


class Angles(NamedTuple):
    """How far each pair turns at each position.

    Attributes:
        cos: (L, pairs).
        sin: (L, pairs).
    """

    cos: Float[Tensor, "L pairs"]
    sin: Float[Tensor, "L pairs"]

    def back(self) -> "Angles":
        """The same the other way round."""
        return Angles(self.cos, -self.sin)


def turn(x: Heads, angles: Angles) -> Heads:
    """Turn pair c, the numbers c and c + pairs, of each head (N, H, L, D); further numbers stay."""
    if not is_plain(x) or is_batched(x):
        return _turned(x, angles)
    turned: Tensor = _Turn.apply(x, angles)  # type: ignore[no-untyped-call]
    return turned


def turn_and_cut(projected: Projected, angles: Angles) -> tuple[Heads, ...]:
    """Turn queries and keys where they lie, and cut them: the same as turning them when cut.

    Args:
        projected: May be changed.
        angles: Of its tokens.

    Returns:
        The heads of each part.
    """
    product, parts = projected
    if parts[0].kind == "v" or not is_plain(product):
        return _each_turned(parts, projected.cut(), angles)
    heads: tuple[Heads, ...] = _TurnAndCut.apply(product, parts, angles)  # type: ignore[no-untyped-call]
    return heads


def _turned(x: Tensor, angles: Angles) -> Tensor:
    half = angles.cos.shape[-1]
    first, second, rest = x.split_with_sizes([half, half, x.shape[-1] - 2 * half], -1)
    turned = (
        torch.addcmul(first * angles.cos, second, angles.sin, value=-1),
        torch.addcmul(second * angles.cos, first, angles.sin),
    )
    return torch.cat([*turned, rest] if rest.shape[-1] else turned, dim=-1)


def _each_turned(
    parts: tuple[Part, ...], heads: tuple[Heads, ...], angles: Angles
) -> tuple[Heads, ...]:
    return tuple(
        x if part.kind == "v" else turn(x, angles) for part, x in zip(parts, heads, strict=True)
    )


class _Turn(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, angles: Angles) -> Tensor:
        ctx.angles = angles
        heads, width = x.shape[1], x.shape[-1]
        turned = _factors(angles, [heads], width).turned(rows_of(x))
        return turned.view(*turned.shape[:2], heads, width).transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return turn(grad, ctx.angles.back()), None


class _TurnAndCut(Function):
    @staticmethod
    def forward(
        ctx: Any, product: Tensor, parts: tuple[Part, ...], angles: Angles
    ) -> tuple[Tensor, ...]:
        projected = Projected(product.detach(), parts)
        ctx.parts, ctx.angles = parts, angles
        heads = [part.heads for part in parts if part.kind != "v"]
        ctx.factors = _factors(angles, heads, parts[0].width)
        rows = rows_of(projected.before_values())
        rows.copy_(ctx.factors.turned(rows))
        return projected.cut()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled() or any(is_batched(grad) for grad in grads):
            return joined(_each_turned(ctx.parts, grads, ctx.angles.back())), None, None
        total = Projected.like(grads, ctx.parts)
        for (part, rows), grad in zip(total.rows(), grads, strict=True):
            if part.kind == "v":
                rows.copy_(rows_of(grad))
            else:
                ctx.factors.turned(rows_of(grad), sign=-1, out=rows)
        return total.product, None, None


class _Factors(NamedTuple):
    """Of each number of some heads (L, 1, heads · width), the one half later, the one half earlier.

    What is no first of its pair has 0 in ``later``, what is no second in ``earlier``.
    """

    itself: Tensor
    later: Tensor
    earlier: Tensor
    half: int

    def turned(self, rows: Tensor, *, sign: int = 1, out: Tensor | None = None) -> Tensor:
        """Rows (N, L, any such heads) turned; with sign -1 the other way round."""
        half, width = self.half, self.itself.shape[-1]
        shape = (*rows.shape[:2], rows.shape[-1] // width, width)
        rows, out = rows.view(shape), None if out is None else out.view(shape)
        turned = torch.mul(rows, self.itself, out=out)
        turned[..., :-half].addcmul_(rows[..., half:], self.later[..., :-half], value=sign)
        turned[..., half:].addcmul_(rows[..., :-half], self.earlier[..., half:], value=sign)
        return turned.flatten(2)


def _factors(angles: Angles, heads: Sequence[int], width: int) -> _Factors:
    """Laid out for so many heads as fit these numbers of heads, and make rows long enough."""
    L, half = angles.cos.shape
    most = math.gcd(*heads)
    fitting = (n for n in range(1, most) if most % n == 0 and n * width >= _ROW)
    together = next(fitting, most)
    itself, later, earlier = angles.cos.new_zeros(3, L, together, width)
    for first in (0, half):
        itself[..., first : first + half] = angles.cos[:, None]
    itself[..., 2 * half :] = 1
    later[..., :half] = -angles.sin[:, None]
    earlier[..., half : 2 * half] = angles.sin[:, None]
    shape = L, 1, together * width
    return _Factors(itself.view(shape), later.view(shape), earlier.view(shape), half)
