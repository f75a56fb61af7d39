"""From the arguments of ``F.multi_head_attention_forward`` to the scores that it computes."""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mha_lab.recording.calls.scores import Scores
from mha_lab.recording.heads import HeadsOf, as_heads

_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


def scores_of_mha(heads_of: HeadsOf, *args: Any, **kwargs: Any) -> Scores:
    """The scores of ``F.multi_head_attention_forward``, whose arguments these are but the first.

    Its queries and keys are projected again here; bias_k, add_zero_attn, static_k, both masks and
    the causal hint mean what they mean in torch.
    """
    call = _SIGNATURE.bind(*args, **kwargs)
    call.apply_defaults()
    a = call.arguments
    query, key, value, H = a["query"], a["key"], a["value"], a["num_heads"]
    if query.ndim == 2:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
    N, E = query.shape[1:]

    if a["use_separate_proj_weight"]:
        w_q, w_k, w_v = a["q_proj_weight"], a["k_proj_weight"], a["v_proj_weight"]
    else:
        w_q, w_k, w_v = a["in_proj_weight"].chunk(3)
    b_q, b_k, b_v = (None,) * 3 if a["in_proj_bias"] is None else a["in_proj_bias"].chunk(3)

    def per_head(projected: Tensor) -> Tensor:
        return projected.view(projected.shape[0], N, H, E // H).permute(1, 2, 0, 3)

    def with_added(x: Tensor, bias: Tensor | None) -> Tensor:
        """With the keys (or values) that the module adds to those given; no mask blocks them."""
        added = [] if bias is None else [per_head(bias.to(x.dtype).expand(1, N, E))]
        if a["add_zero_attn"]:
            added.append(x.new_zeros(N, H, 1, E // H))
        return torch.cat([x, *added], dim=2)

    def projected(x: Tensor, static: Tensor | None, w: Tensor, b: Tensor | None) -> Tensor:
        return (
            per_head(F.linear(x, w, b)) if static is None else static.view(N, H, *static.shape[1:])
        )

    q = per_head(F.linear(query, w_q, b_q))
    k = with_added(projected(key, a["static_k"], w_k, b_k), a["bias_k"])
    masks = []
    padding, attn_mask = a["key_padding_mask"], a["attn_mask"]
    is_causal = a["is_causal"] and padding is None and not a["need_weights"]
    if padding is not None:
        masks.append(padding.reshape(N, 1, 1, padding.shape[-1]))
    if attn_mask is not None and not is_causal:
        masks.append(as_heads(attn_mask, lambda rows: H if rows == N * H else None))
    # nn.MultiheadAttention says True where a key is blocked, Scores where it is allowed.
    masks = [~mask if mask.dtype == torch.bool else mask for mask in masks]
    masks = [F.pad(m, (0, k.shape[2] - m.shape[-1]), value=m.dtype == torch.bool) for m in masks]
    return Scores(
        q,
        k,
        scale=1 / math.sqrt(E // H),
        biases=tuple(mask for mask in masks if mask.dtype != torch.bool),
        allowed=tuple(mask for mask in masks if mask.dtype == torch.bool),
        is_causal=is_causal,
        dtype=torch.promote_types(q.dtype, torch.float32),
        values=lambda: with_added(projected(value, a["static_v"], w_v, b_v), a["bias_v"]),
    )
