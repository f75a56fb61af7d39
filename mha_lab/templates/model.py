"""An encoder whose one block is gone through again and again: the same weights at every depth.

Paper: Dehghani et al. 2019, "Universal Transformers".
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from mha_lab.models.blocks import EncoderBlock
from mha_lab.models.checks import check_sizes
from mha_lab.models.embedding import TokenEmbedding
from mha_lab.models.interface import AttentionFactory, Axes, PositionFactory, SequenceModel
from mha_lab.models.positioned import place
from mha_lab.models.sequences import decode_greedily, padding_mask
from mha_lab.ranges import BelowOne, Size


class TemplateModel(SequenceModel):
    """Output token t is read at source position t, so no target may be longer than its source.

    Args:
        vocab_size: tokens in the vocabulary, special ones counted.
        attention: makes the attention module.
        position: makes the positional encoding.
        embed_dim: width of the model.
        num_heads: attention heads; they divide ``embed_dim``.
        num_layers: how often the block is gone through.
        dropout: probability, in the embeddings and in the block.

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
        dropout: BelowOne = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(num_layers=num_layers)
        self.num_layers = num_layers
        # An encoding adds to the embeddings, or acts inside attention: it says which.
        places = place(position, embed_dim, num_heads, is_causal=False)
        self.embedding = TokenEmbedding(
            vocab_size, embed_dim, position=places.embeddings, dropout=dropout
        )
        self.block = EncoderBlock(
            embed_dim, num_heads, attention=attention, dropout=dropout, encoding=places.layers
        )
        self.norm = nn.LayerNorm(embed_dim)
        self.output = nn.Linear(embed_dim, vocab_size)

    def forward(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> Float[Tensor, "N T V"]:
        """Logits of each target token, given the source alone.

        Raises:
            ValueError: a target longer than its source.
        """
        if target.size(1) > source.size(1):
            raise ValueError(
                "each output token is read at a source position, so no target may be longer than "
                "its source; choose model=encoder_decoder or model=decoder"
            )
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
        with torch.no_grad():
            was_training = self.training
            logits = self.eval()._predict(source)
            self.train(was_training)
        return decode_greedily(
            self,
            lambda output: logits[:, output.size(1)],
            rows=len(source),
            max_length=min(max_length, source.size(1)),
            device=source.device,
            blanks=blanks,
        )

    def attention_axes(
        self, source: Int[Tensor, "N S"], target: Int[Tensor, "N T"]
    ) -> dict[str, Axes]:
        """The token ids on the axes of each attention call."""
        return {"block.self_attn": (source, source)}

    def _predict(self, source: Int[Tensor, "N S"]) -> Float[Tensor, "N S V"]:
        mask = padding_mask(source)
        x = self.embedding(source)
        for _ in range(self.num_layers):
            x = self.block(x, key_padding_mask=mask)
        logits: Tensor = self.output(self.norm(x))
        return logits
