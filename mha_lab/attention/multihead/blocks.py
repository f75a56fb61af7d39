"""Attention weights block by block, each block small enough to stay in a processor's cache.

``functional`` says what the numbers are.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from mha_lab import by_hand
from mha_lab.attention.functional import Mask
from mha_lab.attention.multihead.masks import has_blocked_rows, open_blocked_rows

BLOCK_ELEMENTS = 2**18
"""How many weights a block has at most, if one head has fewer: 1 MiB in float32."""

ONE_BLOCK = 2**19
"""Calls with so few weights are not cut: there is no memory to save, only time."""


class WeightFactors(NamedTuple):
    """What the weights of a call are made from, in at least float32.

    Attributes:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        mask: Inside mask of four axes that broadcast to (N, H, L, S), or None.
        blocked: The rows that see no key, bool (N or 1, H or 1, L or 1, 1), if there may be any;
            the mask lets them see every key, so that no NaN arises.
    """

    q: Float[Tensor, "N H L D"]
    k: Float[Tensor, "N H S D"]
    mask: Mask | None
    blocked: Tensor | None

    @property
    def is_one_block(self) -> bool:
        """Whether there are so few weights that they are not cut."""
        return is_small(self.q, self.k)

    def weights(self) -> Float[Tensor, "N H L S"]:
        """All weights at once, with gradient where q or k has one."""
        return _weights_of(*self)

    def weights_by_head(self) -> Iterator[tuple[slice, int, "WeightFactors", Tensor]]:
        """The weights in blocks of one head each, with gradient where q or k has one.

        Without, a block is computed where the last one lay, and must be done with before the next:
        fresh memory takes longer than the products that fill it.

        Yields:
            Which samples, which head, what their weights are made from, and these (n, L, S).
        """
        N, H, L, _ = self.q.shape
        S = self.k.shape[2]
        samples = max(1, BLOCK_ELEMENTS // max(1, L * S))
        memory = self.q.new_empty(min(N, samples), L, S) if self.q.is_cpu else None
        for start in range(0, N, samples):
            n = slice(start, start + samples)
            for h in range(H):
                part = self.part(n, h)
                yield n, h, part, _weights_of(*part, memory)

    def gradients(self, weights: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
        """Those of q and k, from the weights and their gradient.

        A row that sees no key gives 0, whatever its gradient.
        """
        grad = grad.expand_as(weights)  # the mean over heads has one gradient for all of them
        grad_scores = torch._softmax_backward_data(grad, weights, -1, weights.dtype)
        if self.blocked is not None:
            grad_scores = grad_scores.masked_fill(self.blocked, 0.0)
        scale = 1 / math.sqrt(self.q.shape[-1])
        grad_scores, q, k = _matrices(grad_scores), _matrices(self.q), _matrices(self.k)
        grad_q = _product(grad_scores, k, scale).reshape(self.q.shape)
        return grad_q, _product(grad_scores.transpose(1, 2), q, scale).reshape(self.k.shape)

    def part(self, n: slice, h: slice | int) -> "WeightFactors":
        """Those of some samples and some heads, or of one head, which then has no axis."""
        return WeightFactors(
            self.q[n, h], self.k[n, h], _part(self.mask, n, h), _part(self.blocked, n, h)
        )


def weight_factors(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    mask: Mask | None,
    *,
    is_causal: bool,
) -> WeightFactors:
    """Bring queries, keys and mask into the form that blocks are computed from.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        mask: Inside mask, broadcastable to (N, H, L, S).
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
    """
    blocked = None
    if is_causal:
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
    if mask is not None:
        mask = mask if mask.ndim == 4 else mask[(None,) * (4 - mask.ndim)]
        # To look for such rows, a GPU would have to be waited for.
        if mask.device.type != "cpu" or has_blocked_rows(mask):
            mask, blocked = open_blocked_rows(mask)
    exact = torch.promote_types(q.dtype, torch.float32)  # half would overflow in the scores
    if q.dtype != exact:
        q, k = q.to(exact), k.to(exact)
    return WeightFactors(q, k, mask, blocked)


def is_small(q: Tensor, k: Tensor) -> bool:
    """Whether the weights of these queries and keys are at most ``ONE_BLOCK``."""
    return q.shape[:3].numel() * k.shape[2] <= ONE_BLOCK


def is_plain(q: Tensor, k: Tensor, mask: Mask | None) -> bool:
    """Whether nothing but the usual backward pass wants to look inside, nor at the mask."""
    return not (mask is not None and mask.requires_grad) and by_hand.is_plain(q, k, mask)


def blocks(N: int, H: int, L: int, S: int) -> Iterator[tuple[slice, slice]]:
    """Cut samples and heads into blocks: whole samples, or some heads of one sample."""
    samples = max(1, BLOCK_ELEMENTS // max(1, H * L * S))
    heads = min(H, max(1, BLOCK_ELEMENTS // max(1, L * S)))
    for n in range(0, N, samples):
        for h in range(0, H, heads):
            yield slice(n, n + samples), slice(h, h + heads)


def _weights_of(
    q: Tensor,
    k: Tensor,
    mask: Mask | None,
    blocked: Tensor | None,
    memory: Tensor | None = None,
) -> Tensor:
    """The weights of some queries (..., L, D) over keys (..., S, D), in memory if given."""
    shape = *q.shape[:-1], k.shape[-2]
    scale = 1 / math.sqrt(q.shape[-1])
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, -torch.inf)  # to add is much faster than to fill
    has_gradient = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)
    are_many = memory is not None or math.prod(shape) > ONE_BLOCK
    if has_gradient or not are_many or not q.is_cpu:
        scores = _product(_matrices(q), _matrices(k).transpose(1, 2), scale).view(shape)
        if mask is not None:
            scores += mask
        weights = scores.softmax(-1)
        return weights if blocked is None else weights.masked_fill(blocked, 0.0)
    # In place: on a CPU, fresh memory for many weights takes longer than their softmax. (For few,
    # reading and writing the same memory does.)
    weights = q.new_empty(shape) if memory is None else memory[: shape[0]]
    _product(_matrices(q), _matrices(k).transpose(1, 2), scale, out=_matrices(weights))
    if mask is not None:
        weights += mask
    torch.softmax(weights, -1, out=weights)
    return weights if blocked is None else weights.masked_fill_(blocked, 0.0)


def _matrices(x: Tensor) -> Tensor:
    """(·, L, D) of (..., L, D)."""
    return x.reshape(x.shape[:-2].numel(), *x.shape[-2:])


def _product(a: Tensor, b: Tensor, scale: float, out: Tensor | None = None) -> Tensor:
    """The scaled product of matrices."""
    nothing = a.new_zeros(1)  # what is multiplied by beta
    return torch.baddbmm(nothing, a, b, beta=0, alpha=scale, out=out)


def _part(mask: Tensor | None, n: slice, h: slice | int) -> Tensor | None:
    """What a mask, whose axes may be of size 1, says of some samples and heads."""
    if mask is None:
        return None
    mask = mask if mask.shape[0] == 1 else mask[n]
    if mask.shape[1] > 1:
        return mask[:, h]
    return mask.squeeze(1) if isinstance(h, int) else mask
