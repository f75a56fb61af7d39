"""Scaled dot-product attention written out, the reference that every faster path is tested against.

Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1:
softmax(q kᵀ / √D) v.

Masks here are *inside* masks: boolean ones are True where a query may attend (``allowed``), the
opposite of what the module takes from outside; float ones are added to the scores. Either may have
any shape that broadcasts to (N, H, L, S). ``allowed_where_not`` is the one place that inverts.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

Mask = Bool[Tensor, "..."] | Float[Tensor, "..."]


def allowed_where_not(blocked: Bool[Tensor, "..."]) -> Bool[Tensor, "..."]:
    """Turn an outside mask (True = blocked) into an inside one (True = may attend)."""
    return blocked.logical_not()


def attention_scores(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    mask: Mask | None = None,
    is_causal: bool = False,
) -> Float[Tensor, "N H L S"]:
    """How well each query fits each key, -inf where it may not attend.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        mask: Inside mask, broadcastable to (N, H, L, S): bool (True = may attend) or float (added).
        is_causal: Whether query i sees keys 0..i only, whatever L and S. Applies beside the mask.

    Returns:
        Scores (N, H, L, S), in at least float32: half precision would overflow here.
    """
    dtype = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(dtype) @ k.to(dtype).transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None and mask.dtype == torch.bool:
        scores = torch.where(mask, scores, -torch.inf)
    elif mask is not None:
        scores = scores + mask
    if is_causal:
        causal = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = torch.where(causal, scores, -torch.inf)
    return scores


def attention_weights(scores: Float[Tensor, "N H L S"]) -> Float[Tensor, "N H L S"]:
    """The distribution of each query over the keys.

    Args:
        scores: (N, H, L, S), -inf where a query may not attend.

    Returns:
        Softmax over S: each row sums to 1, or to 0 where every key is blocked; the gradient is
        finite in both cases.
    """
    blocked = (scores == -torch.inf).all(dim=-1, keepdim=True)
    # A row of -inf has no softmax: give it any scores, so that no NaN arises, then no weight.
    return scores.masked_fill(blocked, 0.0).softmax(dim=-1).masked_fill(blocked, 0.0)


def attention(
    q: Float[Tensor, "N H L D"],
    k: Float[Tensor, "N H S D"],
    v: Float[Tensor, "N H S D"],
    mask: Mask | None = None,
    *,
    is_causal: bool = False,
    dropout_p: float = 0.0,
) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N H L S"]]:
    """Attention in full, with the weights that it used.

    Args:
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        v: Projected values (N, H, S, D).
        mask: Inside mask, broadcastable to (N, H, L, S).
        is_causal: Whether query i sees keys 0..i only.
        dropout_p: Probability of dropping a weight before it meets the values.

    Returns:
        The output (N, H, L, D) in the dtype of v, and the weights (N, H, L, S) before dropout, in
        at least float32.
    """
    weights = attention_weights(attention_scores(q, k, mask, is_causal))
    output = F.dropout(weights, dropout_p) @ v.to(weights.dtype)
    return output.to(v.dtype), weights


def exchange(matrix: Float[Tensor, "H G"], x: Float[Tensor, "N G L S"]) -> Float[Tensor, "N H L S"]:
    """What each head makes of all heads' numbers: Σ_g matrix_hg x_g."""
    return torch.einsum("hg,ngls->nhls", matrix.to(x.dtype), x)
