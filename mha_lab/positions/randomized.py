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

from torch import nn

from mha_lab.positions.drawn import (
    Around,
    Drawn,
    RandomizedBias,
    RandomizedEmbeddings,
    RandomizedRotation,
    RandomizedScoreBias,
)
from mha_lab.positions.interface import make_encoding, place_of
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
    if isinstance(made, Around) or not getattr(made, "reads_positions", True):
        why = "draws its own" if isinstance(made, Around) else "reads no positions"
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
