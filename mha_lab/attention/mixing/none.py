"""Heads stay apart."""

from jaxtyping import Float
from torch import Tensor, nn


class NoMixing(nn.Module):
    """Leaves the weights as they are."""

    is_within_heads = True

    def forward(self, weights: Float[Tensor, "N H L S"]) -> Float[Tensor, "N H L S"]:
        """The weights."""
        return weights
