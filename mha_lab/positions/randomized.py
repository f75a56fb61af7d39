"""Randomized positions [1]_: training draws the positions from a wide range, around any encoding.

A sequence of length L is told L increasing positions below ``positions``, anew at every call in
training. So the model learns what order means, and the positions of longer sequences are none that
it never met. Ask for the encoding inside with ``position@position.encoding=rotary``.

In training, n positions are drawn without replacement and sorted, for an n between L and
``max_length``, and the first L of them told; in evaluation, position i is i · ⌊positions /
max_length⌋.

Acts where the encoding inside acts; one for all layers, or one a layer, as that.

Deviations: the paper draws n = L, in evaluation too. A draw for the length at hand would let later
tokens move earlier ones, and a sample depend on the padding of its batch; so evaluation spreads for
the longest sequence, whatever the length, and training draws such dense ones too.

.. [1] Ruoss, Delétang, Genewein, Grau-Moya, Csordás, Bennani, Legg and Veness, "Randomized
   Positional Encodings Boost Length Generalization of Transformers", 2023.
   https://arxiv.org/abs/2305.16843
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.distances import reach
from mha_lab.positions.interface import Place, make_encoding, place_of
from mha_lab.ranges import Size


def randomized(
    embed_dim: Size,
    *,
    num_heads: Size,
    encoding: Callable[..., nn.Module],
    is_causal: bool = True,
    positions: Size = 256,
    max_length: Size = 128,
) -> nn.Module:
    """Make an encoding that is told random positions in training.

    Args:
        embed_dim: width of the embeddings.
        num_heads: heads of the attention.
        encoding: makes the encoding inside.
        is_causal: whether every query sees earlier keys only.
        positions: how many there are to draw from.
        max_length: the longest sequence, in evaluation too.

    Raises:
        ValueError: a size below 1, max_length above positions, or an encoding that reads no
            positions or holds too few.
    """
    for name, value in (("positions", positions), ("max_length", max_length)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if max_length > positions:
        raise ValueError(
            f"max_length must be at most positions={positions}, which are drawn without "
            f"replacement, got {max_length}"
        )
    made = make_encoding(encoding, embed_dim, num_heads=num_heads, is_causal=is_causal)
    if isinstance(made, _Around) or not getattr(made, "reads_positions", True):
        why = "draws its own" if isinstance(made, _Around) else "reads no positions"
        raise ValueError(
            f"{type(made).__name__} {why}, so there is nothing to draw for it; choose another "
            "encoding inside, such as position@position.encoding=rotary"
        )
    holds = getattr(made, "max_length", None)
    if holds is not None and holds < positions:
        raise ValueError(
            f"positions must be at most {holds}, which is all that {type(made).__name__} holds, "
            f"got {positions}; choose position.encoding.max_length={positions}"
        )
    drawn = Drawn(positions, max_length)
    if place_of(made) == "embeddings":
        return RandomizedEmbeddings(made, drawn)
    if place_of(made) == "queries and keys":
        return RandomizedRotation(made, drawn)
    if hasattr(made, "bias"):
        return RandomizedBias(made, drawn)
    return RandomizedScoreBias(made, drawn)


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


class _Around(nn.Module):
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


class RandomizedEmbeddings(_Around):
    """Around an encoding that adds to the embeddings."""

    def forward(
        self, embeddings: Float[Tensor, "N L E"], positions: Int[Tensor, "L"] | None = None
    ) -> Float[Tensor, "N L E"]:
        """Add what the encoding inside has for the positions: (N, L, E)."""
        if positions is None:
            positions = torch.arange(embeddings.shape[-2], device=embeddings.device)
        output: Tensor = self.encoding(embeddings, self.drawn(positions)[0])
        return output


class RandomizedRotation(_Around):
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


class RandomizedBias(_Around):
    """Around an encoding that adds to the scores what follows from the positions."""

    def bias(
        self, q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
    ) -> Float[Tensor, "H L S"]:
        """What is added to the scores: (H, L, S)."""
        output: Tensor = self.encoding.bias(*self.drawn(q_positions, k_positions))
        return output


class RandomizedScoreBias(_Around):
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
