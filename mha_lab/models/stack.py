"""Blocks one after the other."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.models.checks import check_sizes


class Stack(nn.Module):
    """Blocks one after the other, and a final LayerNorm where they are pre-norm.

    Args:
        make_block: makes one block; called ``num_layers`` times.
        embed_dim: width of the blocks.
        num_layers: how many.
        norm: ``pre`` or ``post``, as the blocks.

    Raises:
        ValueError: ``num_layers`` below 1.
    """

    def __init__(
        self, make_block: Callable[[], nn.Module], *, embed_dim: int, num_layers: int, norm: str
    ) -> None:
        super().__init__()
        check_sizes(num_layers=num_layers)
        self.layers = nn.ModuleList([make_block() for _ in range(num_layers)])
        self.norm = nn.LayerNorm(embed_dim) if norm == "pre" else nn.Identity()

    def forward(
        self, x: Float[Tensor, "N L E"], *inputs: Any, **masks: Any
    ) -> Float[Tensor, "N L E"]:
        """Hand ``inputs`` and ``masks`` to every block."""
        for layer in self.layers:
            x = layer(x, *inputs, **masks)
        output: Tensor = self.norm(x)
        return output
