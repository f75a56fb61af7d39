"""Learned positions: a trained vector for each, as in BERT and GPT-2.

embedding_i + table[i] [1]_. With ``random_offset``, every training batch starts at a random place
of the table, as in SHAPE [2]_, so that all of it is trained and distances matter more than places.

Acts on the embeddings; no longer sequence than ``max_length``; places beyond those met in training
hold random vectors, unless ``random_offset`` met them.

Deviations from [2]_: it draws an offset for each sequence, and shifts sinusoids, not a table.

.. [1] Gehring, Auli, Grangier, Yarats and Dauphin, "Convolutional Sequence to Sequence Learning",
   2017, section 3.1. https://arxiv.org/abs/1705.03122
.. [2] Kiyono, Kobayashi, Suzuki and Inui, "SHAPE: Shifted Absolute Position Embedding for
   Transformers", 2021. https://arxiv.org/abs/2109.05644
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.distances import reach
from mha_lab.ranges import Size


class LearnedPositions(nn.Module):
    """Adds a trained vector to each embedding, one for each position.

    Args:
        embed_dim: size of an embedding.
        max_length: how many positions there are; no longer sequence can be encoded.
        random_offset: whether training starts at a random place of the table, another every call;
            evaluation starts at 0.

    Raises:
        ValueError: embed_dim or max_length is below 1.
    """

    acts_on = "embeddings"

    def __init__(
        self, embed_dim: Size, *, max_length: Size = 256, random_offset: bool = False
    ) -> None:
        super().__init__()
        for name, value in (("embed_dim", embed_dim), ("max_length", max_length)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.table = nn.Embedding(max_length, embed_dim)
        self.random_offset = random_offset

    @property
    def max_length(self) -> int:
        """The longest sequence that can be encoded."""
        return self.table.num_embeddings

    def forward(
        self, embeddings: Float[Tensor, "N L E"], positions: Int[Tensor, "L"] | None = None
    ) -> Float[Tensor, "N L E"]:
        """Add the vectors of the positions.

        Args:
            embeddings: (N, L, E).
            positions: (L,), below ``max_length``; None means 0 to L - 1, from a random place on
                where ``random_offset`` says so.

        Returns:
            (N, L, E).

        Raises:
            ValueError: L is beyond the table.
        """
        length = embeddings.shape[-2]
        if positions is not None and not self.training:
            length = reach(positions)
        if length > self.max_length:
            raise ValueError(
                f"a sequence of length {length} is longer than position.max_length="
                f"{self.max_length}, which is all that the learned table holds; train with "
                f"position.max_length={length} or more, or with position=sinusoidal"
            )
        if positions is None and self.random_offset and self.training:
            start = torch.randint(self.max_length - length + 1, (), device=embeddings.device)
            positions = start + torch.arange(length, device=embeddings.device)
        rows = self.table.weight[:length] if positions is None else self.table(positions)
        return embeddings + rows
