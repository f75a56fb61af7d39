"""Transformer blocks that take any attention with torch's call.

Paper: Vaswani et al. 2017, "Attention Is All You Need" (post-norm); Xiong et al. 2020, "On Layer
Normalization in the Transformer Architecture" (pre-norm). With copied weights, EncoderBlock and
DecoderBlock equal ``nn.TransformerEncoderLayer`` and ``nn.TransformerDecoderLayer``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.models.interface import AttentionFactory

NORMS = ("pre", "post")
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}


def causal_mask(length: int, device: torch.device) -> Bool[Tensor, "L L"]:
    """The mask under which no position sees a later one: True above the diagonal (blocked)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, at each position alone.

    Args:
        embed_dim: width of input and output.
        feedforward_dim: width between the two maps.
        dropout: probability of dropping a number between the two maps.
        activation: ``relu`` or ``gelu``.
    """

    def __init__(
        self,
        embed_dim: int,
        feedforward_dim: int,
        *,
        dropout: float = 0.0,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.linear1 = nn.Linear(embed_dim, feedforward_dim)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(feedforward_dim, embed_dim)

    def forward(self, x: Float[Tensor, "N L E"]) -> Float[Tensor, "N L E"]:
        """Map each position."""
        output: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return output


class Residual(nn.Module):
    """Adds what a sublayer finds to its input: ``x + f(norm(x))``, or post: ``norm(x + f(x))``."""

    def __init__(self, embed_dim: int, *, dropout: float, norm: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.is_pre = norm == "pre"

    def forward(
        self, x: Float[Tensor, "N L E"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "N L E"]:
        """Apply the sublayer, its norm and the sum."""
        if self.is_pre:
            return x + self.dropout(sublayer(self.norm(x)))  # type: ignore[no-any-return]
        return self.norm(x + self.dropout(sublayer(x)))  # type: ignore[no-any-return]


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward, each with residual and LayerNorm.

    Under a causal mask it is the block of a decoder-only model as well.

    Args:
        embed_dim: width of input and output.
        num_heads: attention heads.
        attention: makes the attention module.
        feedforward_dim: width inside the feed-forward part; None means 4 · embed_dim.
        dropout: probability, in the attention weights, the feed-forward part and before each sum.
        norm: ``pre`` or ``post``.
        activation: ``relu`` or ``gelu``.

    Raises:
        ValueError: a value out of its range; see ``check_block``.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        attention: AttentionFactory,
        feedforward_dim: int | None = None,
        dropout: float = 0.0,
        norm: str = "pre",
        activation: str = "relu",
    ) -> None:
        super().__init__()
        feedforward_dim = 4 * embed_dim if feedforward_dim is None else feedforward_dim
        check_block(embed_dim, num_heads, feedforward_dim, dropout, norm, activation)
        residual = partial(Residual, embed_dim, dropout=dropout, norm=norm)
        self.self_attn = attention(embed_dim, num_heads, dropout=dropout)
        self.self_residual = residual()
        self.feedforward = FeedForward(
            embed_dim, feedforward_dim, dropout=dropout, activation=activation
        )
        self.feedforward_residual = residual()

    def forward(
        self,
        x: Float[Tensor, "N L E"],
        *,
        key_padding_mask: Bool[Tensor, "N L"] | None = None,
        attn_mask: Bool[Tensor, "L L"] | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "N L E"]:
        """Map a sequence.

        Args:
            x: the sequence.
            key_padding_mask: True where a key is padding.
            attn_mask: True where a query may not see a key.
            is_causal: says that ``attn_mask`` is the causal mask.
        """
        masks = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
        x = self.self_residual(
            x, lambda y: attend(self.self_attn, y, y, is_causal=is_causal, **masks)
        )
        return self.feedforward_residual(x, self.feedforward)  # type: ignore[no-any-return]


class DecoderBlock(nn.Module):
    """Self-attention, cross-attention to a memory, then feed-forward; as in ``EncoderBlock``.

    Args:
        embed_dim: width of input, memory and output.
        num_heads: attention heads.
        attention: makes the attention modules.
        feedforward_dim: width inside the feed-forward part; None means 4 · embed_dim.
        dropout: probability, in the attention weights, the feed-forward part and before each sum.
        norm: ``pre`` or ``post``.
        activation: ``relu`` or ``gelu``.

    Raises:
        ValueError: a value out of its range; see ``check_block``.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        attention: AttentionFactory,
        feedforward_dim: int | None = None,
        dropout: float = 0.0,
        norm: str = "pre",
        activation: str = "relu",
    ) -> None:
        super().__init__()
        feedforward_dim = 4 * embed_dim if feedforward_dim is None else feedforward_dim
        check_block(embed_dim, num_heads, feedforward_dim, dropout, norm, activation)
        residual = partial(Residual, embed_dim, dropout=dropout, norm=norm)
        self.self_attn = attention(embed_dim, num_heads, dropout=dropout)
        self.self_residual = residual()
        self.cross_attn = attention(embed_dim, num_heads, dropout=dropout)
        self.cross_residual = residual()
        self.feedforward = FeedForward(
            embed_dim, feedforward_dim, dropout=dropout, activation=activation
        )
        self.feedforward_residual = residual()

    def forward(
        self,
        x: Float[Tensor, "N T E"],
        memory: Float[Tensor, "N S E"],
        *,
        key_padding_mask: Bool[Tensor, "N T"] | None = None,
        attn_mask: Bool[Tensor, "T T"] | None = None,
        is_causal: bool = False,
        memory_key_padding_mask: Bool[Tensor, "N S"] | None = None,
    ) -> Float[Tensor, "N T E"]:
        """Map a sequence in the light of a memory.

        Args:
            x: the sequence.
            memory: what the encoder made of the source.
            key_padding_mask: True where a position of x is padding.
            attn_mask: True where a position of x may not see another one.
            is_causal: says that ``attn_mask`` is the causal mask.
            memory_key_padding_mask: True where a position of the memory is padding.
        """
        masks = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
        x = self.self_residual(
            x, lambda y: attend(self.self_attn, y, y, is_causal=is_causal, **masks)
        )
        x = self.cross_residual(
            x,
            lambda y: attend(self.cross_attn, y, memory, key_padding_mask=memory_key_padding_mask),
        )
        return self.feedforward_residual(x, self.feedforward)  # type: ignore[no-any-return]


