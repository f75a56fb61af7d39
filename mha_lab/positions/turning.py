"""Pairs of numbers turned by angles, queries and keys together, and back again for the gradients.

Made of the usual operations, a turn and its gradients read and write q and k some twenty times;
written out, it is three passes each way, and keeps nothing but the angles.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from mha_lab.by_hand import is_batched, is_plain, side_by_side

Angles = tuple[Tensor, Tensor]
"""Cosine and sine (L, pairs) of each position and pair."""


def turn(q: Tensor, k: Tensor, of_q: Angles, of_k: Angles) -> tuple[Tensor, Tensor]:
    """Turn pair c, the numbers c and c + pairs, of each head; further numbers stay.

    Args:
        q: (N, H, L, D).
        k: (N, Hk, S, D).
        of_q: (L, pairs) each.
        of_k: (S, pairs) each; the same object where positions are the same.

    Returns:
        Both in their shape.
    """
    if not (is_plain(q, k) and type(k) is Tensor) or is_batched(q) or is_batched(k):
        return _turned(q, *of_q), _turned(k, *of_k)
    both: tuple[Tensor, Tensor] = _Turn.apply(q, k, of_q, of_k)  # type: ignore[no-untyped-call]
    return both


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = cos.shape[-1]
    first, second, rest = x.split_with_sizes([half, half, x.shape[-1] - 2 * half], -1)
    turned = (
        torch.addcmul(first * cos, second, sin, value=-1),
        torch.addcmul(second * cos, first, sin),
    )
    return torch.cat([*turned, rest] if rest.shape[-1] else turned, dim=-1)


class _Turn(Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, of_q: Angles, of_k: Angles
    ) -> tuple[Tensor, Tensor]:
        ctx.angles = of_q, of_k
        both = side_by_side(q, k) if of_q is of_k else None
        if both is not None:
            turned_q, turned_k = _in_place(both, *of_q).split_with_sizes(
                [q.shape[1], k.shape[1]], 1
            )
            return turned_q, turned_k
        return _in_place(q, *of_q), _in_place(k, *of_k)

    @staticmethod
    def backward(ctx: Any, grad_q: Tensor, grad_k: Tensor) -> tuple[Tensor | None, ...]:
        (cos_q, sin_q), (cos_k, sin_k) = ctx.angles
        return *turn(grad_q, grad_k, (cos_q, -sin_q), (cos_k, -sin_k)), None, None


def _in_place(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """What ``_turned`` gives, each number where it is to lie, heads side by side."""
    N, H, L, D = x.shape
    half = cos.shape[-1]
    turned = x.new_empty(N, L, H, D).transpose(1, 2)
    old, new = (y[..., : 2 * half].view(N, H, L, 2, half) for y in (x, turned))
    torch.mul(old, cos[:, None], out=new)
    new[..., 0, :].addcmul_(old[..., 1, :], sin, value=-1)
    new[..., 1, :].addcmul_(old[..., 0, :], sin)
    turned[..., 2 * half :] = x[..., 2 * half :]
    return turned
