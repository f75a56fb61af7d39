"""Weights computed under ``torch.func`` transforms, as plain tensors."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

_functorch = torch._C._functorch


def is_transformed(tensor: Tensor) -> bool:
    """Whether a tensor belongs to a ``torch.func`` transform that is running."""
    return bool(_functorch.is_functorch_wrapped_tensor(tensor))


def outside_transforms(weights: Float[Tensor, "N H L S"]) -> Float[Tensor, "M H L S"]:
    """Take weights out of the transforms that they were computed in.

    Args:
        weights: (N, H, L, S) as seen from inside.

    Returns:
        A plain tensor (M, H, L, S); what ``torch.func.vmap`` maps over joins the batch.
    """
    while is_transformed(weights):
        if not _functorch.is_batchedtensor(weights):
            weights = _functorch.get_unwrapped(weights)
            continue
        mapped = _functorch.maybe_get_bdim(weights)
        weights = _functorch.get_unwrapped(weights).movedim(mapped, 0)
    return weights.flatten(0, -4)
