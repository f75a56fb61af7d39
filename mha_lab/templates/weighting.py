"""Weights that fall slowly below the best score: in proportion to 1 / (1 + max z − z_j)^power.

Name your paper or source here.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from mha_lab.ranges import Positive


class TemplateWeighting(nn.Module):
    """Turns scores into weights; see ``mha_lab.attention.parts`` for what a weighting may say.

    Args:
        power: How fast weights fall; an option of its own, set by attention.weighting.power.
    """

    treats_rows_alike = True  # no parameters, each row by itself: long calls go in blocks of rows

    def __init__(self, *, power: Positive = 2.0) -> None:
        super().__init__()
        self.power = power

    def forward(
        self, scores: Float[Tensor, "N H L S"], allowed: Bool[Tensor, "..."]
    ) -> Float[Tensor, "N H L S"]:
        """Weigh the keys of each query.

        Args:
            scores: (N, H, L, S); -inf where a query may not attend, so that the weight is 0 there.
            allowed: Where it may, broadcastable to the scores; for what counts keys.

        Returns:
            (N, H, L, S), whose rows sum to 1.
        """
        below_best = scores.amax(-1, keepdim=True) - scores
        weights = (1 + below_best).pow(-self.power)
        return weights / weights.sum(-1, keepdim=True)
