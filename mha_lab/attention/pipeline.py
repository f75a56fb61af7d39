"""From queries, keys and values to the heads' outputs: the middle of :mod:`composed`, step by step.

``weigh`` is the reference. ``attend`` is the one place where a faster way is chosen.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from mha_lab.attention.allowed import per_map, take_apart
from mha_lab.attention.bias import Bias, ToldBias, settled
from mha_lab.attention.blockwise.attend import attend_in_blocks
from mha_lab.attention.blockwise.block import is_mostly_blocked
from mha_lab.attention.functional import Mask
from mha_lab.attention.fused import attend_fused
from mha_lab.attention.grouped import serve_groups
from mha_lab.attention.normalise import capped
from mha_lab.attention.parts import ask
from mha_lab.attention.shown import shows_weights, weigh_values
from mha_lab.attention.states.precision import exactly

_MANY = 2**18
"""From so many queries times keys on, it pays not to compute what is blocked."""


class Steps(NamedTuple):
    """What is done on the way.

    Attributes:
        weighting: From scores to weights.
        mixing: Between heads.
        scale: Factor of q·k.
        softcap: Bound of the scores, or None.
        num_heads: H.
        kv_heads: How many heads keys and values have.
    """

    weighting: Any
    mixing: Any
    scale: float
    softcap: float | None
    num_heads: int
    kv_heads: int


def weigh(
    q: Float[Tensor, "N MH L d"],
    k: Float[Tensor, "N MHk S d"],
    v: Float[Tensor, "N Hk S D"],
    bias: Bias | None,
    mask: Mask | None,
    is_causal: bool,
    steps: Steps,
    dropout_p: float = 0.0,
) -> Float[Tensor, "N H L S"]:
    """The weights that are applied to the values, in at least float32, before dropout.

    Args:
        q: Queries, M maps a head: (N, M·H, L, D/M).
        k: Keys (N, M·kv_heads, S, D/M).
        v: Values (N, kv_heads, S, D); not used.
        bias: Added to the scores, broadcastable to (N, H, L, S), or None.
        mask: Inside mask, broadcastable to (N, H, L, S), or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        steps: What is done on the way.
        dropout_p: Not used.
    """
    bias, mask, is_causal = settled(bias, mask, is_causal)
    return exactly(_weigh, q, k, bias=bias, mask=mask, is_causal=is_causal, steps=steps)


@shows_weights(weigh)
def attend(
    q: Float[Tensor, "N MH L d"],
    k: Float[Tensor, "N MHk S d"],
    v: Float[Tensor, "N Hk S D"],
    bias: Bias | None,
    mask: Mask | None,
    is_causal: bool,
    steps: Steps,
    dropout_p: float = 0.0,
) -> Float[Tensor, "N H L D"]:
    """The heads' outputs (N, H, L, D), by the fastest way that the parts allow.

    The arguments are those of ``weigh``; dropout_p is the probability of dropping a weight.
    """
    ways = [attend_fused, attend_in_blocks]
    adds_maps = ask(steps.mixing, "factors", None) is not None
    if adds_maps or _is_for_blocks(bias, mask, is_causal, q.shape[2], k.shape[2]):
        ways.reverse()
    for way in ways:
        heads = way(q, k, v, bias, mask, is_causal, steps, dropout_p)
        if heads is not None:
            return heads
    weights = weigh(q, k, v, bias, mask, is_causal, steps)
    v = serve_groups(v, steps.kv_heads, steps.num_heads)
    weights = torch.dropout(weights, dropout_p, train=True) if dropout_p else weights
    return exactly(torch.matmul, weights, v).to(v.dtype)


def _is_for_blocks(bias: Bias | None, mask: Mask | None, is_causal: bool, L: int, S: int) -> bool:
    """Whether blocks come before the kernel, which needs all of a bias and gives it no gradient.

    Under a mask, and a bias is one for it, the kernel computes what is blocked too.
    """
    if isinstance(bias, ToldBias):
        if bias.is_best_in_blocks:
            return True
    elif bias is not None and bias.requires_grad and torch.is_grad_enabled():
        return True
    if L * S < _MANY or torch.compiler.is_compiling():
        return False
    return bias is not None if is_causal else mask is not None and is_mostly_blocked(mask, L, S)


def attend_and_show(
    q: Float[Tensor, "N MH L d"],
    k: Float[Tensor, "N MHk S d"],
    v: Float[Tensor, "N Hk S D"],
    bias: Bias | None,
    mask: Mask | None,
    is_causal: bool,
    steps: Steps,
    dropout_p: float,
    *,
    need_weights: bool,
) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N H L S"] | None]:
    """The heads' outputs, and if they are needed the weights, of which they are then made.

    The arguments are those of ``attend``.
    """
    if not need_weights:
        return attend(q, k, v, bias, mask, is_causal, steps, dropout_p), None
    weights = weigh(q, k, v, bias, mask, is_causal, steps)
    v = serve_groups(v, steps.kv_heads, steps.num_heads)
    return weigh_values(weights, v, dropout_p), weights


def _weigh(
    q: Tensor,
    k: Tensor,
    *,
    bias: Tensor | None,
    mask: Mask | None,
    is_causal: bool,
    steps: Steps,
) -> Tensor:
    H, M = steps.num_heads, q.shape[1] // steps.num_heads
    k = serve_groups(k, steps.kv_heads, H)
    scores = (q * steps.scale) @ k.transpose(-2, -1)
    mix_scores = ask(steps.mixing, "mix_scores", None)
    if mix_scores is not None:
        scores = mix_scores(scores)
    if steps.softcap is not None:
        scores = capped(scores, steps.softcap)
    if bias is not None:
        scores = scores + per_map(bias, H, M)
    is_free = mask is None and not is_causal
    L, S = scores.shape[-2:]
    allowed, opened, added = take_apart(mask, is_causal, L, S, scores.device)
    if added is not None:
        scores = scores + per_map(added, H, M)
    if not is_free:
        scores = scores.masked_fill(per_map(opened, H, M).logical_not(), -torch.inf)
    weights: Tensor = steps.weighting(scores, per_map(opened, H, M))
    if not is_free:
        weights = weights.masked_fill(per_map(allowed, H, M).logical_not(), 0.0)
    weights = steps.mixing(weights)
    if not (is_free or ask(steps.mixing, "is_within_heads", False)):  # another head sees other keys
        weights = weights.masked_fill(allowed.logical_not(), 0.0)
    return weights
