"""How an encoding reaches a model: by the embeddings, inside self-attention, or by its float mask.

The encoding is asked where it acts; no model knows one by name.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.cache import Cache, positions_from
from mha_lab.models.checks import check_heads, check_use
from mha_lab.models.interface import AttentionFactory, PositionFactory
from mha_lab.models.sequences import causal_mask
from mha_lab.models.sublayers import attend
from mha_lab.positions.interface import make_encoding, place_of
from mha_lab.positions.none import NoPositions

EncodingMaker = Callable[[], nn.Module]
"""Gives a layer its encoding, the same to all layers where it is shared."""


class Places(NamedTuple):
    """Where the encoding of a stack goes.

    Attributes:
        embeddings: makes what the embeddings pass through.
        layers: gives each layer what acts inside its self-attention; None where nothing does.
        are_told: whether the encoding tells positions at all.
    """

    embeddings: PositionFactory
    layers: EncodingMaker | None
    are_told: bool


def place(position: PositionFactory, embed_dim: int, num_heads: int, *, is_causal: bool) -> Places:
    """Ask an encoding where it acts.

    Args:
        position: makes the encoding.
        embed_dim: width of the model.
        num_heads: attention heads.
        is_causal: whether self-attention sees earlier positions only.

    Raises:
        ValueError: the encoding has no meaning here.
    """
    check_heads(embed_dim, num_heads)
    make = partial(make_encoding, position, embed_dim, num_heads=num_heads, is_causal=is_causal)
    with torch.random.fork_rng(devices=[]):  # only to be asked: no random number is used up
        asked = make()
    check_use(asked, is_causal=is_causal, is_cross=False)
    if place_of(asked) == "embeddings":
        are_told = getattr(asked, "reads_positions", True)
        return Places(lambda embed_dim: make(), None, are_told)
    if not getattr(asked, "is_shared", True):
        return Places(NoPositions, make, are_told=True)
    shared = make()
    return Places(NoPositions, lambda: shared, are_told=True)


def self_attention(
    attention: AttentionFactory,
    embed_dim: int,
    num_heads: int,
    *,
    dropout: float,
    encoding: EncodingMaker | None,
) -> tuple[nn.Module, nn.Module | None]:
    """Make a self-attention module, and hand it the encoding where it takes one.

    Args:
        attention: makes the module.
        embed_dim: width of the model.
        num_heads: attention heads.
        dropout: of the attention weights.
        encoding: gives the encoding; None where there is none inside attention.

    Returns:
        The module, and the encoding whose bias is to join the mask, if any.

    Raises:
        ValueError: the encoding acts inside attention, and this one lets none in.
    """
    if encoding is None:
        return attention(embed_dim, num_heads, dropout=dropout), None
    made = encoding()
    if "position" in inspect.signature(attention).parameters:
        return attention(embed_dim, num_heads, dropout=dropout, position=made), None  # type: ignore[call-arg]
    module = attention(embed_dim, num_heads, dropout=dropout)
    if hasattr(made, "bias"):
        return module, made
    raise ValueError(
        f"{type(made).__name__} acts on {place_of(made)} inside attention, where "
        f"{type(module).__name__} lets nothing in; choose attention=composed, or a position that "
        "adds to the embeddings (sinusoidal) or a bias to the mask (alibi)"
    )


def attend_with_positions(
    module: nn.Module,
    encoding: nn.Module | None,
    x: Float[Tensor, "N L E"],
    *,
    num_heads: int,
    key_padding_mask: Bool[Tensor, "N L"] | None,
    attn_mask: Bool[Tensor, "L L"] | None,
    is_causal: bool,
    cache: Cache | None = None,
) -> Float[Tensor, "N L E"]:
    """Call self-attention, with the encoding's bias in the mask where there is one.

    Args:
        module: of torch's call.
        encoding: has ``bias``; None where none is to join the mask.
        x: (N, L, E), queries, keys and values.
        num_heads: attention heads.
        key_padding_mask: True where a key is padding.
        attn_mask: True where a query may not see a key.
        is_causal: says that ``attn_mask`` is the causal mask.
        cache: holds what came before x.
    """
    own: dict[str, Any] = {} if cache is None else {"cache": cache}
    is_taken = getattr(module, "takes_encoding", False) and not torch.compiler.is_compiling()
    if encoding is not None and is_taken:
        own["encoding"], encoding = encoding, None
        attn_mask = None if is_causal else attn_mask  # said already, and quicker than read
    if encoding is None:
        masks = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
        return attend(module, x, x, is_causal=is_causal, **masks, **own)
    if is_causal and attn_mask is None:
        attn_mask = causal_mask(x.shape[1], x.device)
    bias = _bias(encoding, x, attn_mask, start=0 if cache is None else cache.length)
    # Such a mask is not the causal one, so the call may not say is_causal: torch would drop it.
    if getattr(module, "broadcasts_masks", False):
        mask = bias[None]
        return attend(module, x, x, key_padding_mask=key_padding_mask, attn_mask=mask, **own)
    N, (_, L, S) = len(x), bias.shape
    of_samples = bias.expand(N, num_heads, L, S).reshape(N * num_heads, L, S)
    padding = _as_float(key_padding_mask, bias.dtype)
    return attend(module, x, x, key_padding_mask=padding, attn_mask=of_samples, **own)


def _bias(encoding: nn.Module, x: Tensor, blocked: Tensor | None, *, start: int) -> Tensor:
    of_queries = positions_from(start, x)
    of_keys = torch.arange(start + x.shape[1], device=x.device)
    bias: Tensor = encoding.bias(of_queries, of_keys)  # type: ignore[operator]
    bias = bias.to(x.dtype)
    return bias if blocked is None else bias.masked_fill(blocked, -torch.inf)


def _as_float(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Torch warns of a boolean mask beside a float one."""
    if mask is None:
        return None
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, -torch.inf)
