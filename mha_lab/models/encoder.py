"""Encoder only: every output token is predicted at once, at its place in the source.

In both directions: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
Causal, it is a language model that is read along the sequence, as for the recall tasks of Arora et
al. 2023, "Zoology".
"""

import warnings
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from mha_lab.models.blocks import EncoderBlock
from mha_lab.models.checks import Activation, Norm
from mha_lab.models.embedding import TokenEmbedding
from mha_lab.models.interface import AttentionFactory, Axes, PositionFactory, SequenceModel
from mha_lab.models.positioned import place
from mha_lab.models.sequences import causal_mask, decode_greedily, padding_mask
from mha_lab.models.stack import Stack
from mha_lab.ranges import BelowOne, Size
from mha_lab.tasks.vocabulary import Vocabulary


class Encoder(SequenceModel):
    """A stack over the source; output token t is read at source position t.

    It is for tasks whose output is no longer than the input, and those that predict along it.

    Args:
        vocab_size: tokens in the vocabulary, special ones counted.
        attention: makes each attention module.
        position: makes the positional encoding.
        embed_dim: width of the model.
        num_heads: attention heads; they divide ``embed_dim``.
        num_layers: blocks.
        feedforward_dim: width inside the feed-forward parts; None means 4 · embed_dim.
        dropout: probability, in the embeddings and in every block.
        norm: ``pre`` or ``post``.
        activation: ``relu`` or ``gelu``.
        is_causal: a position sees itself and what stands before it alone.

    Raises:
        ValueError: a value out of its range.

    Warns:
        UserWarning: it is not causal and is told no positions.
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
        is_causal: bool = False,
    ) -> None:
        super().__init__()
        self.is_causal = is_causal
        places = place(position, embed_dim, num_heads, is_causal=is_causal)
        if not (is_causal or places.are_told):
            warnings.warn(
                "an encoder without positions gives equal tokens of a source equal outputs, "
                "wherever they stand, so it cannot learn what depends on their place (sorting "
                "does); choose position=learned or another, or model=encoder_decoder",
                UserWarning,
                stacklevel=2,
            )
        block = partial(
            EncoderBlock,
            embed_dim,
            num_heads,
            attention=attention,
            feedforward_dim=feedforward_dim,
            dropout=dropout,
            norm=norm,
            activation=activation,
            is_causal=is_causal,
            encoding=places.layers,
        )
        self.encoder = Stack(block, embed_dim=embed_dim, num_layers=num_layers, norm=norm)
        self.embedding = TokenEmbedding(
            vocab_size, embed_dim, position=places.embeddings, dropout=dropout
        )
        self.output = nn.Linear(embed_dim, vocab_size)

    def forward(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> Float[Tensor, "N T V"]:
        """Logits of each target token, given the source alone.

        Raises:
            ValueError: a target longer than its source.
        """
        _check_lengths(source, target)
        return self._predict(source)[:, : target.size(1)]

    def generate(
        self,
        source: Int[Tensor, "N S"],
        *,
        max_length: int,
        blanks: Bool[Tensor, "N T"] | None = None,
        use_cache: bool = True,
    ) -> Int[Tensor, "N T"]:
        """The most likely tokens: each row up to its ``<eos>``, then ``<pad>``.

        All are read in one pass, so there is nothing that a cache could save.
        """
        logits: Tensor | None = None

        def next_logits(output: Tensor) -> Tensor:
            nonlocal logits
            if logits is None:
                logits = self._predict(source)
            return logits[:, output.size(1)]

        return decode_greedily(
            self,
            next_logits,
            rows=len(source),
            max_length=min(max_length, source.size(1)),
            device=source.device,
            blanks=blanks,
        )

    def attention_axes(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> dict[str, Axes]:
        """The token ids on the axes of each attention call."""
        return {"encoder.*.self_attn": (source, source)}

    def _predict(self, source: Int[Tensor, "N S"]) -> Float[Tensor, "N S V"]:
        masks: dict[str, Any] = {"key_padding_mask": padding_mask(source)}
        if self.is_causal:  # padding follows every real token: the causal mask hides it already
            masks = {"attn_mask": causal_mask(source.size(1), source.device), "is_causal": True}
        x = self.encoder(self.embedding(source), **masks)
        logits: Tensor = self.output(x)
        return logits


def _check_lengths(source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]) -> None:
    is_longer = target.size(1) > source.size(1)
    if not (is_longer or source.is_cuda or torch.compiler.is_compiling()):
        # Row by row, where looking at the numbers costs no wait for the device.
        lengths = [(ids != Vocabulary.PAD).sum(1) for ids in (source, target)]
        is_longer = bool((lengths[1] > lengths[0]).any())
    if is_longer:
        raise ValueError(
            "model=encoder reads each output token at a source position, so no target may be "
            "longer than its source; choose model=encoder_decoder or model=decoder"
        )
