"""Attention weights computed apart from the output, without the memory they usually cost.

A fused kernel [1]_ computes the output and never shows its weights. They are computed here a second
time, block by block, each block small enough to stay in a processor's cache. Where only their mean
over the heads is wanted, a block is one head of a few samples, and the (N, H, L, S) tensor never
exists, unless all of it is smaller than a block. The backward pass makes the blocks again; where
nobody uses the gradient of the weights, there is none. ``functional`` says what the numbers are.

.. [1] Dao et al., "FlashAttention", 2022. https://arxiv.org/abs/2205.14135
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function, forward_ad

from mha_lab.attention.functional import Mask, attention_scores, attention_weights
from mha_lab.attention.masks import open_blocked_rows

_BLOCK_ELEMENTS = 2**20
"""How many weights a block has at most, if one head has fewer: 4 MiB in float32."""

_ONE_BLOCK = 2**19
"""Calls with so few weights are not cut: there is no memory to save, only time."""


def weights_apart(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    mask: Mask | None,
    *,
    is_causal: bool,
    average: bool,
) -> Float[Tensor, "N H L S"] | Float[Tensor, "N L S"]:
    """The weights of an attention call, before dropout.

    Inside ``torch.compile``, ``torch.export`` and ``torch.func`` transforms, and where a float mask
    wants a gradient, they are computed at once and not in blocks.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        mask: Inside mask, broadcastable to (N, H, L, S).
        is_causal: Whether query i sees keys 0..i only.
        average: Whether to return the mean over the heads.

    Returns:
        (N, H, L, S), or averaged (N, L, S), in the dtype of q; under autocast in float32. They
        carry gradient, also a second and a forward one.
    """
    if torch.is_autocast_enabled(q.device.type):
        with torch.autocast(q.device.type, enabled=False):  # it would round what is exact here
            return weights_apart(q.float(), k.float(), mask, is_causal=is_causal, average=average)
    if not _is_plain(q, k, mask):
        weights = attention_weights(attention_scores(q, k, mask, is_causal))
        return (weights.mean(1) if average else weights).to(q.dtype)
    exact = torch.promote_types(q.dtype, torch.float32)  # half would overflow in the scores
    bias = blocked = None
    if is_causal:  # then there is no mask
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
    if mask is not None:
        mask, blocked = open_blocked_rows(mask.reshape((1,) * (4 - mask.ndim) + mask.shape))
        bias = torch.where(mask, 0.0, -torch.inf) if mask.dtype == torch.bool else mask
        bias = bias.to(exact)
        if blocked.device.type == "cpu" and not blocked.any():  # a GPU would have to be waited for
            blocked = None
    exact_q, exact_k = q.to(exact), k.to(exact)
    if q.shape[:3].numel() * k.shape[2] <= _ONE_BLOCK:
        weights = _weights_of(exact_q, exact_k, bias, blocked)
        return (weights.mean(1) if average else weights).to(q.dtype)
    function = _AveragedWeights if average else _Weights
    apart: Tensor = function.apply(exact_q, exact_k, bias, blocked)  # type: ignore[no-untyped-call]
    return apart.to(q.dtype)


def _is_plain(q: Tensor, k: Tensor, mask: Mask | None) -> bool:
    """Whether nothing but the usual backward pass wants to look inside."""
    return not (
        type(q) is not Tensor
        or torch.compiler.is_compiling()
        or torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        or torch._C._are_functorch_transforms_active()
        or (mask is not None and mask.requires_grad)
        or any(forward_ad.unpack_dual(x).tangent is not None for x in (q, k))  # type: ignore[no-untyped-call]
    )


class _Weights(Function):
    """Weights (N, H, L, S) from q, k, a bias and the rows that see no key."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, bias: Tensor | None, blocked: Tensor | None
    ) -> Tensor:
        weights = q.new_empty(*q.shape[:3], k.shape[2])
        for n, h in _blocks(*weights.shape):
            parts = _part(bias, n, h), _part(blocked, n, h)
            _weights_of(q[n, h], k[n, h], *parts, out=weights[n, h])
        ctx.save_for_backward(q, k, bias, blocked, weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, bias, blocked, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of this gradient is wanted
            return _backward_at_once(q, k, bias, blocked, grad, average=False)
        grad_q, grad_k = torch.empty_like(q), torch.empty_like(k)
        for n, h in _blocks(*weights.shape):
            of_block = _gradients(q[n, h], k[n, h], weights[n, h], grad[n, h])
            grad_q[n, h], grad_k[n, h] = of_block
        return grad_q, grad_k, None, None


class _AveragedWeights(Function):
    """Their mean over the heads (N, L, S), a head at a time."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, bias: Tensor | None, blocked: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(q, k, bias, blocked)
        N, H, L, _ = q.shape
        mean = q.new_zeros(N, L, k.shape[2])
        for n, h in _heads(N, H, L * k.shape[2]):
            weights = _weights_of(q[n, h], k[n, h], _part(bias, n, h), _part(blocked, n, h))
            mean[n].add_(weights, alpha=1 / H)
        return mean

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, bias, blocked = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _backward_at_once(q, k, bias, blocked, grad, average=True)
        N, H, L, _ = q.shape
        grad = grad / H
        grad_q, grad_k = torch.empty_like(q), torch.empty_like(k)
        for n, h in _heads(N, H, L * k.shape[2]):
            weights = _weights_of(q[n, h], k[n, h], _part(bias, n, h), _part(blocked, n, h))
            grad_q[n, h], grad_k[n, h] = _gradients(q[n, h], k[n, h], weights, grad[n])
        return grad_q, grad_k, None, None


def _samples(N: int, elements: int) -> Iterator[slice]:
    """Cut the batch into slices of a block each, at least one sample of so many elements."""
    step = max(1, _BLOCK_ELEMENTS // max(1, elements))
    for start in range(0, N, step):
        yield slice(start, start + step)


def _blocks(N: int, H: int, L: int, S: int) -> Iterator[tuple[slice, slice]]:
    """Cut samples and heads into blocks: whole samples, or some heads of one sample."""
    heads = min(H, max(1, _BLOCK_ELEMENTS // max(1, L * S)))
    for n in _samples(N, H * L * S):
        for h in range(0, H, heads):
            yield n, slice(h, h + heads)


def _heads(N: int, H: int, elements: int) -> Iterator[tuple[slice, int]]:
    """Cut samples and heads into blocks of one head each, which has so many elements a sample."""
    for n in _samples(N, elements):
        for h in range(H):
            yield n, h


def _weights_of(
    q: Tensor, k: Tensor, bias: Tensor | None, blocked: Tensor | None, out: Tensor | None = None
) -> Tensor:
    """The weights of some queries (..., L, D) over keys (..., S, D)."""
    flat_q, flat_k = q.flatten(0, -3), k.flatten(0, -3)
    scores = torch.baddbmm(  # one product, already scaled
        q.new_zeros(1), flat_q, flat_k.transpose(1, 2), beta=0, alpha=1 / math.sqrt(q.shape[-1])
    ).view(*q.shape[:-1], k.shape[-2])
    if bias is not None:
        scores += bias
    weights = torch.softmax(scores, -1, out=out)
    if blocked is None:
        return weights
    if torch.is_grad_enabled():
        return weights.masked_fill(blocked, 0.0)
    return weights.masked_fill_(blocked, 0.0)


def _part(mask: Tensor | None, n: slice, h: slice | int) -> Tensor | None:
    """What a mask, whose axes may be of size 1, says of some samples and heads."""
    if mask is None:
        return None
    mask = mask if mask.shape[0] == 1 else mask[n]
    if mask.shape[1] > 1:
        return mask[:, h]
    return mask.squeeze(1) if isinstance(h, int) else mask


def _gradients(q: Tensor, k: Tensor, weights: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of q and k; a row of weights 0 gives 0."""
    weighted = grad * weights
    grad_scores = weighted.sub_(weights * weighted.sum(-1, keepdim=True))
    grad_scores *= 1 / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.transpose(-2, -1) @ q


def _backward_at_once(
    q: Tensor,
    k: Tensor,
    bias: Tensor | None,
    blocked: Tensor | None,
    grad: Tensor,
    *,
    average: bool,
) -> tuple[Tensor | None, ...]:
    """The same gradients, of operations that have a gradient themselves."""
    weights = _weights_of(q, k, bias, blocked)
    wanted = [x for x in (q, k) if x.requires_grad]
    grads = iter(
        torch.autograd.grad(
            weights.mean(1) if average else weights, wanted, grad, create_graph=True
        )
    )
    return *(next(grads) if x.requires_grad else None for x in (q, k)), None, None
