"""From the arguments of an attention function of torch to the scores that it computes.

Two functions of ``torch.nn.functional`` do nearly all attention there is: ``nn.MultiheadAttention``
(and so ``nn.Transformer*``) calls ``multi_head_attention_forward``; Hugging Face transformers, timm
and most plain code call ``scaled_dot_product_attention``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mha_lab.attention.multihead.padding import attend_without_padding
from mha_lab.attention.multihead.together import attend_with_weights
from mha_lab.recording.call_scores import Scores
from mha_lab.recording.flex import FlexModification, is_flex_attention
from mha_lab.recording.heads import HeadsOf, as_heads
from mha_lab.recording.mha_call import scores_of_mha


def scores_of_sdpa(
    heads_of: HeadsOf,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Scores:
    """The scores of ``F.scaled_dot_product_attention``, whose arguments these are but the first.

    Args:
        heads_of: Splits tensors (N·H, L, D).
        query: (..., L, D): (N, H, L, D), (N·H, L, D) or (L, D).
        key: (..., S, D).
        value: (..., S, Dv).
        attn_mask: Bool (True attends) or float, broadcastable to (..., L, S).
        dropout_p: Not used: the weights are those before dropout.
        is_causal: Whether query i sees keys 0..i only.
        scale: Factor of q·k; None means 1/√D.
        enable_gqa: Whether each key head serves a group of query heads.

    Returns:
        The scores, batch and heads apart.
    """
    biases: list[Tensor] = []
    allowed: list[Tensor] = []
    if query.is_nested:
        query, key, value, is_token = _pad(query, key, value)
        allowed.append(is_token)
    if enable_gqa and query.ndim == 3:  # heads, not samples and heads joined
        query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
    q, k = _as_autocast(query), _as_autocast(key)
    if not enable_gqa and q.shape[:-2] != k.shape[:-2]:
        leading = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])  # type: ignore[no-untyped-call]
        q, k = q.expand(*leading, *q.shape[-2:]), k.expand(*leading, *k.shape[-2:])
        value = value.expand(*leading, *value.shape[-2:])
    if attn_mask is not None:
        attn_mask = _materialized(attn_mask, q.device)
        if attn_mask.ndim > 2 and q.ndim != 4:  # its leading axes are about to be joined or split
            attn_mask = attn_mask.expand(*q.shape[:-2], *attn_mask.shape[-2:])
        elif attn_mask.ndim == 3:  # beside four axes, the first of three means heads alone
            attn_mask = attn_mask.unsqueeze(0)
        (allowed if attn_mask.dtype == torch.bool else biases).append(as_heads(attn_mask, heads_of))
    return Scores(
        as_heads(q, heads_of),
        as_heads(k, heads_of),
        scale=1 / math.sqrt(q.shape[-1]) if scale is None else scale,
        biases=tuple(biases),
        allowed=tuple(allowed),
        is_causal=is_causal,
        dtype=torch.promote_types(q.dtype, torch.float32),
        values=lambda: as_heads(value, heads_of),
    )


def scores_of_flex(
    heads_of: HeadsOf,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor],
    block_mask: tuple[Any, ...],
    scale: float,
    *others: Any,
) -> Scores:
    """The scores of the operator behind ``flex_attention``.

    Args:
        heads_of: Not used: there are always four axes.
        query: (N, H, L, D).
        key: (N or 1, H_kv, S, D), where H_kv divides H.
        value: (N or 1, H_kv, S, Dv).
        score_mod: Changes a score.
        block_mask: Its last part, a function, is what counts; the others say where it is true.
        scale: Factor of q·k.
        others: Options of kernels.
    """
    q = _as_autocast(query)
    k = _as_autocast(key).expand(q.shape[0], *key.shape[1:])
    return Scores(
        q,
        k,
        scale=scale,
        dtype=torch.promote_types(q.dtype, torch.float32),
        modification=FlexModification(
            score_mod,
            block_mask[-1],
            samples=torch.arange(q.shape[0], device=q.device),
            heads=torch.arange(q.shape[1], device=q.device),
        ),
        values=lambda: value.expand(q.shape[0], *value.shape[1:]),
    )


def _materialized(mask: Tensor, device: torch.device) -> Tensor:
    """The mask that a ``CausalBias`` of torch stands for, whose own numbers mean nothing."""
    bias = sys.modules.get("torch.nn.attention.bias")
    if bias is not None and isinstance(mask, bias.CausalBias):
        whole: Tensor = mask._materialize(device)
        return whole
    return mask


def _as_autocast(tensor: Tensor) -> Tensor:
    """Round as autocast does before the call, so that the map is the model's own."""
    device = tensor.device.type
    if torch.is_autocast_enabled(device) and tensor.dtype == torch.float32:
        return tensor.to(torch.get_autocast_dtype(device))
    return tensor


def _pad(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pad nested tensors (N, H, ragged, D); the mask says where both are tokens."""

    def padded(nested: Tensor) -> tuple[Tensor, Tensor]:
        samples = [sample.transpose(0, 1) for sample in nested.unbind()]
        lengths = torch.tensor([sample.shape[0] for sample in samples], device=nested.device)
        dense = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True).transpose(1, 2)
        positions = torch.arange(dense.shape[2], device=nested.device)
        return dense, positions < lengths[:, None]

    q, is_query = padded(query)
    k, is_key = padded(key)
    is_token = (is_query[:, :, None] & is_key[:, None, :]).unsqueeze(1)
    return q, k, padded(value)[0], is_token


def scores_of_attend_with_weights(
    heads_of: HeadsOf,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    average: bool = False,
) -> Scores:
    """The scores of our own function of that name, whose arguments these are but the first."""
    return scores_of_sdpa(heads_of, q, k, v, mask, 0.0, is_causal)


def scores_of_attend_without_padding(
    heads_of: HeadsOf, q: Tensor, k: Tensor, v: Tensor, mask: Tensor
) -> Scores:
    """The scores of our own function of that name, whose arguments these are but the first."""
    return scores_of_sdpa(heads_of, q, k, v, mask)


_SDPA = torch.ops.aten.scaled_dot_product_attention

SCORES_OF: dict[Callable[..., Any] | None, Callable[..., Scores]] = {
    F.multi_head_attention_forward: scores_of_mha,
    F.scaled_dot_product_attention: scores_of_sdpa,
    attend_with_weights: scores_of_attend_with_weights,
    attend_without_padding: scores_of_attend_without_padding,
    _SDPA: scores_of_sdpa,  # called by this name in exported programs
    _SDPA.default: scores_of_sdpa,
}
"""The functions whose calls are recorded, and how their arguments are read."""


def scores_reader(func: Callable[..., Any] | None) -> Callable[..., Scores] | None:
    """What reads the scores of a call of this function; None where it is none of these."""
    if func in SCORES_OF:
        return SCORES_OF[func]
    return scores_of_flex if func is not None and is_flex_attention(func) else None


def reads_attention(func: Callable[..., Any]) -> bool:
    """Whether a call of this function is attention.

    Beside torch's own functions it is one that has an ``attention_weights``: a function of the same
    arguments that returns the weights (N, H, L, S).
    """
    return scores_reader(func) is not None or hasattr(func, "attention_weights")
