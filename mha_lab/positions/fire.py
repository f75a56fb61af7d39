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

import math
from functools import partial
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mha_lab.positions.diagonals import by_offset
from mha_lab.positions.distances import at_least_float32, distances, start_of
from mha_lab.ranges import Positive, Size

EPSILON = 1e-6

_AT_A_TIME = 2**20
"""How many hidden numbers there are at most beyond the threshold, made again for the gradients."""


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
        first = start_of(q_positions)
        if first is None:
            return self._of_rows(q_positions, k_positions)
        # Below the threshold nothing is stretched, so a bias follows from the offset alone.
        before = max(0, math.ceil(float(self._threshold().detach())) - first)
        near, far = q_positions.tensor_split([before])
        origin = q_positions.new_zeros(())
        biases = []
        if len(near):
            biases = [by_offset(lambda offset: self._of(offset.abs(), origin), near, k_positions)]
        rows = max(1, _AT_A_TIME // (len(self.hidden.bias) * max(1, len(k_positions))))
        for part in torch.split(far, rows) if len(far) else ():
            of_rows = partial(self._of_rows, part, k_positions)
            made = checkpoint(of_rows, use_reentrant=False, preserve_rng_state=False)
            biases.append(made)
        return torch.cat(biases, 1) if len(biases) > 1 else biases[0]

    def _of_rows(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return self._of(distances(q_positions, k_positions), q_positions[:, None])

    def _of(self, distance: Tensor, position: Tensor) -> Tensor:
        """What the network makes of distances (...) from queries at positions: (H, ...)."""
        c = at_least_float32(self.curvature)
        longest = torch.maximum(position.to(c.dtype), self._threshold())
        share = (c * distance).abs().log1p() / ((c * longest).abs().log1p() + EPSILON)
        given = share.flatten().to(self.hidden.weight.dtype)
        hidden = (self.hidden.weight * given + self.hidden.bias[:, None]).relu()
        output = torch.addmm(self.output.bias[:, None], self.output.weight, hidden)
        return at_least_float32(output.view(len(output), *share.shape))

    @property
    def hidden(self) -> nn.Linear:
        """From the share to the hidden layer."""
        return cast(nn.Linear, self.network[0])

    @property
    def output(self) -> nn.Linear:
        """From the hidden layer to the heads."""
        return cast(nn.Linear, self.network[2])

    def _threshold(self) -> Tensor:
        return (self.threshold * at_least_float32(self.threshold_factor)).abs()
