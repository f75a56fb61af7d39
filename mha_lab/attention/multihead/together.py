"""Output and weights from the same matrix products, where that is faster than the fused kernel.

That kernel computes on a CPU at the speed of matrix products, and never shows its weights. Where
they are returned anyway and no gradient is wanted, the output is one more product; where they are
few, also with a gradient, whose backward pass then has the weights at hand. Many weights whose mean
is wanted are made in blocks of one head while each lies in the cache; all heads' never exist.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from mha_lab.attention.functional import Mask
from mha_lab.attention.multihead.blocks import (
    WeightFactors,
    is_plain,
    is_small,
    weight_factors,
)


def is_faster_together(q: Tensor, k: Tensor, v: Tensor, mask: Mask | None) -> bool:
    """Whether output and weights, both wanted, are best computed by ``attend_with_weights``."""
    return (
        q.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
        and is_plain(q, k, mask)
        and (
            is_small(q, k)
            or not (torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)))
        )
    )


def attend_with_weights(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    mask: Mask | None = None,
    is_causal: bool = False,
    average: bool = False,
) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N H L S"] | Float[Tensor, "N L S"]]:
    """Attend without dropout, and return the weights.

    Seen by ``torch.overrides`` modes as one function, so that recorders find it.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        v: Projected values (N, H, S, D).
        mask: Inside mask, broadcastable to (N, H, L, S).
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        average: Whether to return the mean over the heads.

    Returns:
        The output (N, H, L, D), and the weights (N, H, L, S) or averaged (N, L, S), all in the
        dtype of q. They carry gradient, also a second one.
    """
    tensors = (q, k, v)
    if has_torch_function(tensors):
        attended: tuple[Tensor, Tensor] = handle_torch_function(
            attend_with_weights, tensors, *tensors, mask, is_causal, average
        )
        return attended
    factors = weight_factors(q, k, mask, is_causal=is_causal)
    exact_v = v if v.dtype == factors.q.dtype else v.to(factors.q.dtype)
    if average and not factors.is_one_block:
        output, weights = _by_heads(factors, exact_v)
    else:
        output, weights = _at_once(factors, exact_v, average)
    if output.dtype == q.dtype:
        return output, weights
    return output.to(q.dtype), weights.to(q.dtype)


def _at_once(factors: WeightFactors, v: Tensor, average: bool) -> tuple[Tensor, Tensor]:
    """The output (N, H, L, D), and the weights (N, H, L, S) or averaged (N, L, S)."""
    weights = factors.weights()
    output = weights @ v
    if average:
        return output, weights.mean(1)
    # The backward pass needs the weights as they are; who gets them may change what he got.
    return output, weights.clone() if output.requires_grad else weights


def _by_heads(factors: WeightFactors, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output (N, H, L, D) and the averaged weights (N, L, S), a head at a time."""
    N, H, L, D = factors.q.shape
    S = v.shape[2]
    output = v.new_empty(N, L, H, D).transpose(1, 2)  # the heads of a query side by side
    mean = v.new_zeros(N, L, S)
    for n, h, _, weights in factors.weights_by_head():
        mean[n].add_(weights, alpha=1 / H)
        output[n, h] = weights @ v[n, h]
    return output, mean
