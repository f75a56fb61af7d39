"""What is added to the scores of blocks, and the gradients of what it is made of.

An encoding whose bias need not exist as a whole makes such an object itself (``in_blocks``; see
:mod:`mha_lab.positions.interface`); any other bias is a :class:`Whole` one.
"""

from typing import Any, NamedTuple, Protocol

from torch import Tensor

from mha_lab.attention.blockwise.block import Block


class BlockBias(Protocol):
    """A bias, block by block.

    It may have ``keys_seen(heads, rows, keys) -> slice``, which tells from two slices and the
    number of keys those that any of these rows may see, ``hides_later`` where it blocks later
    keys, and ``widened(block, keys) -> block`` where it reads more keys than those that are seen.

    Attributes:
        tensors: What it is made of, besides queries, keys and positions; these have gradients.
    """

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What it is made of."""

    def of(self, products: Tensor, block: Block, *tensors: Tensor) -> Tensor:
        """The bias of a block by operations that have gradients.

        Args:
            products: Of queries and keys, times the scale, (n, h, rows, keys).
            block: Which they are.
            tensors: Those named above, which may be other objects now.
        """

    def add(self, products: Tensor, block: Block, *tensors: Tensor) -> Any:
        """Add the bias of a block in place, and return what the way back needs."""

    def back(self, grad: Tensor, kept: Any, block: Block, *totals: Tensor | None) -> None:
        """Add the gradients of a block to those of the tensors.

        Args:
            grad: Of the sums (n, h, rows, keys); turned into that of the products in place.
            kept: What ``add`` has returned.
            block: Which they are.
            totals: In the shapes of the tensors; None where no gradient is wanted.
        """


class Whole(NamedTuple):
    """A bias (1 or N, 1 or H, 1 or L, 1 or S) that is there as a whole."""

    bias: Tensor

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The bias."""
        return (self.bias,)

    def of(self, products: Tensor, block: Block, *tensors: Tensor) -> Tensor:
        """Its part."""
        part = block.of(*tensors)
        assert part is not None
        return part

    def add(self, products: Tensor, block: Block, *tensors: Tensor) -> None:
        """Add its part."""
        products.add_(self.of(products, block, *tensors))

    def back(self, grad: Tensor, kept: Any, block: Block, *totals: Tensor | None) -> None:
        """Its gradient is that of the sums."""
        part = block.of(*totals)
        if part is not None:
            part += grad.sum_to_size(part.shape)
