"""Stick-breaking attention [1]_: from the query back, each key takes its share of what is left.

weights_ij = σ(z_ij) · Π_{j < l ≤ i} (1 - σ(z_il)), over the allowed keys. The nearest key that fits
wins, so it tells order without an encoding; a row sums to at most 1.

Deviation from the paper: a query may take from its own position too (there l < i), so that the
first one attends to something.

.. [1] Tan et al., "Stick-breaking Attention", 2024, equations 1 to 4.
   https://arxiv.org/abs/2410.17980
"""

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class StickBreaking(nn.Module):
    """Each key takes a share of the stick that the later keys have left."""

    rows_sum_to_one = False
    knows_order = True

    def forward(
        self, scores: Float[Tensor, "N H L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N H L S"]:
        """Computed as exp(z_j - Σ_{l ≥ j} log(1 + exp(z_l)))."""
        taken = F.softplus(scores)  # 0 where blocked
        until = taken.flip(-1).cumsum(-1).flip(-1)
        return (scores - until).exp()

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Only causal self-attention has a nearest key to begin with."""
        if is_cross or not is_causal:
            where = "cross-attention" if is_cross else "attention in both directions"
            raise ValueError(
                f"stick-breaking begins at the query and goes back, which has no meaning in {where}"
                "; choose model=decoder, or another attention/weighting"
            )
