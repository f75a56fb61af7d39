"""From token ids to vectors that know their place."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.models.interface import PositionFactory


class TokenEmbedding(nn.Module):
    """One vector a token, plus its position.

    Args:
        vocab_size: how many tokens there are.
        embed_dim: width of the vectors.
        position: makes the positional encoding.
        dropout: probability of dropping a number of the sum.
    """

    def __init__(
        self, vocab_size: int, embed_dim: int, *, position: PositionFactory, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(vocab_size, embed_dim)
        self.position = position(embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Int[Tensor, "N L"]) -> Float[Tensor, "N L E"]:
        """Embed token ids."""
        output: Tensor = self.dropout(self.position(self.token(ids)))
        return output
