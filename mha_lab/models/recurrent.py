"""Recurrent baseline: an LSTM encoder-decoder without attention.

Papers: Hochreiter & Schmidhuber 1997, "Long Short-Term Memory"; Sutskever et al. 2014, "Sequence
to Sequence Learning with Neural Networks", which reads the source backwards, as here.
"""

from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from mha_lab.models.checks import check_dropout, check_sizes
from mha_lab.models.encoder_decoder import EncoderDecoder
from mha_lab.models.interface import Axes, SequenceModel
from mha_lab.models.sequences import decode_greedily, shift_right
from mha_lab.ranges import BelowOne, Size
from mha_lab.tasks.vocabulary import Vocabulary

State = tuple[Tensor, Tensor]


class Recurrent(SequenceModel):
    """One LSTM reads the source, another writes the target from the first one's last state.

    Args:
        vocab_size: tokens in the vocabulary, special ones counted.
        embed_dim: width of the embeddings.
        num_layers: LSTM layers in the encoder, and as many in the decoder.
        hidden_dim: width of the LSTMs; None chooses it so that the model has about as many
            parameters as an ``EncoderDecoder`` of the same ``embed_dim`` and ``num_layers``.
        dropout: probability, in the embeddings and between LSTM layers.

    Raises:
        ValueError: a value out of its range.
    """

    uses_attention = False

    def __init__(
        self,
        vocab_size: int,
        *,
        embed_dim: Size,
        num_layers: Size,
        hidden_dim: Size | None = None,
        dropout: BelowOne = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(embed_dim=embed_dim, num_layers=num_layers, hidden_dim=hidden_dim)
        check_dropout(dropout)
        hidden_dim = hidden_dim or matching_hidden_dim(vocab_size, embed_dim, num_layers)
        self.source_embedding = nn.Embedding(vocab_size, embed_dim)
        self.target_embedding = nn.Embedding(vocab_size, embed_dim)
        self.dropout = nn.Dropout(dropout)
        lstm = partial(
            nn.LSTM,
            embed_dim,
            hidden_dim,
            num_layers,
            batch_first=True,
            dropout=dropout if num_layers > 1 else 0.0,
        )
        self.encoder = lstm()
        self.decoder = lstm()
        self.output = nn.Linear(hidden_dim, vocab_size)

    def forward(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> Float[Tensor, "N T V"]:
        """Logits of each target token, given the source and the target's earlier tokens."""
        return self._decode(self._encode(source), shift_right(target))[0]

    def generate(
        self,
        source: Int[Tensor, "N S"],
        *,
        max_length: int,
        blanks: Bool[Tensor, "N T"] | None = None,
        use_cache: bool = True,
    ) -> Int[Tensor, "N T"]:
        """Decode greedily: each row up to its ``<eos>``, then ``<pad>``.

        The state is all that is ever kept, with or without ``use_cache``.
        """
        state: State | None = None

        def next_logits(output: Tensor) -> Tensor:
            nonlocal state
            state = self._encode(source) if state is None else state
            last = shift_right(nn.functional.pad(output, (0, 1)))[:, -1:]
            logits, state = self._decode(state, last)
            return logits[:, -1]

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
        """Nothing: there is no attention."""
        return {}

    def _encode(self, source: Int[Tensor, "N S"]) -> State:
        """The state after the whole source, read backwards."""
        lengths = (source != Vocabulary.PAD).sum(1).clamp(min=1)
        column = torch.arange(source.size(1), device=source.device)
        backwards = (lengths[:, None] - 1 - column).clamp(min=0)
        x = self.dropout(self.source_embedding(source.gather(1, backwards)))
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        state: State = self.encoder(packed)[1]
        return state

    def _decode(
        self, state: State, shifted: Int[Tensor, "N T"]
    ) -> tuple[Float[Tensor, "N T V"], State]:
        x, state = self.decoder(self.dropout(self.target_embedding(shifted)), state)
        return self.output(x), state


def matching_hidden_dim(vocab_size: int, embed_dim: int, num_layers: int) -> int:
    """The LSTM width at which the parameters come nearest to those of an ``EncoderDecoder``."""
    with torch.device("meta"):  # counts parameters without making them
        reference = EncoderDecoder(
            vocab_size,
            attention=nn.MultiheadAttention,
            position=lambda _: nn.Identity(),
            embed_dim=embed_dim,
            num_heads=1,
            num_layers=num_layers,
        )
    wanted = sum(p.numel() for p in reference.parameters())

    def parameters(hidden: int) -> int:
        first = 4 * hidden * (embed_dim + hidden + 2)
        further = 4 * hidden * (2 * hidden + 2) * (num_layers - 1)
        outside = 2 * vocab_size * embed_dim + (hidden + 1) * vocab_size
        return 2 * (first + further) + outside

    hidden = 1
    while parameters(hidden + 1) < wanted:
        hidden += 1
    return min(hidden, hidden + 1, key=lambda h: abs(parameters(h) - wanted))
