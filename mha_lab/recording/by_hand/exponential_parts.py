"""What a tensor is to the exponentials that it comes from: they themselves, their sum, ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from torch import Tensor

from mha_lab.recording.by_hand.products import Meeting


class Part(Enum):
    """Of what may become a softmax."""

    WEIGHTS = "the exponentials themselves, some of them blocked"
    LOG = "the logarithm of weights that sum to 1"
    LOG_SUM = "the logarithm of a sum of exponentials"
    INVERSE = "1 divided by a sum of exponentials"
    SUM = "a sum of exponentials, over keys"
    PRODUCT = "exponentials multiplied with values"


@dataclass(eq=False)
class Exponential:
    """One call of an exponential function.

    Attributes:
        shape: Of its result.
        has_met: Whether its product with values was divided by its sum.
    """

    shape: tuple[int, ...]
    has_met: bool = False


@dataclass(frozen=True)
class Product:
    """Exponentials that were multiplied with values before they were divided by their sum.

    Attributes:
        weights: The exponentials.
        version: How often they had been changed in place.
        meeting: How they met the values.
    """

    weights: Tensor
    version: int
    meeting: Meeting

    def distribution(self) -> Tensor | None:
        """The weights (..., L, S) that were applied; None where they were changed since."""
        if self.weights._version != self.version:
            return None
        weights = self.meeting.arrange(self.weights)
        weights = weights / weights.sum(-1, keepdim=True)
        # A row whose every key is blocked has no distribution: NaN, we say 0.
        return weights.masked_fill(weights.isnan().all(-1, keepdim=True), 0.0)


@dataclass(frozen=True)
class Normalised:
    """Exponentials that were divided by their sum: a softmax.

    Attributes:
        axis: The axis of keys of the result, counted from the end; None where it is not known.
        met: The exponentials whose product was divided, not they themselves; else None.
        product: That product, if it can be read and its weights are wanted.
    """

    axis: int | None = None
    met: tuple[Exponential, ...] | None = None
    product: Product | None = None


@dataclass(frozen=True)
class Note:
    """What is known of a tensor.

    Attributes:
        part: What it is.
        of: Of which exponentials.
        axis: Their axis of keys, counted from the end, where it is known.
        product: How they met values, where the tensor is a product that can be read.
    """

    part: Part
    of: tuple[Exponential, ...] = ()
    axis: int | None = None
    product: Product | None = None


Source = tuple[Tensor, Note]
"""A tensor, and what is known of it."""


def exponentials_of(sources: Sequence[Source]) -> tuple[Exponential, ...]:
    """The exponentials that some tensors come from, each once."""
    return tuple(dict.fromkeys(one for _, note in sources for one in note.of))
