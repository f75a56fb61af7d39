"""Sinusoidal positions: sines and cosines of the position, at wavelengths from 2π to 10000·2π.

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser and Polosukhin (2017), "Attention Is All
You Need", section 3.5.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class SinusoidalPositions(nn.Module):
    """Adds a fixed vector to each embedding; any length, nothing to train.

    Args:
        embed_dim: size of an embedding, even or odd.

    Raises:
        ValueError: embed_dim is below 1.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        if embed_dim < 1:
            raise ValueError(f"embed_dim must be at least 1, got {embed_dim}")
        self.embed_dim = embed_dim

    def forward(self, embeddings: Float[Tensor, "N L E"]) -> Float[Tensor, "N L E"]:
        """Add the vectors of positions 0 to L - 1.

        Args:
            embeddings: (N, L, E).

        Returns:
            (N, L, E), in the dtype of ``embeddings``.
        """
        table = sinusoids(embeddings.shape[-2], self.embed_dim, device=embeddings.device)
        return embeddings + table.to(embeddings.dtype)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"embed_dim={self.embed_dim}"


def sinusoids(
    length: int, embed_dim: int, *, device: torch.device | None = None
) -> Float[Tensor, "L E"]:
    """The vectors of positions 0 to ``length`` - 1, as rows.

    Entry 2i of position p is sin(p / 10000^(2i / embed_dim)), entry 2i + 1 the cosine of the same.
    Where ``embed_dim`` is odd, the last sine has no cosine.
    """
    even = torch.arange(0, embed_dim, 2, device=device)
    angles = torch.arange(length, device=device)[:, None] * 10000.0 ** (-even / embed_dim)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :embed_dim]
