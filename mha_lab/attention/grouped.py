"""Grouped-query attention [1]_: fewer key and value heads than query heads.

Each serves a group of H / kv_heads query heads that follow one another; with one for all of them it
is multi-query attention [2]_.

.. [1] Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
   Checkpoints", 2023. https://arxiv.org/abs/2305.13245
.. [2] Shazeer, "Fast Transformer Decoding: One Write-Head is All You Need", 2019.
   https://arxiv.org/abs/1911.02150
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mha_lab.attention.multihead.projection import Heads


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
) -> tuple[Heads, Heads, Heads]:
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
        q (N, M·H, L, D/M), k (N, M·kv_heads, S, D/M) and v (N, kv_heads, S, D), views of the
        products; N = 1 if unbatched.
    """
    E = weight.shape[1]
    rows = (weight.shape[0] - E) // 2
    widths = [E, rows, rows]
    if query is key is value:
        products = F.linear(query, weight, bias).split_with_sizes(widths, -1)
    elif key is value:
        parts = [E, 2 * rows]
        w_q, w_kv = weight.split_with_sizes(parts)
        b_q, b_kv = (None, None) if bias is None else bias.split_with_sizes(parts)
        products = (F.linear(query, w_q, b_q), *F.linear(key, w_kv, b_kv).chunk(2, -1))
    else:
        biases = (None,) * 3 if bias is None else bias.split_with_sizes(widths)
        products = tuple(
            F.linear(*each)
            for each in zip(
                (query, key, value), weight.split_with_sizes(widths), biases, strict=True
            )
        )
    q, k, v = products
    d = head_dim // maps_per_head
    return _heads(q, d), _heads(k, d), _heads(v, head_dim)


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


def _heads(product: Tensor, width: int) -> Tensor:
    if product.ndim == 2:
        product = product.unsqueeze(0)
    heads = product.shape[-1] // width
    return product.view(*product.shape[:2], heads, width).transpose(1, 2)
