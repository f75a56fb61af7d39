"""The norms of the values that the weights of a call are applied to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mha_lab.recording.heads import HeadsOf, as_heads


def norms_of(
    values: Float[Tensor, "N Hkv S D"], shape: tuple[int, int, int, int]
) -> Float[Tensor, "N H S"] | None:
    """The Euclidean norm of each value, for every head that reads it.

    Args:
        values: Projected values; N may be 1 for all samples alike, and Hkv divides H.
        shape: (N, H, L, S) of the weights.

    Returns:
        (N, H, S) in at least float32; None where the values are not those of such weights.
    """
    n, h, _, source = shape
    of_n, of_h, of_source, _ = values.shape
    if of_n not in (1, n) or of_source != source or of_h == 0 or h % of_h:
        return None
    dtype = torch.promote_types(values.dtype, torch.float32)
    norms: Tensor = torch.linalg.vector_norm(values.to(dtype), dim=-1)
    return norms.expand(n, -1, -1).repeat_interleave(h // of_h, 1)


def values_met(
    weights: Float[Tensor, "... L S"], values: Tensor | None, heads_of: HeadsOf
) -> Tensor | None:
    """Values (N, H, S, D) of a matrix product with weights, whose leading axes are broadcast."""
    if values is None:
        return None
    leading = weights.shape[:-2]
    try:
        values = values.expand(*leading, *values.shape[-2:])
    except RuntimeError:  # the weights are broadcast, not the values: several values a weight
        return None
    return as_heads(values, heads_of)


def values_given(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], heads_of: HeadsOf
) -> Tensor | None:
    """Values (N, H, S, D) of a function that says its weights: its argument ``v`` or ``value``."""
    try:
        given = inspect.signature(func).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None
    values = given.get("v", given.get("value"))
    return as_heads(values, heads_of) if isinstance(values, Tensor) and values.ndim > 1 else None
