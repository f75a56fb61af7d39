"""Forgetting gate [1]_: each token lets a head forget what came before it, a decay by content.

f_t = σ(w_h·x_t + b_h); score_ij = q_i·k_j / √D + Σ_{l=j+1..i} log f_l. Where f is the same for all
tokens, this is ALiBi with the slope −log f.

Acts on the scores, reading the attention's input; one gate a head and layer; any length; causal
only, as the paper's. Positions are not read: the order of the tokens is what counts. Padding may
stand after the tokens, where the causal mask hides it, not between them.

Deviations: none of the gate. The paper's Pro block (output gate, norms, shifted keys) is left out.

.. [1] Lin, Nikishin, He and Courville, "Forgetting Transformer: Softmax Attention with a Forget
   Gate", 2025. https://arxiv.org/abs/2503.02130
"""

from typing import Any, NamedTuple

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.distances import at_least_float32
from mha_lab.ranges import Size


class ForgettingPositions(nn.Module):
    """Adds the logarithms of the forget gates between key and query.

    Args:
        embed_dim: width E of the attention's input.
        num_heads: heads H, a gate each.
    """

    acts_on = "scores"
    is_shared = False
    reads_positions = False

    def __init__(self, embed_dim: Size, *, num_heads: Size) -> None:
        super().__init__()
        self.gate = nn.Linear(embed_dim, num_heads)

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Say that forgetting has no meaning without a causal mask.

        Raises:
            ValueError: it stands where queries see later keys.
        """
        if not is_causal:
            raise ValueError(
                "position=forgetting forgets what came before, which needs a causal mask; choose "
                "model=decoder, or position=alibi"
            )

    def score_bias(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N H S D"],
        x: Float[Tensor, "N L E"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
    ) -> Float[Tensor, "N H L S"]:
        """What is added to the scores.

        Args:
            q: (N, H, L, D), of the last tokens.
            k: (N, H, S, D), of the same tokens as x.
            x: (N, S, E).
            q_positions: not read.
            k_positions: not read.

        Returns:
            (N, H, L, S), in at least float32; 0 where the key comes later.

        Raises:
            ValueError: keys of other tokens than the queries.
        """
        forgotten = self._forgotten(k, x)
        earlier = x.shape[-2] - q.shape[-2]  # tokens that have no query any more: a cache has them
        rows = forgotten[..., earlier:, None] - forgotten[..., None, :]
        return rows.tril(earlier)

    def in_blocks(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N H S D"],
        x: Float[Tensor, "N L E"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
        *,
        scale: float,
    ) -> "_InBlocks":
        """The same, block by block; what it adds to later keys, which are blocked, is not 0.

        Args:
            q: (N, H, L, D), of the last tokens.
            k: (N, H, S, D), of the same tokens as x.
            x: (N, S, E).
            q_positions: not read.
            k_positions: not read.
            scale: not read.

        Raises:
            ValueError: keys of other tokens than the queries.
        """
        return _InBlocks((self._forgotten(k, x),), x.shape[-2] - q.shape[-2])

    def _forgotten(self, k: Tensor, x: Tensor) -> Tensor:
        """The sums of the gates' logarithms up to each token, (N, H, S)."""
        if k.shape[-2] != x.shape[-2]:
            raise ValueError(
                f"position=forgetting reads the gates of all tokens between key and query, so "
                f"queries and keys must be the same tokens, got {x.shape[-2]} and {k.shape[-2]}"
            )
        return F.logsigmoid(at_least_float32(self.gate(x))).transpose(1, 2).cumsum(-1)


class _InBlocks(NamedTuple):
    """Adds what was forgotten up to the query, and takes away what was up to the key.

    Attributes:
        tensors: The sums up to each token, (N, H, S).
        earlier: How many tokens have no query.
    """

    tensors: tuple[Tensor, ...]
    earlier: int

    def of(self, products: Tensor, block: Any, forgotten: Tensor) -> Tensor:
        """The bias of a block."""
        of_rows, of_keys = self._parts(block, forgotten)
        return of_rows[..., None] - of_keys[..., None, :]

    def add(self, products: Tensor, block: Any, forgotten: Tensor) -> None:
        """Add it in place."""
        of_rows, of_keys = self._parts(block, forgotten)
        products.add_(of_rows[..., None]).sub_(of_keys[..., None, :])

    def back(self, grad: Tensor, kept: None, block: Any, total: Tensor | None) -> None:
        """Each sum's gradient is that of its row, less that of its column."""
        if total is not None:
            of_rows, of_keys = self._parts(block, total)
            of_rows += grad.sum(-1)
            of_keys -= grad.sum(-2)

    def _parts(self, block: Any, forgotten: Tensor) -> tuple[Tensor, Tensor]:
        """Those of the rows (n, h, rows) and of the keys (n, h, keys)."""
        part = forgotten[block.n, block.heads]
        rows = slice(block.rows.start + self.earlier, block.rows.stop + self.earlier)
        return part[..., rows], part[..., block.keys]
