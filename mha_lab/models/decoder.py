"""Decoder only: one causal stack over ``source <sep> target``, as in GPT.

Paper: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training".
"""

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
from mha_lab.models.sequences import causal_masks, decode_greedily, fill, to_fill
from mha_lab.models.stack import Stack
from mha_lab.ranges import BelowOne, Size
from mha_lab.tasks.vocabulary import Vocabulary


class Decoder(SequenceModel):
    """A language model that goes on after ``source <sep>`` with the target.

    Args:
        vocab_size: tokens in the vocabulary, special ones counted.
        attention: makes each attention module.
        position: makes the positional encoding; positions run on from source to target.
        embed_dim: width of the model.
        num_heads: attention heads; they divide ``embed_dim``.
        num_layers: blocks.
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
        places = place(position, embed_dim, num_heads, is_causal=True)
        block = partial(
            EncoderBlock,
            embed_dim,
            num_heads,
            attention=attention,
            feedforward_dim=feedforward_dim,
            dropout=dropout,
            norm=norm,
            activation=activation,
            is_causal=True,
            encoding=places.layers,
        )
        self.decoder = Stack(block, embed_dim=embed_dim, num_layers=num_layers, norm=norm)
        self.embedding = TokenEmbedding(
            vocab_size, embed_dim, position=places.embeddings, dropout=dropout
        )
        self.output = nn.Linear(embed_dim, vocab_size)

    def forward(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> Float[Tensor, "N T V"]:
        """Logits of each target token, given the source and the target's earlier tokens."""
        x = self._read(join(source, target))
        # <sep> stands where the source's <eos> stood; from there on the target is predicted.
        steps = torch.arange(target.size(1), device=target.device)
        where = (_source_lengths(source) + steps)[..., None].expand(-1, -1, x.size(-1))
        logits: Tensor = self.output(x.gather(1, where))
        return logits

    def generate(
        self,
        source: Int[Tensor, "N S"],
        *,
        max_length: int,
        blanks: Bool[Tensor, "N T"] | None = None,
        use_cache: bool = True,
    ) -> Int[Tensor, "N T"]:
        """Decode greedily: each row up to its ``<eos>``, then ``<pad>``."""
        caches = self.decoder.new_caches() if use_cache and self.embedding.takes_start else None
        if caches is not None:
            wanted = to_fill(len(source), max_length, source.device, blanks)
            return self._generate_with(caches, source, wanted)

        def next_logits(output: Tensor) -> Tensor:
            # The last column is what is asked for; its content is not read.
            logits: Tensor = self(source, nn.functional.pad(output, (0, 1)))
            return logits[:, -1]

        return decode_greedily(
            self,
            next_logits,
            rows=len(source),
            max_length=max_length,
            device=source.device,
            blanks=blanks,
        )

    def _generate_with(
        self, caches: list[Any], source: Int[Tensor, "N S"], wanted: Int[Tensor, "N T"]
    ) -> Int[Tensor, "N T"]:
        """Decode column by column of ``source <sep> target``, as Llama's first code does.

        So all rows are at the same position, whatever the lengths of their sources: where a row is
        still in its source, the next token is given.
        """
        lengths = _source_lengths(source)
        given = join(source, nn.functional.pad(wanted, (0, 1)))

        def next_logits(output: Tensor) -> Tensor:
            logits: Tensor = self.output(self._read(output, caches)[:, -1])
            return logits

        columns = fill(self, next_logits, given, start=int(lengths.min()) + 1)
        columns = nn.functional.pad(columns, (0, given.size(1) - columns.size(1)))
        steps = torch.arange(1, wanted.size(1) + 1, device=source.device)
        output = columns.gather(1, lengths + steps)
        ends = (output == Vocabulary.EOS).any(0).nonzero()
        is_open = (output != Vocabulary.EOS).all(1).any()
        return output if is_open else output[:, : int(ends.max()) + 1]

    def _read(
        self, sequence: Int[Tensor, "N L"], caches: list[Any] | None = None
    ) -> Float[Tensor, "N l E"]:
        """What the stack makes of a sequence; of that alone which is not in the caches."""
        start = 0 if caches is None else caches[0].own.length
        # Padding follows every real token: the causal mask hides it already.
        output: Tensor = self.decoder(
            self.embedding(sequence[:, start:], start),
            **causal_masks(sequence.size(1), start, sequence.device),
            caches=caches,
        )
        return output

    def attention_axes(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> dict[str, Axes]:
        """The token ids on the axes of each attention call."""
        sequence = join(source, target)
        return {"decoder.*.self_attn": (sequence, sequence)}


def join(source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]) -> Int[Tensor, "N S+T-1"]:
    """Write ``source <sep> target`` row by row, with all padding at the end.

    The source's ``<eos>`` gives way to ``<sep>``; the target's last column, which nothing is
    predicted from, is left out.
    """
    rows, width = source.size(0), source.size(1) + target.size(1) - 1
    sep = source.new_full((rows, 1), Vocabulary.SEP)
    pad = source.new_full((rows, 1), Vocabulary.PAD)
    parts = torch.cat([source, sep, target[:, :-1], pad], dim=1)
    lengths = _source_lengths(source)
    column = torch.arange(width, device=source.device).expand(rows, width)
    # Left of <sep> a column holds the source; from <sep> on, what stands after the whole source.
    after = (column - lengths + source.size(1)).clamp(max=parts.size(1) - 1)
    return parts.gather(1, torch.where(column < lengths, column, after))


def _source_lengths(source: Int[Tensor, "N S"]) -> Int[Tensor, "N 1"]:
    """The tokens of each source, its ``<eos>`` not counted."""
    return ((source != Vocabulary.PAD).sum(1, keepdim=True) - 1).clamp(min=0)
