"""Sinusoidal positions [1]_: sines and cosines of the position, at wavelengths from 2π to 10000·2π.

embedding_i + table[i], with table[i, 2c] = sin(i / 10000^(2c/E)) and table[i, 2c + 1] the cosine of
the same.

Acts on the embeddings; nothing to train; any length, though places never met in training add
vectors never met.

.. [1] Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser and Polosukhin, "Attention Is All
   You Need", 2017, section 3.5. https://arxiv.org/abs/1706.03762
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.ranges import Size


class SinusoidalPositions(nn.Module):
    """Adds a fixed vector to each embedding; any length, nothing to train.

    Args:
        embed_dim: size of an embedding, even or odd.

    Raises:
        ValueError: embed_dim is below 1.
    """

    acts_on = "embeddings"

    def __init__(self, embed_dim: Size) -> None:
        super().__init__()
        if embed_dim < 1:
            raise ValueError(f"embed_dim must be at least 1, got {embed_dim}")
        self.embed_dim = embed_dim

    def forward(
        self, embeddings: Float[Tensor, "N L E"], positions: Int[Tensor, "L"] | None = None
    ) -> Float[Tensor, "N L E"]:
        """Add the vectors of the positions.

        Args:
            embeddings: (N, L, E).
            positions: (L,); None means 0 to L - 1.

        Returns:
            (N, L, E), in the dtype of ``embeddings``.
        """
        if positions is None:
            positions = torch.arange(embeddings.shape[-2], device=embeddings.device)
        return embeddings + sinusoids(positions, self.embed_dim).to(embeddings.dtype)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"embed_dim={self.embed_dim}"


def sinusoids(positions: Int[Tensor, "L"], embed_dim: int) -> Float[Tensor, "L E"]:
    """The vectors of positions, as rows.

    Entry 2i of position p is sin(p / 10000^(2i / embed_dim)), entry 2i + 1 the cosine of the same.
    Where ``embed_dim`` is odd, the last sine has no cosine.
    """
    even = torch.arange(0, embed_dim, 2, device=positions.device)
    angles = positions[:, None] * 10000.0 ** (-even / embed_dim)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :embed_dim]
