"""No positional encoding, for models whose mask tells the order, and to see what breaks without.

A causal mask alone lets a decoder count positions: Haviv, Ram, Press, Izsak and Levy (2022),
"Transformer Language Models without Positional Encodings Still Learn Positional Information".
"""

from jaxtyping import Float
from torch import Tensor, nn


class NoPositions(nn.Module):
    """Returns the embeddings as they are.

    Args:
        embed_dim: size of an embedding; any.
    """

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.embed_dim = embed_dim

    def forward(self, embeddings: Float[Tensor, "N L E"]) -> Float[Tensor, "N L E"]:
        """Return ``embeddings``, (N, L, E), unchanged."""
        return embeddings

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"embed_dim={self.embed_dim}"
