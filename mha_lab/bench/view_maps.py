"""Maps to be shown, made up: causal, and sharp enough to be looked at."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mha_lab.maps.attention_map import AttentionMap
    from mha_lab.view.gallery import Gallery


def made_maps(layers: int, heads: int, length: int) -> "Gallery[AttentionMap]":
    """A map of each layer, with tokens."""
    from mha_lab.maps.attention_map import AttentionMap
    from mha_lab.view.gallery import Gallery

    weights, tokens = causal_weights(layers, heads, length)
    return Gallery(
        AttentionMap(f"layers.{i}.attn", one).with_tokens([tokens], [tokens])
        for i, one in enumerate(weights)
    )


def causal_weights(layers: int, heads: int, length: int) -> tuple[list[Any], list[str]]:
    """Causal weights (1, heads, length, length) of each layer, and tokens."""
    import torch

    torch.manual_seed(0)
    scores = torch.randn(layers, 1, heads, length, length) * 2
    blocked = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(blocked, -torch.inf).softmax(-1)
    return list(weights), [f"token{i}" for i in range(length)]
