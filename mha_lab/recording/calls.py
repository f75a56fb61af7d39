"""From the arguments of an attention function of torch to the scores that it computes.

Two functions of ``torch.nn.functional`` do nearly all attention there is: ``nn.MultiheadAttention``
(and so ``nn.Transformer*``) calls ``multi_head_attention_forward``; Hugging Face transformers, timm
and most plain code call ``scaled_dot_product_attention``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mha_lab.attention.multihead.padding import attend_without_padding
from mha_lab.attention.multihead.together import attend_with_weights
from mha_lab.recording.distribution import Scores

_MHA_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


HeadsOf = Callable[[int], int | None]
"""H of a tensor (N·H, L, D), from its N·H; None when the caller does not tell."""


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
        value: (..., S, Dv); not used.
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
        query, key, is_token = _pad(query, key)
        allowed.append(is_token)
    q, k = _as_autocast(query), _as_autocast(key)
    if not enable_gqa and q.shape[:-2] != k.shape[:-2]:
        leading = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])  # type: ignore[no-untyped-call]
        q, k = q.expand(*leading, *q.shape[-2:]), k.expand(*leading, *k.shape[-2:])
    if attn_mask is not None:
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
    )


def scores_of_mha(heads_of: HeadsOf, *args: Any, **kwargs: Any) -> Scores:
    """The scores of ``F.multi_head_attention_forward``, whose arguments these are but the first.

    Its queries and keys are projected again here; bias_k, add_zero_attn, static_k, both masks and
    the causal hint mean what they mean in torch.
    """
    call = _MHA_SIGNATURE.bind(*args, **kwargs)
    call.apply_defaults()
    a = call.arguments
    query, key, H = a["query"], a["key"], a["num_heads"]
    if query.ndim == 2:
        query, key = query.unsqueeze(1), key.unsqueeze(1)
    N, E = query.shape[1:]

    def per_head(projected: Tensor) -> Tensor:
        return projected.view(-1, N, H, E // H).permute(1, 2, 0, 3)

    if a["use_separate_proj_weight"]:
        w_q, w_k = a["q_proj_weight"], a["k_proj_weight"]
    else:
        w_q, w_k, _ = a["in_proj_weight"].chunk(3)
    b_q, b_k, _ = (None,) * 3 if a["in_proj_bias"] is None else a["in_proj_bias"].chunk(3)
    q = per_head(F.linear(query, w_q, b_q))
    if a["static_k"] is None:
        k = per_head(F.linear(key, w_k, b_k))
    else:
        k = a["static_k"].view(N, H, -1, E // H)

    added = []  # keys that the module adds to those given; no mask blocks them
    if a["bias_k"] is not None:
        added.append(per_head(a["bias_k"].to(k.dtype).expand(1, N, E)))
    if a["add_zero_attn"]:
        added.append(k.new_zeros(N, H, 1, E // H))
    k = torch.cat([k, *added], dim=2)

    masks = []
    padding, attn_mask = a["key_padding_mask"], a["attn_mask"]
    is_causal = a["is_causal"] and padding is None and not a["need_weights"]
    if padding is not None:
        masks.append(padding.reshape(N, 1, 1, -1))
    if attn_mask is not None and not is_causal:
        masks.append(as_heads(attn_mask, lambda rows: H if rows == N * H else None))
    # nn.MultiheadAttention says True where a key is blocked, Scores where it is allowed.
    masks = [~mask if mask.dtype == torch.bool else mask for mask in masks]
    masks = [F.pad(mask, (0, len(added)), value=mask.dtype == torch.bool) for mask in masks]
    return Scores(
        q,
        k,
        scale=1 / math.sqrt(E // H),
        biases=tuple(mask for mask in masks if mask.dtype != torch.bool),
        allowed=tuple(mask for mask in masks if mask.dtype == torch.bool),
        is_causal=is_causal,
        dtype=torch.promote_types(q.dtype, torch.float32),
    )


def as_heads(tensor: Tensor, heads_of: HeadsOf) -> Tensor:
    """Give a tensor (..., A, B) the four axes (N, H, A, B).

    Args:
        tensor: (A, B), (N·H, A, B), (N, H, A, B), or with more leading axes, which join H.
        heads_of: Splits the first of three axes, batch-major.

    Returns:
        A view where possible.
    """
    if tensor.ndim == 3:
        heads = heads_of(tensor.shape[0]) or 1
        return tensor.reshape(tensor.shape[0] // heads, heads, *tensor.shape[1:])
    if tensor.ndim > 4:
        return tensor.flatten(1, -3)
    return tensor.reshape((1,) * (4 - tensor.ndim) + tensor.shape)


def _as_autocast(tensor: Tensor) -> Tensor:
    """Round as autocast does before the call, so that the map is the model's own."""
    device = tensor.device.type
    if torch.is_autocast_enabled(device) and tensor.dtype == torch.float32:
        return tensor.to(torch.get_autocast_dtype(device))
    return tensor


def _pad(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pad nested queries and keys (N, H, ragged, D); the mask says where both are tokens."""

    def padded(nested: Tensor) -> tuple[Tensor, Tensor]:
        samples = [sample.transpose(0, 1) for sample in nested.unbind()]
        lengths = torch.tensor([sample.shape[0] for sample in samples], device=nested.device)
        dense = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True).transpose(1, 2)
        positions = torch.arange(dense.shape[2], device=nested.device)
        return dense, positions < lengths[:, None]

    q, is_query = padded(query)
    k, is_key = padded(key)
    return q, k, (is_query[:, :, None] & is_key[:, None, :]).unsqueeze(1)


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


def reads_attention(func: Callable[..., Any]) -> bool:
    """Whether a call of this function is attention.

    Beside torch's own functions it is one that has an ``attention_weights``: a function of the same
    arguments that returns the weights (N, H, L, S).
    """
    return func in SCORES_OF or hasattr(func, "attention_weights")
