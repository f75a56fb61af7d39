"""Sparsemax and 1.5-entmax of rows, by Newton's method, with their gradients in closed form.

A row of weights is max(z - τ, 0)^p with p = 1 (sparsemax) or, of halved scores, p = 2 (entmax). The
norm of max(z - τ, 0), the p-th root of the sum, is convex in τ and falls, so Newton's steps from
below approach the τ that makes it 1 without ever passing it; no row has to be sorted. They begin at
max(z) - 1, or those of sparsemax at mean(z) - 1/n if that is larger. (In the code scores are not
halved: norm and bound are then p. And τ is counted from the largest score of its row, since the sum
of that and τ would be rounded.)

The gradients are those of Martins and Astudillo 2016 and of Peters et al. 2019, their
Jacobian diag(s) - s sᵀ / Σ s: with s = max(z - τ, 0)^(p - 1) on the support, s · (g - Σ s g / Σ s).
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from mha_lab.by_hand import is_transformed

_MOST_STEPS = 50
_STEPS_UNSEEN = {1: 16, 2: 10}
"""Where the values cannot be looked at: from their bounds, rows of 2^20 need no more."""


def sparsemax(
    scores: Float[Tensor, "... S"], tau: Float[Tensor, "... 1"] | None = None
) -> Float[Tensor, "... S"]:
    """Project each row onto the distributions.

    Args:
        scores: -inf where there is to be no weight; no row is -inf throughout.
        tau: What ``find_threshold`` has found for them with a power of 1, if it was called.
    """
    return _sparse(scores, 1, tau)


def entmax15(
    scores: Float[Tensor, "... S"], tau: Float[Tensor, "... 1"] | None = None
) -> Float[Tensor, "... S"]:
    """Entmax of each row, α = 1.5.

    Args:
        scores: -inf where there is to be no weight; no row is -inf throughout.
        tau: What ``find_threshold`` has found for them with a power of 2, if it was called.
    """
    return _sparse(scores, 2, tau)


def find_threshold(scores: Float[Tensor, "... S"], power: int) -> Float[Tensor, "... 1"]:
    """The τ of each row for which (Σ max(below - τ, 0)^power)^(1 / power) is the power.

    Below is how far scores are from the largest of their row: negative or 0.

    Args:
        scores: As ``sparsemax`` takes them.
        power: p.
    """
    is_hidden = torch.compiler.is_compiling() or not scores.is_cpu or is_transformed(scores)
    memory = None if is_hidden else torch.empty_like(scores)
    below = _below(scores)
    tau = torch.full_like(below[..., :1], -power)
    if power == 1:  # where nothing is -inf; else it is
        tau = torch.maximum(tau, below.mean(-1, keepdim=True) - 1 / below.shape[-1])
    for _ in range(_STEPS_UNSEEN[power] if is_hidden else _MOST_STEPS):
        above = torch.sub(below, tau, out=memory).clamp_(min=0)
        moved = tau + _step(above, power, sign=Tensor.sign_).clamp_(min=0)
        if not is_hidden and _are_near(moved, tau, power):
            return moved
        tau = moved
    return tau


def _step(above: Tensor, power: int, *, sign: Callable[[Tensor], Tensor] = Tensor.sign) -> Tensor:
    """Newton's step for τ, from what of the scores is above it; in place it takes a third."""
    total = above.sum(-1, keepdim=True)
    if power == 1:
        return (total - 1) / sign(above).sum(-1, keepdim=True)
    norm: Tensor = torch.linalg.vector_norm(above, dim=-1, keepdim=True)
    return (norm - 2) * norm / total


def sparse_gradient(
    slopes: Float[Tensor, "... S"], grad: Float[Tensor, "... S"]
) -> Float[Tensor, "... S"]:
    """The gradient of the scores.

    Args:
        slopes: The weights to the power of 1 - 1/p, 0 where these are.
        grad: Of the weights.
    """
    changed = slopes * grad
    mean = changed.sum(-1, keepdim=True) / slopes.sum(-1, keepdim=True)
    return changed.addcmul_(slopes, mean, value=-1)


def roots_of(scores: Float[Tensor, "... S"], tau: Float[Tensor, "... 1"]) -> Float[Tensor, "... S"]:
    """The square roots of the weights of entmax; those of torch take ten times as long."""
    roots = _below(scores).sub_(tau).clamp_(min=0)
    return roots.div_(torch.linalg.vector_norm(roots, dim=-1, keepdim=True))


def _below(scores: Tensor) -> Tensor:
    """How far scores are below the largest of their row."""
    return scores - scores.amax(-1, keepdim=True)


def _are_near(moved: Tensor, tau: Tensor, power: int) -> bool:
    """Whether a next step would be rounding; those of entmax are squared from one to the next."""
    if power == 1:
        return torch.equal(moved, tau)
    return bool((moved - tau).max() < torch.finfo(tau.dtype).eps ** 0.7)


def _sparse(scores: Tensor, power: int, tau: Tensor | None) -> Tensor:
    if scores.numel() == 0:
        return scores
    if is_transformed(scores):
        return _stepped(scores, power)
    weights: Tensor = _Sparse.apply(scores, power, tau)  # type: ignore[no-untyped-call]
    return weights


def _stepped(scores: Tensor, power: int) -> Tensor:
    """The same by steps that autograd sees: at τ, one of Newton's has its gradient."""
    tau = find_threshold(scores.detach(), power)
    scores = scores - scores.detach().amax(-1, keepdim=True)
    for _ in range(2):  # the second one, the gradient of that gradient
        tau = tau + _step((scores - tau).relu(), power)
    weights = (scores - tau).relu() ** power
    return weights / weights.sum(-1, keepdim=True)


class _Sparse(Function):
    """Rows max(scores - τ, 0)^power, divided by what makes them sum to 1."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, power: int, tau: Tensor | None) -> Tensor:
        tau = find_threshold(scores, power) if tau is None else tau
        if power == 1:
            roots = _below(scores).sub_(tau).clamp_(min=0)
            weights = roots.div_(roots.sum(-1, keepdim=True))
        else:
            roots = roots_of(scores, tau)
            weights = roots.square()
        ctx.power = power
        ctx.save_for_backward(roots, weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        roots, weights = ctx.saved_tensors
        if ctx.power == 1:
            slopes = roots.sign()
        elif torch.is_grad_enabled():  # a gradient of this gradient is wanted
            slopes = torch.where(roots > 0, weights.clamp(min=torch.finfo(grad.dtype).tiny), 0.25)
            slopes = torch.where(roots > 0, slopes.sqrt(), 0.0)
        else:
            slopes = roots
        return sparse_gradient(slopes, grad), None, None
