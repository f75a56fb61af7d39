"""CoPE [1]_: a head counts positions by gates on the content, back from the query.

g_ij = σ(q_i·k_j / √D) for j ≤ i; p_ij = Σ_{l=j..i} g_il, at most P − 1; score_ij = q_i·k_j / √D
+ q_i·e[p_ij], where e between two whole numbers is interpolated. So a position can be the third
noun back rather than the third token.

Acts on the scores, reading queries and keys; one table a layer, shared by its heads; any length:
beyond ``max_positions`` P all is one. Causal only, as the paper's. What is counted must not be
padding: it may stand after the tokens, where the causal mask hides it, not between them.

Deviations: none; the listing in the paper's appendix leaves q·e without 1/√D, and so do we.

.. [1] Golovneva, Wang, Weston and Sukhbaatar, "Contextual Position Encoding: Learning to Count
   What's Important", 2024. https://arxiv.org/abs/2405.18719
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.counting import CountedBias
from mha_lab.positions.distances import lead_of, offsets
from mha_lab.ranges import Size


class CopePositions(nn.Module):
    """Adds the product of the query with a vector of the position that the content counts.

    Args:
        embed_dim: width of the embeddings.
        num_heads: heads H; the vectors are embed_dim / H wide.
        max_positions: how many positions are told apart.

    Raises:
        ValueError: max_positions is below 1.
    """

    acts_on = "scores"
    is_shared = False
    reads_positions = False

    def __init__(self, embed_dim: Size, *, num_heads: Size, max_positions: Size = 64) -> None:
        super().__init__()
        if max_positions < 1:
            raise ValueError(f"max_positions must be at least 1, got {max_positions}")
        self.max_positions = max_positions
        self.table = nn.Parameter(torch.zeros(max_positions, embed_dim // num_heads))

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Say that counting back has no meaning without a causal mask.

        Raises:
            ValueError: it stands where queries see later keys.
        """
        if not is_causal:
            raise ValueError(
                "position=cope counts back from the query, which needs a causal mask; choose "
                "model=decoder, or position=t5"
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
            q: (N, H, L, D).
            k: (N, H, S, D).
            x: not read.
            q_positions: (L,); they tell alone which keys come later.
            k_positions: (S,).

        Returns:
            (N, H, L, S).
        """
        later = offsets(q_positions, k_positions) > 0
        scaled = q / math.sqrt(q.shape[-1])
        gates = (scaled @ k.transpose(-2, -1)).sigmoid().masked_fill(later, 0.0)
        position = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=self.max_positions - 1)
        of_whole = q @ self.table.t().to(q.dtype)
        below = position.detach().long()
        above = (below + 1).clamp_(max=self.max_positions - 1)
        return torch.lerp(of_whole.gather(-1, below), of_whole.gather(-1, above), position - below)

    def in_blocks(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N H S D"],
        x: Float[Tensor, "N L E"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
        *,
        scale: float,
    ) -> CountedBias | None:
        """The same, block by block; the arguments are those of ``score_bias``.

        Args:
            q: (N, H, L, D).
            k: not read.
            x: not read.
            q_positions: (L,).
            k_positions: (S,).
            scale: what the blocks' products of queries and keys were multiplied by.

        Returns:
            What adds it, or None where positions do not follow one another.
        """
        ahead = lead_of(q_positions, k_positions)
        if ahead is None:
            return None
        of_whole = q @ self.table.t().to(q.dtype)
        return CountedBias((of_whole,), ahead, 1 / (scale * math.sqrt(q.shape[-1])))

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"max_positions={self.max_positions}"
