"""Projections in which queries, keys and values lie side by side, and how they are cut into heads.

What turns queries and keys may do so before they are cut: in place on the way forth, and on the way
back while their gradients are joined, so that neither needs memory of its own. A pass over what is
not in the cache takes several times as long.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

Heads = Float[Tensor, "N H L D"]


class Part(NamedTuple):
    """Heads of one kind.

    Attributes:
        kind: Whether they are queries, keys or values.
        heads: How many.
        width: Of each.
    """

    kind: Literal["q", "k", "v"]
    heads: int
    width: int


class Projected(NamedTuple):
    """What one product has made of one input.

    Attributes:
        product: (N, L, W), which nobody else keeps, so that it may be changed in place.
        parts: What lies in it, one after the other, W numbers a token in all; values are the last.
    """

    product: Float[Tensor, "N L W"]
    parts: tuple[Part, ...]

    def cut(self) -> tuple[Heads, ...]:
        """The heads of each part, (N, heads, L, width): views of the product."""
        N, L, _ = self.product.shape
        return tuple(
            rows.view(N, L, part.heads, part.width).transpose(1, 2) for part, rows in self.rows()
        )

    @classmethod
    def like(cls, grads: tuple[Heads, ...], parts: tuple[Part, ...]) -> "Projected":
        """Memory for the gradient of a product, from those of its parts."""
        N, _, L, _ = grads[0].shape
        return cls(grads[0].new_empty(N, L, width_of(parts)), parts)

    def before_values(self) -> Heads:
        """Queries and keys, (N, heads of both, L, width): a view of the product."""
        parts = [part for part in self.parts if part.kind != "v"]
        N, L, _ = self.product.shape
        heads, width = sum(part.heads for part in parts), parts[0].width
        return self.product[..., : heads * width].view(N, L, heads, width).transpose(1, 2)

    def rows(self) -> Iterator[tuple[Part, Float[Tensor, "N L w"]]]:
        """Each part, and where it lies in the product."""
        widths = [width_of([part]) for part in self.parts]
        return zip(self.parts, self.product.split_with_sizes(widths, -1), strict=True)


def width_of(parts: Sequence[Part]) -> int:
    """How many numbers a token has in them."""
    return sum(part.heads * part.width for part in parts)


def rows_of(heads: Heads) -> Float[Tensor, "N L w"]:
    """The heads of each token side by side, a view where they lie so."""
    N, H, L, width = heads.shape
    return heads.transpose(1, 2).reshape(N, L, H * width)


def joined(grads: tuple[Heads, ...]) -> Float[Tensor, "N L W"]:
    """The gradient of a product, from those of its parts, by operations that have gradients."""
    return torch.cat([rows_of(grad) for grad in grads], -1)
