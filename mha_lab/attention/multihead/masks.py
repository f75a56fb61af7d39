"""From the masks a caller gives to the one mask that attention takes.

Outside, a boolean mask is True where a key is *blocked*, as in ``torch.nn.MultiheadAttention``, and
a float mask is added to the scores. Inside (see ``functional``), True means *allowed*.
"""

import warnings
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mha_lab.attention.functional import Mask, allowed_where_not


class Sizes(NamedTuple):
    """The sizes of one attention call: batch, heads, query length, key length."""

    N: int
    H: int
    L: int
    S: int


def check_masks(
    attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor, sizes: Sizes
) -> None:
    """Refuse masks of a wrong type, device or shape.

    Args:
        attn_mask: Must broadcast to (N, H, L, S), or be (N·H, L, S) batch-major.
        key_padding_mask: Must be (N, S); for an unbatched query, (S,).
        query: Unbatched (L, E) or batched; its device is that of the masks.
        sizes: What the masks are measured against.

    Raises:
        TypeError: A mask is neither bool nor float.
        ValueError: A mask has another shape or device.
    """
    for name, mask in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
        if mask is None:
            continue
        if not isinstance(mask, Tensor):
            raise TypeError(f"{name} must be a tensor or None, got {type(mask).__name__}")
        if mask.dtype != torch.bool and not mask.is_floating_point():
            raise TypeError(
                f"{name} must be bool (True = blocked) or float (added to the scores), got "
                f"{mask.dtype}; convert it with .bool() if nonzero means blocked"
            )
        if mask.device != query.device:
            raise ValueError(
                f"{name} must be on the query's device {query.device}, got {mask.device}"
            )
    if attn_mask is not None:
        _check_attn_mask_shape(attn_mask, sizes)
    if key_padding_mask is not None:
        N, _, _, S = sizes
        expected = (S,) if query.ndim == 2 else (N, S)
        if key_padding_mask.shape != expected:
            raise ValueError(
                f"key_padding_mask must have shape {expected}, one entry a key, got "
                f"{tuple(key_padding_mask.shape)}"
            )


def _check_attn_mask_shape(attn_mask: Tensor, sizes: Sizes) -> None:
    N, H, L, S = sizes
    shape = attn_mask.shape
    fits = len(shape) <= 4
    for size, full in zip(reversed(shape), (S, L), strict=False):
        fits = fits and size in (1, full)
    if len(shape) == 3:
        fits = fits and (shape[0] in (1, N * H) or (shape[0] == H and H != N))
        if not fits and shape[0] == N:
            raise ValueError(
                f"attn_mask of shape {tuple(shape)} reads as (N, L, S), one mask a sample, which "
                f"is ambiguous beside (N·H, L, S) = ({N * H}, {L}, {S}); use "
                "attn_mask.unsqueeze(1), of shape (N, 1, L, S)"
            )
    elif len(shape) == 4:
        fits = fits and shape[0] in (1, N) and shape[1] in (1, H)
    if not fits:
        raise ValueError(
            f"attn_mask must have shape (L, S) = ({L}, {S}), (N·H, L, S) = ({N * H}, {L}, {S}), or "
            f"one that broadcasts to (N, H, L, S) = ({N}, {H}, {L}, {S}); got {tuple(shape)}"
        )


def warn_if_zeros_and_ones(attn_mask: Tensor | None, key_padding_mask: Tensor | None) -> bool:
    """Warn of a float mask that holds only 0s and 1s, probably meant as a bool one.

    Args:
        attn_mask: Of any shape and dtype, or None.
        key_padding_mask: Likewise.

    Returns:
        Whether a float mask was there to judge by. One of zeros alone says nothing: it means the
        same either way.

    Warns:
        UserWarning: A mask adds 0 or 1 to every score, which blocks nothing.
    """
    judged = False
    for name, mask in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
        if mask is None or mask.dtype == torch.bool:
            continue
        values = mask.detach()
        try:
            if not values.any():
                continue
            suspect = bool(((values == 0) | (values == 1)).all())
        except (RuntimeError, NotImplementedError):  # no values to read: vmap, meta, fake tensors
            return False
        judged = True
        if suspect:
            warnings.warn(
                f"{name} is a float mask of 0s and 1s, which is added to the scores and blocks "
                f"nothing; if 1 is to block, pass {name}.bool(), if 1 is to attend, {name} == 0",
                UserWarning,
                stacklevel=5,  # the line that called the module
            )
    return judged


def merge_masks(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    *,
    is_causal: bool,
    sizes: Sizes,
    like: Tensor,
    extra_keys: int = 0,
) -> tuple[Mask | None, bool]:
    """Make one inside mask of all that blocks.

    Args:
        attn_mask: As ``check_masks`` lets it pass.
        key_padding_mask: (N, S), or (S,) unbatched.
        is_causal: Whether query i sees keys 0..i only.
        sizes: (N, H, L, S), where S counts the keys that the caller gave.
        like: Any tensor of the dtype and device that a float mask is to have.
        extra_keys: How many keys the module adds at the end; every query sees them.

    Returns:
        The mask, broadcastable to (N, H, L, S + extra_keys), and what is left of is_causal: True
        only where there is no mask, since kernels take one or the other.
    """
    if attn_mask is None and key_padding_mask is None and not (is_causal and extra_keys):
        return None, is_causal
    N, H, L, S = sizes
    blocked: Tensor | None = None
    bias: Tensor | None = None
    if is_causal:
        blocked = torch.ones(L, S, dtype=torch.bool, device=like.device).triu(1)
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
