"""What an encoding tells attention: queries and keys turned, or what is added to their scores."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention.multihead.projection import Heads

_WAYS = ("rotate", "score_bias", "bias")
"""By which an encoding tells attention where it is."""


def check_position(position: nn.Module | None) -> None:
    """Refuse an encoding that has nothing to tell attention.

    Raises:
        ValueError: It has none of the ways.
    """
    if position is not None and not any(hasattr(position, way) for way in _WAYS):
        raise ValueError(
            f"position must have one of {', '.join(_WAYS)}, got a {type(position).__name__}, "
            "which has none: add it to the embeddings"
        )


def turned(position: nn.Module | None, q: Heads, k: Heads) -> tuple[Heads, Heads]:
    """Queries (N, H, L, D) and keys (N, Hk, S, D) that know where they are."""
    if not hasattr(position, "rotate"):
        return q, k
    tell: Any = position
    turned_q, turned_k = tell.rotate(q, k, count(q), count(k))
    return turned_q, turned_k


def bias_of(
    position: nn.Module | None, q: Heads, k: Heads, x: Tensor
) -> Float[Tensor, "..."] | None:
    """What is added to the scores, broadcastable to (N, H, L, S), or None.

    Args:
        position: An encoding, or None.
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        x: The query of the call, (N, L, E) or unbatched (L, E).
    """
    tell: Any = position
    if hasattr(position, "score_bias"):
        added: Tensor = tell.score_bias(
            q, k, x if x.ndim == 3 else x.unsqueeze(0), count(q), count(k)
        )
        return added
    if hasattr(position, "bias"):
        added = tell.bias(count(q), count(k))
        return added
    return None


def count(x: Heads) -> Tensor:
    """Positions 0, 1, 2, ... of the third axis."""
    return torch.arange(x.shape[2], device=x.device)
