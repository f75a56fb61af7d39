"""Encoder-decoder: masked self-attention over the target, cross-attention to the source.

Paper: Vaswani et al. 2017, "Attention Is All You Need".
"""

from functools import partial
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from mha_lab.models.blocks import DecoderBlock, EncoderBlock
from mha_lab.models.checks import Activation, Norm
from mha_lab.models.embedding import TokenEmbedding
from mha_lab.models.interface import AttentionFactory, Axes, PositionFactory, SequenceModel
from mha_lab.models.positioned import place
from mha_lab.models.sequences import causal_masks, decode_greedily, padding_mask, shift_right
from mha_lab.models.stack import Stack
from mha_lab.ranges import BelowOne, Size


class EncoderDecoder(SequenceModel):
    """The Transformer: an encoder reads the source, a decoder writes the target.

    Args:
        vocab_size: tokens in the vocabulary, special ones counted.
        attention: makes each attention module.
        position: makes each positional encoding.
        embed_dim: width of the model.
        num_heads: attention heads; they divide ``embed_dim``.
        num_layers: blocks in the encoder, and as many in the decoder.
        feedforward_dim: width inside the feed-forward parts; None means 4 · embed_dim.
        dropout: probability, in the embeddings and in every block.
        norm: ``pre`` or ``post``.
        activation: ``relu`` or ``gelu``.

    Raises:
        ValueError: a value out of its range.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        attention: AttentionFactory,
        position: PositionFactory,
        embed_dim: Size,
        num_heads: Size,
        num_layers: Size,
        feedforward_dim: Size | None = None,
        dropout: BelowOne = 0.0,
        norm: Norm = "pre",
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        of_source, of_target = (
            place(position, embed_dim, num_heads, is_causal=is_causal)
            for is_causal in (False, True)
        )
        block = {
            "embed_dim": embed_dim,
            "num_heads": num_heads,
            "attention": attention,
            "feedforward_dim": feedforward_dim,
            "dropout": dropout,
            "norm": norm,
            "activation": activation,
        }
        stack = partial(Stack, embed_dim=embed_dim, num_layers=num_layers, norm=norm)
        self.encoder = stack(partial(EncoderBlock, **block, encoding=of_source.layers))  # type: ignore[arg-type]
        self.decoder = stack(partial(DecoderBlock, **block, encoding=of_target.layers))  # type: ignore[arg-type]
        embedding = partial(TokenEmbedding, vocab_size, embed_dim, dropout=dropout)
        self.source_embedding = embedding(position=of_source.embeddings)
        self.target_embedding = embedding(position=of_target.embeddings)
        self.output = nn.Linear(embed_dim, vocab_size)

    def forward(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> Float[Tensor, "N T V"]:
        """Logits of each target token, given the source and the target's earlier tokens."""
        padding = padding_mask(source)
        return self._decode(self._encode(source, padding), padding, shift_right(target))

    def generate(
        self,
        source: Int[Tensor, "N S"],
        *,
        max_length: int,
        blanks: Bool[Tensor, "N T"] | None = None,
        use_cache: bool = True,
    ) -> Int[Tensor, "N T"]:
        """Decode greedily: each row up to its ``<eos>``, then ``<pad>``."""
        padding = padding_mask(source)
        memory: Tensor | None = None
        can_go_on = use_cache and self.target_embedding.takes_start
        caches = self.decoder.new_caches() if can_go_on else None

        def next_logits(output: Tensor) -> Tensor:
            nonlocal memory
            if memory is None:
                memory = self._encode(source, padding)
            shifted = shift_right(nn.functional.pad(output, (0, 1)))
            return self._decode(memory, padding, shifted, caches)[:, -1]

        return decode_greedily(
            self,
            next_logits,
            rows=len(source),
            max_length=max_length,
            device=source.device,
            blanks=blanks,
        )

    def attention_axes(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> dict[str, Axes]:
        """The token ids on the axes of each attention call."""
        shifted = shift_right(target)
        return {
            "encoder.*.self_attn": (source, source),
            "decoder.*.self_attn": (shifted, shifted),
            "decoder.*.cross_attn": (shifted, source),
        }

    def _encode(
        self, source: Int[Tensor, "N S"], padding: Bool[Tensor, "N S"]
    ) -> Float[Tensor, "N S E"]:
        memory: Tensor = self.encoder(self.source_embedding(source), key_padding_mask=padding)
        return memory

    def _decode(
        self,
        memory: Float[Tensor, "N S E"],
        padding: Bool[Tensor, "N S"],
        shifted: Int[Tensor, "N T"],
        caches: list[Any] | None = None,
    ) -> Float[Tensor, "N T V"]:
        # Padding follows every real token of the target: the causal mask hides it already.
        start = 0 if caches is None else caches[0].own.length
        x = self.decoder(
            self.target_embedding(shifted[:, start:], start),
            memory,
            **causal_masks(shifted.size(1), start, shifted.device),
            memory_key_padding_mask=padding,
            caches=caches,
        )
        logits: Tensor = self.output(x)
        return logits
