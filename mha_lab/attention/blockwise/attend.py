"""Attention with any weighting of rows, in blocks that stay in the cache.

A row of weights follows from its row of scores, so heads and rows may be computed some at a time,
each block where the last one lay: on a CPU, fresh memory for all scores takes longer than what is
done with them. Nothing of (N, H, L, S) numbers is kept. The backward pass makes each block again;
what lies between the two products is differentiated by autograd, so a weighting has to give nothing
but its weights. Keys that no row of a block may see are left out.
"""

from typing import Any

import torch
from torch import Tensor

from mha_lab.attention.allowed import per_map, take_apart
from mha_lab.attention.bias import Bias, ToldBias, settled
from mha_lab.attention.blockwise.between import Between
from mha_lab.attention.blockwise.bias import BlockBias, Whole
from mha_lab.attention.blockwise.few import ToFew, is_to_few
from mha_lab.attention.blockwise.function import InBlocks
from mha_lab.attention.functional import Mask
from mha_lab.attention.grouped import serve_groups
from mha_lab.attention.multihead.blocks import is_plain
from mha_lab.attention.parts import RowsOver, ask
from mha_lab.attention.states.precision import exactly
from mha_lab.attention.weighting.softmax import Softmax

_WORTH = 2**16
"""Samples of fewer weights are best computed all at once."""


def attend_in_blocks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Bias | None,
    mask: Mask | None,
    is_causal: bool,
    steps: Any,
    dropout_p: float,
) -> Tensor | None:
    """The heads' outputs (N, H, L, D), or None where the parts or the call are not of that kind.

    Args:
        q: (N, M·H, L, D/M).
        k: (N, M·kv_heads, S, D/M).
        v: (N, kv_heads, S, D).
        bias: Added to the scores, or None.
        mask: Inside mask, or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        steps: See :class:`mha_lab.attention.pipeline.Steps`.
        dropout_p: Probability of dropping a weight.
    """
    H, M = steps.num_heads, q.shape[1] // steps.num_heads
    if dropout_p > 0 or not are_for_blocks(q, k, v, mask, num_heads=H):
        return None
    matrices = ask(steps.mixing, "matrices", None)
    factors = ask(steps.mixing, "factors", None)
    if matrices is None and not ask(steps.mixing, "is_within_heads", False):
        return None
    if isinstance(bias, ToldBias) and not _may_stay_told(bias, mask, M, steps):
        bias, mask, is_causal = settled(bias, mask, is_causal)
    L, S = q.shape[2], k.shape[2]
    allowed, opened, added = (
        None if x is None else x[(None,) * (4 - x.ndim)]
        for x in take_apart(mask, is_causal, L, S, q.device)
    )
    assert allowed is not None
    assert opened is not None
    over = _rows_over(steps.weighting, opened)
    if over is None:
        return None
    before, after = (None, None) if matrices is None else matrices()
    if factors is not None and ask(over.weighting, "most_keys", None) is None:
        after = factors()
    made: BlockBias | None = None
    if isinstance(bias, ToldBias):
        made = bias.in_blocks(steps.scale, is_causal=is_causal) if over.scale is None else None
        if made is None:
            now = settled(bias, mask, is_causal)
            return attend_in_blocks(q, k, v, *now, steps, dropout_p)
        bias = None
    if bias is not None:
        bias = bias[(None,) * (4 - bias.ndim)]
    if over.scale is not None:
        if before is not None or steps.softcap is not None:
            return None  # what would have to be scaled comes later
        scale = over.scale
        q = q * per_map(scale, H, M)
        bias = added if bias is None else bias if added is None else bias + added
        bias, added = None if bias is None else bias * scale, None
    if bias is not None:
        made = Whole(per_map(bias, H, M))
    is_free = mask is None and not is_causal
    if not (is_free or getattr(made, "hides_later", False)):
        zero = q.new_zeros(()) if added is None else added
        added = torch.where(opened, zero, -torch.inf)
    if over.shift is not None:
        shift = over.shift.to(torch.promote_types(q.dtype, torch.float32))
        added = shift if added is None else added + shift
    blocked = None if is_free else allowed.any(-1, keepdim=True).logical_not()
    between = Between(
        over.weighting,
        steps.scale * (1 if steps.softcap is None else 2 / steps.softcap),
        steps.softcap,
        made,
        per_map(opened, H, M),
        None if added is None else per_map(added, H, M),
        None if blocked is None or not blocked.any() else per_map(blocked, H, M),
        allowed.logical_not() if matrices is not None and allowed.shape[1] > 1 else None,
    )
    k, v = serve_groups(k, steps.kv_heads, H), serve_groups(v, steps.kv_heads, H)
    v = v.repeat_interleave(M, 1) if M > 1 and after is None else v
    others = [before, after, *(() if made is None else made.tensors)]
    heads = exactly(_apply, q, k, v, others=others, between=between)
    mixed: Tensor = heads if after is not None else steps.mixing(heads)
    return mixed.to(v.dtype)


def are_for_blocks(q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, *, num_heads: int) -> bool:
    """Whether a call is large enough to be cut, on a CPU, and nobody looks inside."""
    return (
        q.is_cpu
        and len(q) > 0
        and num_heads * q.shape[2] * k.shape[2] >= _WORTH
        and is_plain(q, k, mask)
        and is_plain(v, v, None)
    )


def _may_stay_told(bias: ToldBias, mask: Mask | None, M: int, steps: Any) -> bool:
    """Whether a bias may be added by blocks, and what it blocks need not be known before."""
    if M > 1 or steps.softcap is not None or ask(steps.mixing, "matrices", None) is not None:
        return False
    is_softmax = isinstance(steps.weighting, Softmax)
    return not bias.blocks or (mask is None and is_softmax)


def _rows_over(weighting: Any, opened: Tensor) -> RowsOver | None:
    """What a weighting does to each row alike, in every head, if it is of that kind."""
    as_rows = ask(weighting, "as_rows", None)
    if as_rows is not None:
        over: RowsOver = as_rows(opened)
        return over
    return RowsOver(weighting) if ask(weighting, "treats_rows_alike", False) else None


def _apply(
    q: Tensor, k: Tensor, v: Tensor, *, others: list[Tensor | None], between: Between
) -> Tensor:
    others = [None if x is None else x.to(q.dtype) for x in others]
    way: Any = ToFew if is_to_few(between, k.shape[2], others) else InBlocks
    attended: Tensor = way.apply(between, q, k, v, *others)
    return attended
