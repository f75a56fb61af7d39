"""From the arguments of ``F.scaled_dot_product_attention`` to the scores that it computes."""

from __future__ import annotations

import math
import sys

import torch
from torch import Tensor

from mha_lab.recording.calls.scores import Scores
from mha_lab.recording.heads import HeadsOf, as_heads


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
    q, k = as_autocast(query), as_autocast(key)
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


def _materialized(mask: Tensor, device: torch.device) -> Tensor:
    """The mask that a ``CausalBias`` of torch stands for, whose own numbers mean nothing."""
    bias = sys.modules.get("torch.nn.attention.bias")
    if bias is not None and isinstance(mask, bias.CausalBias):
        whole: Tensor = mask._materialize(device)
        return whole
    return mask


def as_autocast(tensor: Tensor) -> Tensor:
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
