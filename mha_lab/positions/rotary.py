"""Rotary positions [1]_: queries and keys turn with their position, so products tell the distance.

Pair c of a head, its numbers c and c + R/2, turns by the angle position · base^(−2c/R), for c below
R/2, where R = fraction · D is the width that turns; the rest of the head stays. As turning both by
the same angle changes no product, scores depend on distances alone.

Acts on queries and keys; nothing to train; shared by the layers; any length, though distances never
trained on are turned by angles never met.

Deviations: pairs are halves apart, as in GPT-NeoX [2]_ and Llama, where the paper pairs neighbours;
the two are the same up to the order of the numbers in a head, which is learned. ``fraction`` is
GPT-NeoX's.

.. [1] Su, Lu, Pan, Murtadha, Wen and Liu, "RoFormer: Enhanced Transformer with Rotary Position
   Embedding", 2021. https://arxiv.org/abs/2104.09864
.. [2] Black et al., "GPT-NeoX-20B", 2022. https://arxiv.org/abs/2204.06745
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.turning import Angles, turn, turn_and_cut
from mha_lab.projected import Heads, Projected
from mha_lab.ranges import Positive, Share, Size


class RotaryPositions(nn.Module):
    """Turns queries and keys by their positions.

    Args:
        embed_dim: width of the embeddings.
        num_heads: heads H; each is embed_dim / H wide.
        base: the wavelengths reach from 2π to 2π · base.
        fraction: of each head that turns, above 0; rounded down to an even width.

    Raises:
        ValueError: base is not above 0, fraction is not above 0 and at most 1, or leaves less
            than one pair.
    """

    acts_on = "queries and keys"
    is_relative = True

    def __init__(
        self,
        embed_dim: Size,
        *,
        num_heads: Size,
        base: Positive = 10000.0,
        fraction: Share = 1.0,
    ) -> None:
        super().__init__()
        if not base > 0:
            raise ValueError(f"base must be above 0, got {base}")
        if not 0 < fraction <= 1:
            raise ValueError(f"fraction must be above 0 and at most 1, got {fraction}")
        width = embed_dim // num_heads
        if fraction * width < 2:
            raise ValueError(
                f"rotary positions turn pairs of numbers, and fraction={fraction} of a head "
                f"embed_dim / num_heads = {width} wide holds none; choose a larger fraction, a "
                "larger model.embed_dim or a smaller model.num_heads"
            )
        self.base = base
        self.fraction = fraction

    def rotate(
        self,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N Hk S D"],
        q_positions: Int[Tensor, "L"],
        k_positions: Int[Tensor, "S"],
    ) -> tuple[Float[Tensor, "N H L D"], Float[Tensor, "N Hk S D"]]:
        """Turn each query and key by its position.

        Args:
            q: (N, H, L, D).
            k: (N, Hk, S, D).
            q_positions: (L,).
            k_positions: (S,).

        Returns:
            Both in their shape and dtype.
        """
        return (
            turn(q, self._angles(q, q_positions, q.shape[-1])),
            turn(k, self._angles(k, k_positions, k.shape[-1])),
        )

    def rotate_projected(
        self, projected: Projected, positions: Int[Tensor, "L"]
    ) -> tuple[Heads, ...]:
        """Turn queries and keys where they lie, and cut them.

        Args:
            projected: What a product has made of (N, L, E); may be changed.
            positions: (L,).

        Returns:
            The heads of each part, (N, heads, L, D).
        """
        first, *_ = projected.parts
        return turn_and_cut(projected, self._angles(projected.product, positions, first.width))

    def _angles(self, x: Tensor, positions: Tensor, width: int) -> Angles:
        """The angles of all pairs, in the dtype of x."""
        half = int(self.fraction * width) // 2
        dtype = torch.promote_types(x.dtype, torch.float32)
        pair = torch.arange(half, device=x.device, dtype=dtype)
        angle = positions.to(dtype)[:, None] * self.base ** (-pair / half)
        return Angles(angle.cos().to(x.dtype), angle.sin().to(x.dtype))

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return f"base={self.base}, fraction={self.fraction}"
