"""Blocks one after the other."""

from collections.abc import Callable, Iterable, Sequence
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
        self,
        x: Float[Tensor, "N L E"],
        *inputs: Any,
        caches: Sequence[Any] | None = None,
        **masks: Any,
    ) -> Float[Tensor, "N L E"]:
        """Hand ``inputs`` and ``masks`` to every block, and to each its own cache, if any."""
        for i, layer in enumerate(self.layers):
            own = {} if caches is None else {"cache": caches[i]}
            x = layer(x, *inputs, **masks, **own)
        output: Tensor = self.norm(x)
        return output

    def new_caches(self) -> list[Any] | None:
        """Empty caches, one a block; None where a block's attention takes none."""
        layers: Iterable[Any] = self.layers
        caches = [layer.new_cache() for layer in layers]
        return None if None in caches else caches
