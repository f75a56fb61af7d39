"""The call that these mechanisms take, from inputs and masks to heads and back."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from mha_lab.attention.cache import Cache
from mha_lab.attention.multihead.checks import check_inputs
from mha_lab.attention.multihead.masks import Sizes, check_masks
from mha_lab.attention.multihead.projection import project_packed
from mha_lab.attention.states.masks import Seen, read_masks
from mha_lab.projected import Heads


class Call(NamedTuple):
    """One call: its heads, and who may see what.

    Attributes:
        q: (N, H, L, D).
        k: (N, H, S, D).
        v: (N, H, S, D).
        seen: Which keys count, and whether the call is causal.
    """

    q: Heads
    k: Heads
    v: Heads
    seen: Seen


class Packed(Protocol):
    """A module that projects query, key and value with one weight."""

    num_heads: int
    in_proj_weight: nn.Parameter
    in_proj_bias: nn.Parameter


def project(
    module: Packed,
    mechanism: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    *,
    is_causal: bool,
    need_weights: bool,
    cache: Cache | None,
) -> Call:
    """Check a call, project its inputs with the module's weight and read its masks.

    Args:
        module: Whose call it is.
        mechanism: What refuses, for the sentence.
        query: (N, L, E), or unbatched (L, E).
        key: (N, S, E) likewise.
        value: (N, S, E) likewise.
        key_padding_mask: (N, S), True = blocked; S counts the keys of a cache too.
        attn_mask: Any that ``read_masks`` takes.
        is_causal: Whether query i sees keys 0..i only.
        need_weights: Whether weights are asked for.
        cache: Whose state has taken in earlier keys, or None.

    Raises:
        TypeError: An argument is of a wrong type or dtype.
        ValueError: A shape does not fit, a mask is one that a state cannot take, or weights are
            asked for of keys that only a state has.
    """
    weight, H = module.in_proj_weight, module.num_heads
    E = weight.shape[1]
    check_inputs(query, key, value, widths=(E, E, E), batch_first=True, like=weight)
    q, k, v = project_packed(
        query, key, value, weight, module.in_proj_bias, num_heads=H, batch_first=True
    )
    sizes = Sizes(q.shape[0], H, q.shape[2], k.shape[2])
    if cache is not None and cache.length:
        _require_no_weights(mechanism, need_weights)
        if key_padding_mask is not None:
            check_masks(None, key_padding_mask, query, sizes._replace(S=cache.length + sizes.S))
            key_padding_mask = key_padding_mask[..., cache.length :]  # the state heeded the rest
    check_masks(attn_mask, key_padding_mask, query, sizes)
    seen = read_masks(
        attn_mask, key_padding_mask, is_causal=is_causal, sizes=sizes, like=q, mechanism=mechanism
    )
    return Call(q, k, v, seen)


def _require_no_weights(mechanism: str, need_weights: bool) -> None:
    if need_weights:
        raise ValueError(
            f"after the first call with a cache {mechanism} has a state in place of earlier keys, "
            "so there is no weight of each; choose need_weights=False, or call it without a cache"
        )


def packed_projection(embed_dim: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Weight (3·E, E) and bias (3·E,) of query, key and value, drawn as torch draws them."""
    weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim))
    nn.init.xavier_uniform_(weight)
    return weight, nn.Parameter(torch.zeros(3 * embed_dim))


def shaped(
    output: Tensor, weights: Tensor | None, query: Tensor, average: bool
) -> tuple[Tensor, Tensor | None]:
    """What a call returns: without a batch if the query had none, weights averaged if wanted."""
    if weights is not None and average:
        weights = weights.mean(1)
    if query.ndim == 2:
        return output.squeeze(0), None if weights is None else weights.squeeze(0)
    return output, weights
