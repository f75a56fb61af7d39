"""Masks and pattern together: who may see whom, and what is added to the scores."""

from typing import NamedTuple

import torch
from torch import Tensor

from mha_lab.attention.functional import Mask


class Allowed(NamedTuple):
    """One inside mask, taken apart for weightings.

    Attributes:
        allowed: True where a query may attend; broadcasts to (N, H, L, S), with (L, S) last.
        opened: The same, with rows that see no key open to all: no weighting meets -inf alone.
        bias: What is added to the scores, 0 where blocked, broadcastable to them; or None.
    """

    allowed: Tensor
    opened: Tensor
    bias: Tensor | None


def restrict(
    mask: Mask | None, is_causal: bool, pattern: Tensor | None
) -> tuple[Mask | None, bool]:
    """Let a pattern block besides the masks.

    Args:
        mask: Inside mask, broadcastable to (N, H, L, S), or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        pattern: True where it allows, (L, S) or (H, L, S); None allows all.

    Returns:
        One inside mask, and what is left of is_causal: True only where there is no mask.
    """
    if pattern is None:
        return mask, is_causal
    if is_causal:
        pattern = pattern.tril()
    if mask is None:
        return pattern, False
    if mask.dtype == torch.bool:
        return mask & pattern, False
    return mask.masked_fill(pattern.logical_not(), -torch.inf), False


def take_apart(mask: Mask | None, is_causal: bool, L: int, S: int, device: torch.device) -> Allowed:
    """Read an inside mask.

    Args:
        mask: Broadcastable to (N, H, L, S), or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        L: Queries.
        S: Keys.
        device: Where, if there is no mask.
    """
    if mask is None:
        allowed = torch.ones(L, S, dtype=torch.bool, device=device)
        allowed = allowed.tril() if is_causal else allowed
        return Allowed(allowed, allowed, None)
    mask = mask.expand(*mask.shape[:-2], L, S)
    if mask.dtype == torch.bool:
        return Allowed(mask, open_rows(mask), None)
    allowed = mask != -torch.inf
    return Allowed(allowed, open_rows(allowed), mask.masked_fill(allowed.logical_not(), 0.0))


def with_bias(
    bias: Tensor | None,
    mask: Mask | None,
    is_causal: bool,
    q: Tensor,
    S: int,
    *,
    row_scale: Tensor | None = None,
) -> tuple[Mask | None, bool]:
    """One mask of all that is added to the scores, as a kernel takes it.

    Args:
        bias: Added to the scores, or None.
        mask: Inside mask, or None.
        is_causal: Whether query i sees keys 0..i only; then there is no mask.
        q: Queries (N, H, L, D).
        S: Keys.
        row_scale: What each row of all that is added is multiplied by; None means 1.

    Returns:
        The mask, and what is left of is_causal.
    """
    is_bool = mask is None or mask.dtype == torch.bool
    if bias is None and (is_bool or row_scale is None):
        return mask, is_causal
    allowed, _, added = take_apart(mask, is_causal, q.shape[2], S, q.device)
    total = added if bias is None else bias if added is None else bias + added
    assert total is not None
    total = total if row_scale is None else total * row_scale
    is_free = mask is None and not is_causal
    total = total if is_free else total.masked_fill(allowed.logical_not(), -torch.inf)
    return total.to(q.dtype), False


def open_rows(allowed: Tensor) -> Tensor:
    """Let rows that see no key see every key."""
    return allowed | allowed.any(-1, keepdim=True).logical_not()


def per_map(mask: Tensor, num_heads: int, maps_per_head: int) -> Tensor:
    """Repeat what a mask says of a head for each of its maps."""
    if maps_per_head == 1 or mask.ndim < 3 or mask.shape[-3] != num_heads or num_heads == 1:
        return mask
    return mask.repeat_interleave(maps_per_head, -3)


def number_of_keys(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """How many keys each query may see, (..., L, 1); at least 1."""
    return allowed.sum(-1, keepdim=True).clamp(min=1).to(dtype)
