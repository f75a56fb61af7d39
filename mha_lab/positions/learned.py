"""Learned positions: a trained vector for each, as in BERT and GPT-2.

Gehring, Auli, Grangier, Yarats and Dauphin (2017), "Convolutional Sequence to Sequence Learning",
section 3.1.
"""

from jaxtyping import Float
from torch import Tensor, nn


class LearnedPositions(nn.Module):
    """Adds a trained vector to each embedding, one for each position.

    Args:
        embed_dim: size of an embedding.
        max_length: how many positions there are; no longer sequence can be encoded.

    Raises:
        ValueError: embed_dim or max_length is below 1.
    """

    def __init__(self, embed_dim: int, *, max_length: int = 256) -> None:
        super().__init__()
        for name, value in (("embed_dim", embed_dim), ("max_length", max_length)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.table = nn.Embedding(max_length, embed_dim)

    @property
    def max_length(self) -> int:
        """The longest sequence that can be encoded."""
        return self.table.num_embeddings

    def forward(self, embeddings: Float[Tensor, "N L E"]) -> Float[Tensor, "N L E"]:
        """Add the vectors of positions 0 to L - 1.

        Args:
            embeddings: (N, L, E).

        Returns:
            (N, L, E).

        Raises:
            ValueError: L is beyond the table.
        """
        length = embeddings.shape[-2]
        if length > self.max_length:
            raise ValueError(
                f"a sequence of length {length} is longer than position.max_length="
                f"{self.max_length}, which is all that the learned table holds; train with "
                f"position.max_length={length} or more, or with position=sinusoidal"
            )
        return embeddings + self.table.weight[:length]
