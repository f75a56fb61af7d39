"""What blocks are made of: attention calls, feed-forward, residual sums with LayerNorm.

Papers: Vaswani et al. 2017, "Attention Is All You Need" (post-norm); Xiong et al. 2020, "On Layer
Normalization in the Transformer Architecture" (pre-norm).
"""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.models.checks import ACTIVATIONS


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, at each position alone.

    Args:
        embed_dim: width of input and output.
        feedforward_dim: width between the two maps.
        dropout: probability of dropping a number between the two maps.
        activation: ``relu`` or ``gelu``.
    """

    def __init__(
        self,
        embed_dim: int,
        feedforward_dim: int,
        *,
        dropout: float = 0.0,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.linear1 = nn.Linear(embed_dim, feedforward_dim)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(feedforward_dim, embed_dim)

    def forward(self, x: Float[Tensor, "N L E"]) -> Float[Tensor, "N L E"]:
        """Map each position."""
        output: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return output


class Residual(nn.Module):
    """Adds what a sublayer finds to its input: ``x + f(norm(x))``, or post: ``norm(x + f(x))``."""

    def __init__(self, embed_dim: int, *, dropout: float, norm: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.is_pre = norm == "pre"

    def forward(
        self, x: Float[Tensor, "N L E"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "N L E"]:
        """Apply the sublayer, its norm and the sum."""
        if self.is_pre:
            return x + self.dropout(sublayer(self.norm(x)))  # type: ignore[no-any-return]
        return self.norm(x + self.dropout(sublayer(x)))  # type: ignore[no-any-return]


def attend(
    module: nn.Module, query: Float[Tensor, "N L E"], memory: Float[Tensor, "N S E"], **masks: Any
) -> Float[Tensor, "N L E"]:
    """One attention call, without weights: what wants to see them records the call.

    Raises:
        TypeError: the module returns no pair, as torch's call does.
        ValueError: its output is of another shape than the query.
    """
    returned = module(query, memory, memory, need_weights=False, **masks)
    name = type(module).__name__
    if not isinstance(returned, tuple):  # of a tensor, the first sample would be taken
        kind = type(returned).__name__
        raise TypeError(f"{name} must return an output and weights or None, got a {kind}")
    output: Tensor = returned[0]
    if output.shape != query.shape:
        raise ValueError(
            f"the output of {name} must have the shape of the query, {tuple(query.shape)}, got "
            f"{tuple(output.shape)}"
        )
    return output
