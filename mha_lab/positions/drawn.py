"""Positions drawn from a wide range, and encodings that are told those; see ``randomized``."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.distances import reach
from mha_lab.positions.interface import Place, place_of
from mha_lab.projected import Heads, Projected


class Drawn(nn.Module):
    """From places in the sequence to positions: drawn in training, evenly spread in evaluation.

    Args:
        positions: how many there are to draw from.
        max_length: the longest sequence.
    """

    def __init__(self, positions: int, max_length: int) -> None:
        super().__init__()
        self.positions = positions
        self.max_length = max_length

    def forward(self, *places: Int[Tensor, "_"]) -> tuple[Int[Tensor, "_"], ...]:
        """Turn places 0, 1, 2, ... into positions, one draw for all that are given together.

        Raises:
            ValueError: more places than ``max_length``.
        """
        length = max(len(row) if self.training else reach(row) for row in places)
        if length > self.max_length:
            raise ValueError(
                f"a sequence of length {length} is longer than position.max_length="
                f"{self.max_length}; train with position.max_length={length} or more"
            )
        if not self.training:
            return tuple(row * (self.positions // self.max_length) for row in places)
        count = int(torch.randint(length, self.max_length + 1, ()))
        drawn = torch.randperm(self.positions, device=places[0].device)[:count].sort().values
        return tuple(drawn[row] for row in places)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"positions={self.positions}, max_length={self.max_length}"


class Around(nn.Module):
    """Stands around an encoding, and tells it drawn positions.

    Args:
        encoding: the one inside.
        drawn: draws.
    """

    def __init__(self, encoding: nn.Module, drawn: Drawn) -> None:
        super().__init__()
        self.encoding: Any = encoding
        self.drawn: Any = drawn
        self.acts_on: Place = place_of(encoding)
        self.is_shared = getattr(encoding, "is_shared", True)
        self.is_relative = getattr(encoding, "is_relative", False)
        self.blocks = getattr(encoding, "blocks", False)
        self.max_length = drawn.max_length

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Say what the encoding inside says.

        Raises:
            ValueError: in its sentence.
        """
        if hasattr(self.encoding, "refuse"):
            self.encoding.refuse(is_causal=is_causal, is_cross=is_cross)


class RandomizedEmbeddings(Around):
    """Around an encoding that adds to the embeddings."""

    def forward(
        self, embeddings: Float[Tensor, "N L E"], positions: Int[Tensor, "L"] | None = None
    ) -> Float[Tensor, "N L E"]:
        """Add what the encoding inside has for the positions: (N, L, E)."""
        if positions is None:
            positions = torch.arange(embeddings.shape[-2], device=embeddings.device)
        output: Tensor = self.encoding(embeddings, self.drawn(positions)[0])
        return output


class RandomizedRotation(Around):
    """Around an encoding that turns queries and keys."""

    def rotate(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N Hk S D"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
    ) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N Hk S D"]]:
        """Turn each query and key by its position: (N, H, L, D) and (N, Hk, S, D)."""
        turned: tuple[Tensor, Tensor] = self.encoding.rotate(
            q, k, *self.drawn(q_positions, k_positions)
        )
        return turned

    def rotate_projected(
        self, projected: Projected, positions: Int[Tensor, "L"]
    ) -> tuple[Heads, ...] | None:
        """Turn queries and keys where they lie, and cut them; None where the one inside cannot."""
        if not hasattr(self.encoding, "rotate_projected"):
            return None
        heads: tuple[Heads, ...] = self.encoding.rotate_projected(projected, *self.drawn(positions))
        return heads


class RandomizedBias(Around):
    """Around an encoding that adds to the scores what follows from the positions."""

    def bias(
        self, q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
    ) -> Float[Tensor, "H L S"]:
        """What is added to the scores: (H, L, S)."""
        output: Tensor = self.encoding.bias(*self.drawn(q_positions, k_positions))
        return output


class RandomizedScoreBias(Around):
    """Around an encoding that adds to the scores what follows from the content too."""

    def score_bias(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N H S D"],
        x: Float[Tensor, "N L E"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
    ) -> Float[Tensor, "N H L S"]:
        """What is added to the scores: (N, H, L, S)."""
        drawn = self.drawn(q_positions, k_positions)
        output: Tensor = self.encoding.score_bias(q, k, x, *drawn)
        return output
