"""Sparsemax and 1.5-entmax of rows, by Newton's method, with their gradients in closed form.

A row of weights is max(z - τ, 0)^p with p = 1 (sparsemax) or, of halved scores, p = 2 (entmax). Its
sum is convex in τ and falls, so Newton's steps from below approach the τ that makes it 1 without
ever passing it; no row has to be sorted. They begin at the larger of two bounds, max(z) - 1 and
mean(z) - n^(-1/p), and end when no τ moves.

The gradients are those of Martins and Astudillo 2016, section 2.5, and of Peters et al. 2019,
proposition 2: with s = max(z - τ, 0)^(p - 1) on the support, s · (g - Σ s g / Σ s).
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

_MOST_STEPS = 50
_BLOCK = 2**18
_STEPS_UNSEEN = 16
"""Where the values cannot be looked at: from their bounds, rows of 2^20 need no more."""


def sparsemax(scores: Float[Tensor, "... S"]) -> Float[Tensor, "... S"]:
    """Project each row onto the distributions.

    Args:
        scores: -inf where there is to be no weight; no row is -inf throughout.
    """
    if scores.numel() == 0:
        return scores
    weights: Tensor = _Sparse.apply(scores, 1)  # type: ignore[no-untyped-call]
    return weights


def entmax15(scores: Float[Tensor, "... S"]) -> Float[Tensor, "... S"]:
    """Entmax of each row, α = 1.5.

    Args:
        scores: -inf where there is to be no weight; no row is -inf throughout.
    """
    if scores.numel() == 0:
        return scores
    weights: Tensor = _Sparse.apply(scores / 2, 2)  # type: ignore[no-untyped-call]
    return weights


def find_threshold(z: Float[Tensor, "... S"], power: int) -> Float[Tensor, "... 1"]:
    """The τ of each row for which max(z - τ, 0)^power sums to 1."""
    finite = z != -torch.inf
    n = finite.sum(-1, keepdim=True).to(z.dtype)
    mean = z.masked_fill(finite.logical_not(), 0.0).sum(-1, keepdim=True) / n
    tau = torch.maximum(z.amax(-1, keepdim=True) - 1, mean - n ** (-1 / power))
    is_hidden = torch.compiler.is_compiling() or z.device.type != "cpu"
    memory = None if is_hidden else torch.empty_like(z)  # fresh memory takes longer than the sums
    for _ in range(_STEPS_UNSEEN if is_hidden else _MOST_STEPS):
        above = torch.sub(z, tau, out=memory).clamp_(min=0)
        if power == 1:
            excess = above.sum(-1, keepdim=True) - 1
            slope = above.count_nonzero(-1).unsqueeze(-1)
        else:
            slope = 2 * above.sum(-1, keepdim=True)
            excess = above.square_().sum(-1, keepdim=True) - 1
        moved = tau + (excess / slope).clamp(min=0)
        if not is_hidden and bool((moved == tau).all()):
            break
        tau = moved
    return tau


class _Sparse(Function):
    """Rows max(z - τ, 0)^power that sum to 1."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, power: int) -> Tensor:
        rows = z.reshape(-1, z.shape[-1])
        size = max(1, _BLOCK // max(1, rows.shape[-1]))  # a block stays in the cache
        tau = torch.cat([find_threshold(block, power) for block in torch.split(rows, size)])
        roots = (rows - tau).clamp_(min=0).view(z.shape)
        weights = roots if power == 1 else roots.square()
        weights = weights / weights.sum(-1, keepdim=True)  # rounding of τ
        ctx.power = power
        ctx.save_for_backward(roots)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (roots,) = ctx.saved_tensors
        slopes = (roots > 0).to(grad.dtype) if ctx.power == 1 else 2 * roots
        mean = (slopes * grad).sum(-1, keepdim=True) / slopes.sum(-1, keepdim=True)
        return slopes * (grad - mean), None
