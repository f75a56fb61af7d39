"""The projections of queries, keys and values, and the keys that a module adds."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mha_lab.projected import Heads


def project_packed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Float[Tensor, "3E E"],
    bias: Float[Tensor, "3E"] | None,
    *,
    num_heads: int,
    batch_first: bool,
) -> tuple[Heads, Heads, Heads]:
    """Project with one weight for all three; inputs that are one tensor, in one product.

    Args:
        query: (N, L, E) or, not batch_first, (L, N, E); unbatched (L, E).
        key: (N, S, E) likewise.
        value: (N, S, E) likewise.
        weight: The weights of query, key and value, (E, E) each, one below the other.
        bias: Their biases (3·E,), or None.
        num_heads: H.
        batch_first: Whether the batch is the first axis.

    Returns:
        q (N, H, L, D), k and v (N, H, S, D), views of the products; N = 1 if unbatched.
    """
    E = weight.shape[1]

    def project(x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
        return split_heads(F.linear(x, weight, bias), num_heads, E, batch_first)

    if query is key is value:
        q, k, v = project(query, weight, bias)
    elif key is value:
        parts = [E, 2 * E]
        w_q, w_kv = weight.split_with_sizes(parts)
        b_q, b_kv = (None, None) if bias is None else bias.split_with_sizes(parts)
        (q,) = project(query, w_q, b_q)
        k, v = project(key, w_kv, b_kv)
    else:
        biases = (None, None, None) if bias is None else bias.chunk(3)
        q, k, v = (
            project(*each)[0]
            for each in zip((query, key, value), weight.chunk(3), biases, strict=True)
        )
    return q, k, v


def project_apart(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weights: tuple[Tensor, Tensor, Tensor],
    bias: Float[Tensor, "3E"] | None,
    *,
    num_heads: int,
    batch_first: bool,
) -> tuple[Heads, Heads, Heads]:
    """Project keys and values that have widths of their own; shapes as in ``project_packed``.

    Args:
        query: (N, L, E).
        key: (N, S, kdim).
        value: (N, S, vdim).
        weights: (E, E), (E, kdim) and (E, vdim).
        bias: Their biases (3·E,), or None.
        num_heads: H.
        batch_first: Whether the batch is the first axis.
    """
    E = weights[0].shape[0]
    biases = (None, None, None) if bias is None else bias.chunk(3)
    q, k, v = (
        split_heads(F.linear(x, w, b), num_heads, E, batch_first)[0]
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    return q, k, v


def split_heads(
    projected: Tensor, num_heads: int, embed_dim: int, batch_first: bool
) -> tuple[Tensor, ...]:
    """Cut a product (N, L, n·E) or (L, N, n·E) into n views (N, H, L, D).

    Cut so, their gradients lie as kernels leave them and are joined by one copy.
    """
    if projected.ndim == 2:
        projected = projected.unsqueeze(0 if batch_first else 1)
    first, second, width = projected.shape
    n, D = width // embed_dim, embed_dim // num_heads
    parts = (
        (projected.view(first, second, num_heads, D),)
        if n == 1
        else projected.view(first, second, n, num_heads, D).unbind(2)
    )
    if batch_first:
        return tuple(part.transpose(1, 2) for part in parts)
    return tuple(part.permute(1, 2, 0, 3) for part in parts)


def join_heads(output: Heads, batch_first: bool) -> Tensor:
    """Lay the heads' outputs (N, H, L, D) side by side: (N, L, E), or (L, N, E)."""
    return output.permute((0, 2, 1, 3) if batch_first else (2, 0, 1, 3)).flatten(2)


def add_keys(x: Heads, bias: Float[Tensor, "1 1 E"] | None, add_zero: bool) -> Heads:
    """Append a learned key (or value) and one of zeros.

    Args:
        x: Keys or values (N, H, S, D).
        bias: What to append first, (1, 1, E), or None.
        add_zero: Whether to append zeros last.

    Returns:
        (N, H, S + 0, 1 or 2, D).
    """
    N, H, _, D = x.shape
    parts = [x]
    if bias is not None:
        parts.append(bias.to(x.dtype).view(1, H, 1, D).expand(N, H, 1, D))
    if add_zero:
        parts.append(x.new_zeros(N, H, 1, D))
    return torch.cat(parts, dim=2) if len(parts) > 1 else x
