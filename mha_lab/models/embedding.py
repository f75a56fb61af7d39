"""From token ids to vectors that know their place."""

import inspect

from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.attention.cache import positions_from
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

    def forward(self, ids: Int[Tensor, "N L"], start: int = 0) -> Float[Tensor, "N L E"]:
        """Embed token ids, of which the first column stands at position ``start``."""
        tokens = self.token(ids)
        where = {} if start == 0 else {"positions": positions_from(start, tokens)}
        output: Tensor = self.dropout(self.position(tokens, **where))
        return output

    @property
    def takes_start(self) -> bool:
        """Whether the encoding can be told where a sequence goes on."""
        return "positions" in inspect.signature(self.position.forward).parameters
