"""Attention under a float mask that learns, such as a bias of positions.

Torch's kernel gives a mask no gradient, so torch would keep all weights; blocks need not.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from mha_lab.attention.blockwise.attend import are_for_blocks, attend_in_blocks
from mha_lab.attention.functional import Mask, attention_scores, attention_weights
from mha_lab.attention.mixing.none import NoMixing
from mha_lab.attention.shown import shows_weights
from mha_lab.attention.weighting.softmax import Softmax
from mha_lab.projected import Heads


class _Steps(NamedTuple):
    scale: float
    num_heads: int
    kv_heads: int
    weighting: Softmax = Softmax()
    mixing: NoMixing = NoMixing()
    softcap: None = None


def weights_under(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    mask: Float[Tensor, "..."],
) -> Float[Tensor, "N H L S"]:
    """The weights that ``attend_under`` applies; its arguments."""
    return attention_weights(attention_scores(q, k, mask))


def is_learned(q: Heads, k: Heads, v: Heads, mask: Mask | None) -> bool:
    """Whether a mask is to have a gradient, and blocks are of use."""
    return (
        mask is not None
        and mask.requires_grad
        and torch.is_grad_enabled()
        and are_for_blocks(q, k, v, mask.detach(), num_heads=q.shape[1])
    )


@shows_weights(weights_under)
def attend_under(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    mask: Float[Tensor, "..."],
) -> Float[Tensor, "N H L D"]:
    """The heads' outputs (N, H, L, D), of a call that ``is_learned`` has said yes to.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        v: Projected values (N, H, S, D).
        mask: Added to the scores, broadcastable to (N, H, L, S).
    """
    H, D = q.shape[1], q.shape[-1]
    allowed = mask.detach() > -torch.inf
    is_free = bool(allowed.all())
    bias = mask if is_free else mask.masked_fill(allowed.logical_not(), 0.0)
    steps = _Steps(D**-0.5, H, H)
    heads = attend_in_blocks(q, k, v, bias, None if is_free else allowed, False, steps, 0.0)
    assert heads is not None
    return heads
