"""Attention weights computed apart from the output, without the memory they usually cost.

A fused kernel [1]_ computes the output and never shows its weights. They are computed here a second
time. Where only their mean over the heads is wanted, that is done block by block, a block being one
head of a few samples, and the (N, H, L, S) tensor never exists, unless it is small. The backward
pass makes the blocks again; where nobody uses the gradient of the weights, there is none.

.. [1] Dao et al., "FlashAttention", 2022. https://arxiv.org/abs/2205.14135
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function

from mha_lab.attention.functional import Mask, attention_scores, attention_weights
from mha_lab.attention.multihead.blocks import (
    WeightFactors,
    blocks,
    is_plain,
    weight_factors,
)
from mha_lab.by_hand import is_batched


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
    if not q.is_meta and torch.is_autocast_enabled(q.device.type):  # meta has no autocast
        with torch.autocast(q.device.type, enabled=False):  # it would round what is exact here
            q, k = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (q, k))
            return weights_apart(q, k, mask, is_causal=is_causal, average=average)
    if not is_plain(q, k, mask):
        weights = attention_weights(attention_scores(q, k, mask, is_causal))
        return (weights.mean(1) if average else weights).to(q.dtype)
    factors = weight_factors(q, k, mask, is_causal=is_causal)
    function = _AveragedWeights if average else _Weights
    with torch._C.DisableTorchFunction():  # a recorder has seen the call that these belong to
        apart: Tensor = function.apply(*factors)  # type: ignore[no-untyped-call]
    return apart.to(q.dtype)


class _Weights(Function):
    """Weights (N, H, L, S) from the tensors of ``WeightFactors``."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, mask: Mask | None, blocked: Tensor | None
    ) -> Tensor:
        weights = WeightFactors(q, k, mask, blocked).weights()
        ctx.save_for_backward(q, k, mask, blocked, weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, weights = ctx.saved_tensors
        factors = WeightFactors(*tensors)
        if torch.is_grad_enabled():  # a gradient of this gradient is wanted
            return _differentiable_gradients(factors, grad, average=False)
        if factors.is_one_block or is_batched(grad):
            return *factors.gradients(weights, grad), None, None
        grad_q, grad_k = torch.empty_like(factors.q), torch.empty_like(factors.k)
        for n, h in blocks(*weights.shape):
            of_block = factors.part(n, h).gradients(weights[n, h], grad[n, h])
            grad_q[n, h], grad_k[n, h] = of_block
        return grad_q, grad_k, None, None


class _AveragedWeights(Function):
    """Their mean over the heads (N, L, S), a head at a time."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, mask: Mask | None, blocked: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(q, k, mask, blocked)
        factors = WeightFactors(q, k, mask, blocked)
        if factors.is_one_block:
            return factors.weights().mean(1)
        N, H, L, _ = q.shape
        mean = q.new_zeros(N, L, k.shape[2])
        for n, _, _, weights in factors.weights_by_head():
            mean[n].add_(weights, alpha=1 / H)
        return mean

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        factors = WeightFactors(*ctx.saved_tensors)
        if torch.is_grad_enabled():
            return _differentiable_gradients(factors, grad, average=True)
        grad = grad / factors.q.shape[1]
        if factors.is_one_block or is_batched(grad):
            return *factors.gradients(factors.weights(), grad.unsqueeze(1)), None, None
        grad_q, grad_k = torch.empty_like(factors.q), torch.empty_like(factors.k)
        for n, h, part, weights in factors.weights_by_head():
            grad_q[n, h], grad_k[n, h] = part.gradients(weights, grad[n])
        return grad_q, grad_k, None, None


def _differentiable_gradients(
    factors: WeightFactors, grad: Tensor, *, average: bool
) -> tuple[Tensor | None, ...]:
    """The gradients of q and k, of operations that have a gradient themselves."""
    # Views, since what q and k come from may be the same, and is not to be gone back to.
    q, k = (x.view_as(x) for x in factors[:2])
    weights = factors._replace(q=q, k=k).weights()
    wanted = [x for x in (q, k) if x.requires_grad]
    output = weights.mean(1) if average else weights
    grads = iter(torch.autograd.grad(output, wanted, grad, create_graph=True))
    return *(next(grads) if x.requires_grad else None for x in (q, k)), None, None
