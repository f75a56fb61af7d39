"""The fused kernel on the keys that are no padding, where the others would cost more than a call.

The kernel computes every key and then blocks the padding. Sample by sample it can be left out. This
holds on a CPU; a GPU would have to be waited for to know the lengths.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from mha_lab.attention.functional import Mask
from mha_lab.attention.multihead.blocks import is_plain

MANY_WEIGHTS = 2**20
"""Samples of so many weights are worth a call each."""


def is_worth_cutting(q: Tensor, k: Tensor, mask: Mask) -> bool:
    """Whether the mask is padding alone, and long samples are best attended to one by one."""
    N, H, L, _ = q.shape
    S = k.shape[2]
    return (
        q.device.type == "cpu"
        and mask.dtype == torch.bool
        and mask.shape == (N, 1, 1, S)
        and is_plain(q, k, mask)
        and H * L * S >= MANY_WEIGHTS
        and N > 0
    )


def attend_without_padding(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    mask: Bool[Tensor, "N 1 1 S"],
) -> Float[Tensor, "N H L D"]:
    """Attend sample by sample, to the keys between the first and the last that are allowed.

    Seen by ``torch.overrides`` modes as one function, so that recorders find it.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        v: Projected values (N, H, S, D).
        mask: Inside mask (N, 1, 1, S), True where a key is no padding.

    Returns:
        The output (N, H, L, D), 0 for samples that are padding alone.
    """
    tensors = (q, k, v)
    if has_torch_function(tensors):
        attended: Tensor = handle_torch_function(attend_without_padding, tensors, *tensors, mask)
        return attended
    samples = zip(*(x.tensor_split(len(mask)) for x in (*tensors, mask)), strict=True)
    outputs = [_attend_to_seen(*sample) for sample in samples]
    return torch.cat([output.transpose(1, 2) for output in outputs]).transpose(1, 2)


def _attend_to_seen(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    seen = mask.flatten().nonzero().flatten()
    # Of none, one is kept, blocked: the kernel then gives 0.
    first, last = (int(seen[0]), int(seen[-1])) if len(seen) else (0, 0)
    length = last - first + 1
    k, v, mask = (
        k.narrow(2, first, length),
        v.narrow(2, first, length),
        mask.narrow(3, first, length),
    )
    return F.scaled_dot_product_attention(q, k, v, None if mask.all() else mask)