class Stack(nn.Module):
    """Blocks one after the other, and a final LayerNorm where they are pre-norm.

    Args:
        make_block: makes one block; called ``num_layers`` times.
        embed_dim: width of the blocks.
        num_layers: how many.
        norm: ``pre`` or ``post``, as the blocks.

    Raises:
        ValueError: ``num_layers`` below 1.
    """

    def __init__(
        self, make_block: Callable[[], nn.Module], *, embed_dim: int, num_layers: int, norm: str
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"num_layers must be at least 1, got {num_layers}")
        self.layers = nn.ModuleList([make_block() for _ in range(num_layers)])
        self.norm = nn.LayerNorm(embed_dim) if norm == "pre" else nn.Identity()

    def forward(
        self, x: Float[Tensor, "N L E"], *inputs: Any, **masks: Any
    ) -> Float[Tensor, "N L E"]:
        """Hand ``inputs`` and ``masks`` to every block."""
        for layer in self.layers:
            x = layer(x, *inputs, **masks)
        output: Tensor = self.norm(x)
        return output


def attend(
    module: nn.Module, query: Float[Tensor, "N L E"], memory: Float[Tensor, "N S E"], **masks: Any
) -> Float[Tensor, "N L E"]:
    """One attention call, without weights: what wants to see them records the call."""
    output: Tensor = module(query, memory, memory, need_weights=False, **masks)[0]
    return output


def check_block(
    embed_dim: int, num_heads: int, feedforward_dim: int, dropout: float, norm: str, activation: str
) -> None:
    """Refuse what no block can be built from.

    Raises:
        ValueError: a dimension below 1, ``embed_dim`` not divisible by ``num_heads``, ``dropout``
            outside [0, 1), or an unknown ``norm`` or ``activation``.
    """
    dimensions = {
        "embed_dim": embed_dim,
        "num_heads": num_heads,
        "feedforward_dim": feedforward_dim,
    }
    for name, value in dimensions.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if embed_dim % num_heads:
        raise ValueError(
            f"embed_dim must be divisible by num_heads, got embed_dim={embed_dim} and "
            f"num_heads={num_heads}"
        )
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {dropout}")
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
