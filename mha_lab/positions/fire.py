"""FIRE [1]_: a small network turns the distance, as a share of the sequence so far, into a bias.

score_ij = q_i·k_j / √D + f_h(ψ(i − j) / ψ(max(L, i))), with ψ(x) = log(|c x| + 1), c and the
threshold L learned, and f one hidden layer. A share stays between 0 and 1 however long the sequence
grows.

Acts on the scores; one a layer; any length.

Deviations: none in a decoder. Without a causal mask, |i − j| counts in both directions, as the
paper's listing computes it, and the share may pass 1 after the query.

.. [1] Li, You, Guruganesh, Ainslie, Ontanon, Zaheer, Sanghai, Yang, Kumar and Bhojanapalli,
   "Functional Interpolation for Relative Positions Improves Long Context Transformers", 2024.
   https://arxiv.org/abs/2310.04418 (the listing in its appendix)
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mha_lab.positions.distances import at_least_float32, distances
from mha_lab.ranges import Positive, Size

EPSILON = 1e-6


class FirePositions(nn.Module):
    """Adds what a small network makes of relative distances.

    Args:
        embed_dim: width of the embeddings; any.
        num_heads: heads H.
        hidden_dim: width of the network's hidden layer.
        threshold: L at the start; sequences up to it are not stretched.
        curvature: c at the start.

    Raises:
        ValueError: a size below 1, or a threshold or curvature that is not above 0.
    """

    acts_on = "scores"
    is_shared = False

    def __init__(
        self,
        embed_dim: Size,
        *,
        num_heads: Size,
        hidden_dim: Size = 32,
        threshold: Positive = 512.0,
        curvature: Positive = 0.1,
    ) -> None:
        super().__init__()
        for name, value in (("num_heads", num_heads), ("hidden_dim", hidden_dim)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        for name, start in (("threshold", threshold), ("curvature", curvature)):
            if not start > 0:
                raise ValueError(f"{name} must be above 0, got {start}")
        self.threshold = threshold
        self.network = nn.Sequential(
            nn.Linear(1, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, num_heads)
        )
        self.curvature = nn.Parameter(torch.tensor(float(curvature)))
        # Learned as a multiple, so that one learning rate suits it too.
        self.threshold_factor = nn.Parameter(torch.tensor(1.0))

    def bias(
        self, q_positions: Int[Tensor, "L"], k_positions: Int[Tensor, "S"]
    ) -> Float[Tensor, "H L S"]:
        """What is added to the scores.

        Args:
            q_positions: (L,).
            k_positions: (S,).

        Returns:
            (H, L, S).
        """
        c = at_least_float32(self.curvature)
        threshold = (self.threshold * at_least_float32(self.threshold_factor)).abs()
        distance = (c * distances(q_positions, k_positions)).abs().log1p()
        longest = (c * torch.maximum(q_positions.to(c.dtype), threshold)).abs().log1p() + EPSILON
        share = distance / longest[:, None]
        output: Tensor = self.network(share[..., None].to(self.curvature.dtype))
        return at_least_float32(output).permute(2, 0, 1)
