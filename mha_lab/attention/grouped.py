"""Grouped-query attention [1]_: fewer key and value heads than query heads.

Each serves a group of H / kv_heads query heads that follow one another; with one for all of them it
is multi-query attention [2]_.

.. [1] Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
   Checkpoints", 2023. https://arxiv.org/abs/2305.13245
.. [2] Shazeer, "Fast Transformer Decoding: One Write-Head is All You Need", 2019.
   https://arxiv.org/abs/1911.02150
"""

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mha_lab.projected import Heads, Part, Projected, width_of


def check_kv_heads(kv_heads: int, num_heads: int) -> None:
    """Refuse what cannot be shared out.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is below 1, or does not divide num_heads.
    """
    if not isinstance(kv_heads, int) or isinstance(kv_heads, bool):
        raise TypeError(f"kv_heads must be a whole number, got {kv_heads!r}")
    if kv_heads < 1 or num_heads % kv_heads:
        fitting = ", ".join(str(n) for n in range(1, num_heads + 1) if num_heads % n == 0)
        raise ValueError(
            f"kv_heads must divide num_heads, got kv_heads={kv_heads} and num_heads={num_heads}; "
            f"choose one of {fitting}"
        )


def project_grouped(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Float[Tensor, "P E"],
    bias: Float[Tensor, "P"] | None,
    *,
    head_dim: int,
    maps_per_head: int = 1,
) -> tuple[Projected, ...]:
    """Project with one weight for all three, of which keys and values have as many rows each.

    Args:
        query: (N, L, E), or unbatched (L, E).
        key: (N, S, E) likewise.
        value: (N, S, E) likewise.
        weight: (E + 2·kv_heads·D, E): those of query, key and value, one below the other.
        bias: Theirs, or None.
        head_dim: D.
        maps_per_head: M: into how many each head of q and k is cut.

    Returns:
        Products of the different inputs, one to three, in which lie q (N, M·H, L, D/M),
        k (N, M·kv_heads, S, D/M) and v (N, kv_heads, S, D) in this order; N = 1 if unbatched.
    """
    E = weight.shape[1]
    rows = (weight.shape[0] - E) // 2
    d = head_dim // maps_per_head
    q, k, v = Part("q", E // d, d), Part("k", rows // d, d), Part("v", rows // head_dim, head_dim)
    shares: list[tuple[Tensor, tuple[Part, ...]]]
    if query is key is value:
        shares = [(query, (q, k, v))]
    elif key is value:
        shares = [(query, (q,)), (key, (k, v))]
    else:
        shares = [(query, (q,)), (key, (k,)), (value, (v,))]
    widths = [width_of(parts) for _, parts in shares]
    weights, biases = _shared_out(weight, widths), _shared_out(bias, widths)
    return tuple(
        Projected(_with_batch(F.linear(x, w, b)), parts)
        for (x, parts), w, b in zip(shares, weights, biases, strict=True)
    )


def serve_groups(x: Heads, kv_heads: int, num_heads: int) -> Heads:
    """Repeat each key or value head for the query heads of its group.

    Args:
        x: (N, M·kv_heads, S, D), the M maps of a head side by side.
        kv_heads: How many there are.
        num_heads: H.

    Returns:
        (N, M·H, S, D).
    """
    if kv_heads == num_heads:
        return x
    N, rows, S, width = x.shape
    groups = x.reshape(N, kv_heads, 1, rows // kv_heads, S, width)
    return groups.expand(-1, -1, num_heads // kv_heads, -1, -1, -1).flatten(1, 3)


def join_maps(x: Heads, maps_per_head: int) -> Heads:
    """Lay the parts (N, M·H, L, D/M) into which heads were cut side by side: (N, H, L, D)."""
    if maps_per_head == 1:
        return x
    N, rows, L, width = x.shape
    return x.reshape(N, rows // maps_per_head, maps_per_head, L, width).transpose(2, 3).flatten(3)


def _shared_out(rows: Tensor | None, widths: list[int]) -> Sequence[Any]:
    """The rows of a weight or bias that make each product."""
    if rows is None or len(widths) == 1:
        return [rows] * len(widths)
    return rows.split_with_sizes(widths)


def _with_batch(product: Tensor) -> Tensor:
    return product.unsqueeze(0) if product.ndim == 2 else product
