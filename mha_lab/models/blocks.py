"""Transformer blocks that take any attention with torch's call.

Paper: Vaswani et al. 2017, "Attention Is All You Need". With copied weights, EncoderBlock and
DecoderBlock equal ``nn.TransformerEncoderLayer`` and ``nn.TransformerDecoderLayer``.
"""

from functools import partial
from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.attention.cache import Cache, takes_cache
from mha_lab.models.checks import check_block, check_use
from mha_lab.models.interface import AttentionFactory
from mha_lab.models.positioned import EncodingMaker, attend_with_positions, self_attention
from mha_lab.models.sublayers import FeedForward, Residual, attend


class BlockCache(NamedTuple):
    """What the attention modules of one block keep while a sequence is decoded.

    Attributes:
        own: of self-attention.
        cross: of cross-attention, whose keys never change.
    """

    own: Cache
    cross: Cache


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
        is_causal: whether its self-attention will see earlier positions only.
        encoding: gives the positional encoding that acts inside self-attention, if any.

    Raises:
        ValueError: a value out of its range, or an attention that has no meaning here; see
            ``check_block`` and ``check_use``.
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
        is_causal: bool = False,
        encoding: EncodingMaker | None = None,
    ) -> None:
        super().__init__()
        check_block(
            embed_dim=embed_dim,
            num_heads=num_heads,
            feedforward_dim=feedforward_dim,
            dropout=dropout,
            norm=norm,
            activation=activation,
        )
        residual = partial(Residual, embed_dim, dropout=dropout, norm=norm)
        self.num_heads = num_heads
        self.self_attn, self.position = self_attention(
            attention, embed_dim, num_heads, dropout=dropout, encoding=encoding
        )
        check_use(self.self_attn, is_causal=is_causal, is_cross=False)
        self.self_residual = residual()
        self.feedforward = FeedForward(
            embed_dim, feedforward_dim or 4 * embed_dim, dropout=dropout, activation=activation
        )
        self.feedforward_residual = residual()

    def forward(
        self,
        x: Float[Tensor, "N L E"],
        *,
        key_padding_mask: Bool[Tensor, "N L"] | None = None,
        attn_mask: Bool[Tensor, "L L"] | None = None,
        is_causal: bool = False,
        cache: BlockCache | None = None,
    ) -> Float[Tensor, "N L E"]:
        """Map a sequence.

        Args:
            x: the sequence.
            key_padding_mask: True where a key is padding.
            attn_mask: True where a query may not see a key.
            is_causal: says that ``attn_mask`` is the causal mask.
            cache: holds what came before x; see ``mha_lab.attention.cache``.
        """
        attend_self = partial(
            attend_with_positions,
            self.self_attn,
            self.position,
            num_heads=self.num_heads,
            key_padding_mask=key_padding_mask,
            attn_mask=attn_mask,
            is_causal=is_causal,
            cache=None if cache is None else cache.own,
        )
        x = self.self_residual(x, attend_self)
        return self.feedforward_residual(x, self.feedforward)  # type: ignore[no-any-return]

    def new_cache(self) -> BlockCache | None:
        """An empty cache; None where the attention takes none."""
        return new_cache(self.self_attn)


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
        is_causal: whether its self-attention will see earlier positions only.
        encoding: gives the positional encoding that acts inside self-attention, if any.

    Raises:
        ValueError: a value out of its range, or an attention that has no meaning here; see
            ``check_block`` and ``check_use``.
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
        is_causal: bool = True,
        encoding: EncodingMaker | None = None,
    ) -> None:
        super().__init__()
        check_block(
            embed_dim=embed_dim,
            num_heads=num_heads,
            feedforward_dim=feedforward_dim,
            dropout=dropout,
            norm=norm,
            activation=activation,
        )
        residual = partial(Residual, embed_dim, dropout=dropout, norm=norm)
        self.num_heads = num_heads
        self.self_attn, self.position = self_attention(
            attention, embed_dim, num_heads, dropout=dropout, encoding=encoding
        )
        check_use(self.self_attn, is_causal=is_causal, is_cross=False)
        self.self_residual = residual()
        self.cross_attn = attention(embed_dim, num_heads, dropout=dropout)
        check_use(self.cross_attn, is_causal=False, is_cross=True)
        self.cross_residual = residual()
        self.feedforward = FeedForward(
            embed_dim, feedforward_dim or 4 * embed_dim, dropout=dropout, activation=activation
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
        cache: BlockCache | None = None,
    ) -> Float[Tensor, "N T E"]:
        """Map a sequence in the light of a memory.

        Args:
            x: the sequence.
            memory: what the encoder made of the source.
            key_padding_mask: True where a position of x is padding.
            attn_mask: True where a position of x may not see another one.
            is_causal: says that ``attn_mask`` is the causal mask.
            memory_key_padding_mask: True where a position of the memory is padding.
            cache: holds what came before x, and keys and values of the memory.
        """
        attend_self = partial(
            attend_with_positions,
            self.self_attn,
            self.position,
            num_heads=self.num_heads,
            key_padding_mask=key_padding_mask,
            attn_mask=attn_mask,
            is_causal=is_causal,
            cache=None if cache is None else cache.own,
        )
        attend_cross = partial(attend, self.cross_attn, key_padding_mask=memory_key_padding_mask)
        if cache is not None:
            attend_cross = partial(attend_cross, cache=cache.cross)
            memory = memory[:, : 0 if cache.cross.length else None]  # once is enough
        x = self.self_residual(x, attend_self)
        x = self.cross_residual(x, lambda y: attend_cross(y, memory))
        return self.feedforward_residual(x, self.feedforward)  # type: ignore[no-any-return]

    def new_cache(self) -> BlockCache | None:
        """An empty cache; None where an attention takes none."""
        return new_cache(self.self_attn, self.cross_attn)


def new_cache(*modules: nn.Module) -> BlockCache | None:
    """An empty cache for attention modules that all take one, else None."""
    return BlockCache(Cache(), Cache()) if all(map(takes_cache, modules)) else None
