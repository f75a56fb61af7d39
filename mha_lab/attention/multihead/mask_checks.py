"""Whether the masks that a caller gives fit the call, and are what was meant."""

import warnings
from typing import NamedTuple

import torch
from torch import Tensor


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
