"""Output and weights in one pass, where weights are returned and no gradient is wanted.

Then the fused kernel has no advantage: the weights are made anyway, and the output is one more
matrix product. Where their mean is wanted, it is made of blocks of one head while each lies in the
cache, and the weights of all heads never exist. This holds on a CPU, where the fused kernel
computes at the speed of matrix products.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from mha_lab.attention.blocks import (
    WeightFactors,
    blocks_of_a_head,
    is_plain,
    weight_factors,
)
from mha_lab.attention.functional import Mask


def is_faster_together(q: Tensor, k: Tensor, v: Tensor, mask: Mask | None) -> bool:
    """Whether output and weights are best computed by ``attend_with_weights``."""
    return (
        q.device.type == "cpu"
        and not (torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)))
        and not torch.is_autocast_enabled("cpu")
        and is_plain(q, k, mask)
    )


def attend_with_weights(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    mask: Mask | None = None,
    is_causal: bool = False,
    average: bool = False,
) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N H L S"] | Float[Tensor, "N L S"]]:
    """Attend, and return the weights; without gradient and without dropout.

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
        dtype of q.
    """
    tensors = (q, k, v)
    if has_torch_function(tensors):
        attended: tuple[Tensor, Tensor] = handle_torch_function(
            attend_with_weights, tensors, *tensors, mask, is_causal, average
        )
        return attended
    with torch.no_grad():
        factors = weight_factors(q, k, mask, is_causal=is_causal)
        exact_v = v.to(factors.q.dtype)
        if average and not factors.is_one_block:
            output, weights = _a_head_at_a_time(factors, exact_v)
        else:
            weights = factors.weights()
            output = weights @ exact_v
            weights = weights.mean(1) if average else weights
    return output.to(q.dtype), weights.to(q.dtype)


def _a_head_at_a_time(factors: WeightFactors, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output (N, H, L, D) and the averaged weights (N, L, S)."""
    N, H, L, D = factors.q.shape
    S = v.shape[2]
    output = v.new_empty(N, L, H, D).transpose(1, 2)  # the heads of a query side by side
    mean = v.new_zeros(N, L, S)
    for n, head in blocks_of_a_head(N, H, L, S):
        block = factors.part(n, head).weights()
        mean[n].add_(block, alpha=1 / H)
        output[n, head] = block @ v[n, head]
    return output, mean
