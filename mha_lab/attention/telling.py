"""What an encoding tells attention: queries and keys turned, or what is added to their scores."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.attention.cache import Cache, positions_from
from mha_lab.projected import Heads, Projected

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


def turned(position: nn.Module | None, q: Heads, k: Heads, start: int = 0) -> tuple[Heads, Heads]:
    """Queries (N, H, L, D) and keys (N, Hk, S, D) that know where they are, from start on."""
    if not hasattr(position, "rotate"):
        return q, k
    tell: Any = position
    of_q = positions_from(start, q)
    of_k = of_q if q.shape[2] == k.shape[2] else positions_from(start, k)
    turned_q, turned_k = tell.rotate(q, k, of_q, of_k)
    return turned_q, turned_k


def cut_and_turned(
    position: nn.Module | None, projected: tuple[Projected, ...], start: int = 0
) -> tuple[Heads, ...]:
    """Q, k and v, the first two as ``turned`` gives them, sooner where all lie in one product."""
    if len(projected) == 1 and hasattr(position, "rotate_projected"):
        tell: Any = position
        (product, _), *_ = projected
        heads: tuple[Heads, ...] | None
        heads = tell.rotate_projected(projected[0], positions_from(start, product))
        if heads is not None:
            return heads
    q, k, v = (heads for each in projected for heads in each.cut())
    return *turned(position, q, k, start), v


def bias_of(
    position: nn.Module | None, q: Heads, k: Heads, x: Tensor, start: int = 0
) -> Float[Tensor, "..."] | None:
    """What is added to the scores, broadcastable to (N, H, L, S), or None.

    Args:
        position: An encoding, or None.
        q: Projected queries (N, H, L, D).
        k: Projected keys (N, H, S, D).
        x: The query of the call, (N, L, E) or unbatched (L, E), behind those that a cache holds.
        start: Where the first query stands; keys begin at 0.
    """
    tell: Any = position
    q, k, x, *where = told(q, k, x, start)
    if hasattr(position, "score_bias"):
        added: Tensor = tell.score_bias(q, k, x, *where)
        return added
    if hasattr(position, "bias"):
        added = tell.bias(*where)
        return added
    return None


def told(q: Heads, k: Heads, x: Tensor, start: int) -> tuple[Tensor, ...]:
    """What ``score_bias`` is called with: q, k, x (N, L, E), and the positions of both."""
    x = x if x.ndim == 3 else x.unsqueeze(0)
    return q, k, x, positions_from(start, q), positions_from(0, k)


def extend(
    cache: Cache, position: nn.Module | None, x: Tensor, **new: Tensor
) -> tuple[Tensor, ...]:
    """Keep what belongs to new keys, and what an encoding will read of them.

    Args:
        cache: Of the call.
        position: An encoding, or None.
        x: The query of the call, (N, L, E).
        new: As ``Cache.extend`` takes it.

    Returns:
        What belongs to all keys, then x or, where the encoding reads it, all there was of it.
    """
    if not hasattr(position, "score_bias"):
        return *cache.extend(**new), x
    return cache.extend(**new, x=x if x.ndim == 3 else x.unsqueeze(0))
