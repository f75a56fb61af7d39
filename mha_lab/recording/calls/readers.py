"""From the arguments of an attention function of torch to the scores that it computes.

Two functions of ``torch.nn.functional`` do nearly all attention there is: ``nn.MultiheadAttention``
(and so ``nn.Transformer*``) calls ``multi_head_attention_forward``; Hugging Face transformers, timm
and most plain code call ``scaled_dot_product_attention``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mha_lab.attention.multihead.padding import attend_without_padding
from mha_lab.attention.multihead.together import attend_with_weights
from mha_lab.recording.calls.flex import FlexModification, is_flex_attention
from mha_lab.recording.calls.mha import scores_of_mha
from mha_lab.recording.calls.scores import Scores
from mha_lab.recording.calls.sdpa import as_autocast, scores_of_sdpa
from mha_lab.recording.heads import HeadsOf


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
    q = as_autocast(query)
    k = as_autocast(key).expand(q.shape[0], *key.shape[1:])
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
