"""Shaw's relative positions [1]_: a learned vector for each clipped distance is added to the keys.

score_ij = q_i·(k_j + a[clip(j − i, −K, K)]) / √D, so the bias is q_i·a / √D; the vectors a are
shared by the heads of a layer.

Acts on the scores, reading the queries; one table a layer; any length: beyond ``max_distance`` K
all is one.

Deviations: the paper adds such vectors to the values too, and finds that the keys' alone may do as
well; values stay here, so that the weights shown times the values are the outputs.

.. [1] Shaw, Uszkoreit and Vaswani, "Self-Attention with Relative Position Representations", 2018.
   https://arxiv.org/abs/1803.02155
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.distances import lead_of, offsets
from mha_lab.ranges import Size


class ShawPositions(nn.Module):
    """Adds the product of the query with a vector of the distance.

    Args:
        embed_dim: width of the embeddings.
        num_heads: heads H; the vectors are embed_dim / H wide.
        max_distance: from here on, either way, all distances are one.

    Raises:
        ValueError: max_distance is below 1.
    """

    acts_on = "scores"
    is_relative = True
    is_shared = False

    def __init__(self, embed_dim: Size, *, num_heads: Size, max_distance: Size = 16) -> None:
        super().__init__()
        if max_distance < 1:
            raise ValueError(f"max_distance must be at least 1, got {max_distance}")
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.empty(2 * max_distance + 1, embed_dim // num_heads))
        nn.init.xavier_uniform_(self.table)

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
            k: not read.
            x: not read.
            q_positions: (L,).
            k_positions: (S,).

        Returns:
            (N, H, L, S).
        """
        row = self._rows(q_positions, k_positions)
        return self._products(q).gather(-1, row.expand(*q.shape[:-1], -1))

    def in_blocks(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N H S D"],
        x: Float[Tensor, "N L E"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
        *,
        scale: float,
    ) -> "_InBlocks | None":
        """The same, block by block; the arguments are those of ``score_bias``.

        Args:
            q: (N, H, L, D).
            k: not read.
            x: not read.
            q_positions: (L,).
            k_positions: (S,).
            scale: not read.

        Returns:
            What adds it, or None where positions do not follow one another.
        """
        ahead = lead_of(q_positions, k_positions)
        if ahead is None:
            return None
        rows = self._rows(q_positions, k_positions)
        return _InBlocks((self._products(q),), rows, ahead, self.max_distance)

    def _rows(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """Which vector belongs to each query and key, (L, S)."""
        reach = self.max_distance
        return offsets(q_positions, k_positions).clamp(-reach, reach) + reach

    def _products(self, q: Tensor) -> Tensor:
        """Of the queries with each of the vectors, (N, H, L, 2K + 1)."""
        return q @ self.table.t().to(q.dtype) / math.sqrt(q.shape[-1])

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"max_distance={self.max_distance}"


class _InBlocks(NamedTuple):
    """A row's keys before the window of distances have one bias, those behind it another.

    Attributes:
        tensors: The products of queries and vectors (N, H, L, 2K + 1).
        rows: Which vector belongs to each query and key, (L, S).
        ahead: How far the first query stands after the first key.
        reach: K.
    """

    tensors: tuple[Tensor, ...]
    rows: Tensor
    ahead: int
    reach: int

    def of(self, products: Tensor, block: Any, of_vectors: Tensor) -> Tensor:
        """The bias of a block."""
        part = of_vectors[block.n, block.heads, block.rows]
        rows = self.rows[block.rows, block.keys]
        return part.gather(-1, rows.expand(*part.shape[:-1], -1))

    def add(self, products: Tensor, block: Any, of_vectors: Tensor) -> tuple[int, int, Tensor]:
        """Add it in place; keep where the window lies, and its rows."""
        part = of_vectors[block.n, block.heads, block.rows]
        low, high = self._window(block, products.shape[-1])
        start = block.keys.start
        rows = self.rows[block.rows, start + low : start + high].expand(*part.shape[:-1], -1)
        products[..., :low] += part[..., :1]
        products[..., low:high] += part.gather(-1, rows)
        products[..., high:] += part[..., -1:]
        return low, high, rows

    def back(
        self, grad: Tensor, kept: tuple[int, int, Tensor], block: Any, total: Tensor | None
    ) -> None:
        """Add to each vector's product the gradients of the keys that it belongs to."""
        if total is None:
            return
        low, high, rows = kept
        part = total[block.n, block.heads, block.rows]
        part[..., 0] += grad[..., :low].sum(-1)
        part.scatter_add_(-1, rows, grad[..., low:high])
        part[..., -1] += grad[..., high:].sum(-1)

    def _window(self, block: Any, keys: int) -> tuple[int, int]:
        """From which key of a block on some row's vectors differ, and up to which."""
        first = block.rows.start + self.ahead - block.keys.start
        last = first + block.rows.stop - block.rows.start
        low = min(keys, max(0, first - self.reach))
        return low, max(low, min(keys, last + self.reach))
