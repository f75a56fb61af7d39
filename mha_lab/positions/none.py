"""No positional encoding, for models whose mask tells the order, and to see what breaks without.

embedding_i, as it is. A causal mask alone lets a decoder count positions [1]_; without one, equal
tokens are all the same to attention, wherever they stand.

Acts on the embeddings, by leaving them; any length.

.. [1] Haviv, Ram, Press, Izsak and Levy, "Transformer Language Models without Positional Encodings
   Still Learn Positional Information", 2022. https://arxiv.org/abs/2203.16634
"""

from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.ranges import Size


class NoPositions(nn.Module):
    """Returns the embeddings as they are.

    Args:
        embed_dim: size of an embedding; any.
    """

    acts_on = "embeddings"
    reads_positions = False

    def __init__(self, embed_dim: Size) -> None:
        super().__init__()
        self.embed_dim = embed_dim

    def forward(
        self, embeddings: Float[Tensor, "N L E"], positions: Int[Tensor, "L"] | None = None
    ) -> Float[Tensor, "N L E"]:
        """Return ``embeddings``, (N, L, E), unchanged; positions, (L,), are not read."""
        return embeddings

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"embed_dim={self.embed_dim}"
