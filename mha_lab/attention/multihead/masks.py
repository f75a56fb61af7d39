"""From the masks a caller gives to the one mask that attention takes.

Outside, a boolean mask is True where a key is *blocked*, as in ``torch.nn.MultiheadAttention``, and
a float mask is added to the scores. Inside (see ``functional``), True means *allowed*.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from mha_lab.attention.functional import Mask, allowed_where_not
from mha_lab.attention.multihead.mask_checks import (
    Sizes,
    check_masks,
    warn_if_zeros_and_ones,
)

__all__ = [
    "Sizes",
    "check_masks",
    "has_blocked_rows",
    "merge_masks",
    "open_blocked_rows",
    "warn_if_zeros_and_ones",
]


def merge_masks(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    *,
    is_causal: bool,
    sizes: Sizes,
    like: Tensor,
    extra_keys: int = 0,
    earlier_keys: int = 0,
) -> tuple[Mask | None, bool]:
    """Make one inside mask of all that blocks.

    Args:
        attn_mask: As ``check_masks`` lets it pass.
        key_padding_mask: (N, S), or (S,) unbatched.
        is_causal: Whether query i sees keys 0..i only, and the earlier ones.
        sizes: (N, H, L, S), where S counts the keys that the caller gave.
        like: Any tensor of the dtype and device that a float mask is to have.
        extra_keys: How many keys the module adds at the end; every query sees them.
        earlier_keys: How many keys stand before the first query's own: those of a cache.

    Returns:
        The mask, broadcastable to (N, H, L, S + extra_keys), and what is left of is_causal: True
        only where there is no mask, since kernels take one or the other.
    """
    N, H, L, S = sizes
    if earlier_keys and L == 1:
        is_causal = False  # no key comes later
    is_shifted = is_causal and bool(extra_keys or earlier_keys)
    if attn_mask is None and key_padding_mask is None and not is_shifted:
        return None, is_causal
    blocked: Tensor | None = None
    bias: Tensor | None = None
    if is_causal:
        blocked = torch.ones(L, S, dtype=torch.bool, device=like.device).triu(1 + earlier_keys)
    for mask in (_with_heads(attn_mask, N, H), _of_keys(key_padding_mask, N, S)):
        if mask is None:
            continue
        if mask.dtype == torch.bool:
            blocked = mask if blocked is None else blocked | mask
        else:
            mask = _in_range_of(mask, like.dtype)
            bias = mask if bias is None else bias + mask
    if bias is None:
        assert blocked is not None
        merged = allowed_where_not(blocked)
    else:
        merged = bias if blocked is None else bias.masked_fill(blocked, -torch.inf)
    if merged.ndim < 2:  # kernels take no fewer axes
        merged = merged.expand(1, S)
    if extra_keys:
        merged = merged.expand(*merged.shape[:-1], S)
        merged = F.pad(merged, (0, extra_keys), value=merged.dtype == torch.bool)
    return merged, False


def has_blocked_rows(mask: Mask) -> bool:
    """Whether there is a row that sees no key.

    Args:
        mask: Inside mask, broadcastable to (N, H, L, S).
    """
    if mask.dtype == torch.bool:
        return not mask.any(-1).all()
    return bool((mask == -torch.inf).all(-1).any())


def open_blocked_rows(mask: Mask) -> tuple[Mask, Tensor]:
    """Let rows that see no key see every key, for kernels that give NaN there.

    Args:
        mask: Inside mask, broadcastable to (N, H, L, S).

    Returns:
        The mask with those rows open, and which they are: bool, broadcastable to (N, H, L, 1).
    """
    if mask.dtype == torch.bool:
        blocked = mask.any(-1, keepdim=True).logical_not()
        return mask | blocked, blocked
    blocked = (mask == -torch.inf).all(-1, keepdim=True)
    return mask.masked_fill(blocked, 0.0), blocked


def _with_heads(attn_mask: Tensor | None, N: int, H: int) -> Tensor | None:
    """Split the batch-major first axis of a (N·H, L, S) mask."""
    if attn_mask is None or attn_mask.ndim != 3 or attn_mask.shape[0] != N * H:
        return attn_mask
    return attn_mask.reshape(N, H, *attn_mask.shape[1:])


def _of_keys(key_padding_mask: Tensor | None, N: int, S: int) -> Tensor | None:
    return None if key_padding_mask is None else key_padding_mask.reshape(N, 1, 1, S)


def _in_range_of(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a float mask; what is finite stays finite, so that -1e9 in half is no -inf."""
    if mask.dtype == dtype:
        return mask
    if torch.finfo(dtype).max < torch.finfo(mask.dtype).max:
        limit = torch.finfo(dtype).max
        mask = torch.where(mask.isinf(), mask, mask.clamp(-limit, limit))
    return mask.to(dtype)
