"""Stick-breaking attention [1]_: from the query back, each key takes its share of what is left.

weights_ij = σ(z_ij) · Π_{j < l ≤ i} (1 - σ(z_il)), over the allowed keys. The nearest key that fits
wins, so it tells order without an encoding; a row sums to at most 1.

Deviation from the paper: a query may take from its own position too (there j < i; the authors' code
has it as an option, ``attend_current``), so that the first one attends to something.

.. [1] Tan et al., "Scaling Stick-Breaking Attention", 2024. https://arxiv.org/abs/2410.17980
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd import Function

from mha_lab.by_hand import is_transformed


class StickBreaking(nn.Module):
    """Each key takes a share of the stick that the later keys have left."""

    treats_rows_alike = True
    rows_sum_to_one = False
    knows_order = True

    def forward(
        self, scores: Float[Tensor, "N H L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N H L S"]:
        """Each key's share of what the later ones have left."""
        if is_transformed(scores):
            taken = F.logsigmoid(-scores)
            after = taken.flip(-1).cumsum(-1).flip(-1) - taken
            return after.exp() * scores.sigmoid()
        weights: Tensor = _Shares.apply(scores)  # type: ignore[no-untyped-call]
        return weights

    def gradient(self, scores: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
        """That of the scores."""
        return _gradient(scores, weights, grad)

    def refuse(self, *, is_causal: bool, is_cross: bool) -> None:
        """Only causal self-attention has a nearest key to begin with."""
        if is_cross or not is_causal:
            where = "cross-attention" if is_cross else "attention in both directions"
            raise ValueError(
                f"stick-breaking begins at the query and goes back, which has no meaning in {where}"
                "; choose model=decoder, or another attention/weighting"
            )


class _Shares(Function):
    """σ(z_j) times the product of σ(-z_l) over later keys: a running product, and no logarithm."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        left = scores.neg().sigmoid_()  # 1 where blocked
        found = torch.ones_like(scores)
        found[..., :-1] = left[..., 1:].flip(-1).cumprod(-1).flip(-1)
        weights = found.mul_(scores.sigmoid())
        ctx.save_for_backward(scores, weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        scores, weights = ctx.saved_tensors
        return _gradient(scores, weights, grad)


def _gradient(scores: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    # A key takes from itself and from all that come after it on the way back.
    gained = grad * weights
    return gained.addcmul(gained.cumsum(-1), scores.sigmoid(), value=-1)
