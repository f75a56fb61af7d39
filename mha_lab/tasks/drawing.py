"""Random numbers that several tasks draw, from a generator alone."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mha_lab.tasks.vocabulary import Vocabulary

_WHOLE = 2**7  # pools up to this size are shuffled whole; of larger ones, clashes are drawn again


def below(limits: Int[Tensor, " N"], generator: torch.Generator) -> Int[Tensor, " N"]:
    """Draw a number from 0 up to but not including each limit, uniformly."""
    # In float64 the largest draw stays below any limit that a length can be.
    draws = torch.rand(limits.shape, generator=generator, dtype=torch.float64)
    return (draws * limits).long()


def bits(rows: int, width: int, generator: torch.Generator) -> Int[Tensor, "N W"]:
    """Draw zeros and ones."""
    return torch.randint(2, (rows, width), generator=generator)


def distinct(rows: int, count: int, pool: int, generator: torch.Generator) -> Int[Tensor, "N K"]:
    """Draw ``count`` different numbers below ``pool`` for each row, in random order.

    Raises:
        ValueError: the pool holds too few.
    """
    if count > pool:
        raise ValueError(
            f"max_length must be at most vocab_size, since no symbol stands twice in a source; "
            f"got max_length={count} and vocab_size={pool}"
        )
    if pool <= max(_WHOLE, 4 * count):
        return torch.rand(rows, pool, generator=generator).argsort(1)[:, :count]
    drawn = torch.randint(pool, (rows, count), generator=generator)
    while len(wrong := _with_repeats(drawn)):
        drawn[wrong] = torch.randint(pool, (len(wrong), count), generator=generator)
    return drawn


def weighted(
    count: int, weights: Float[Tensor, "N P"], generator: torch.Generator
) -> Int[Tensor, "N K"]:
    """Draw ``count`` different numbers for each row, one after another, by their weights.

    Each number has an exponential clock of its weight's rate; those that ring first are drawn
    (Efraimidis and Spirakis, 2006, "Weighted random sampling with a reservoir"). Numbers of weight
    0 come last.
    """
    clocks = torch.empty(weights.shape).exponential_(generator=generator) / weights
    return clocks.argsort(1)[:, :count]


def _with_repeats(numbers: Int[Tensor, "N K"]) -> Int[Tensor, " M"]:
    ordered = numbers.sort(1).values
    return (ordered[:, 1:] == ordered[:, :-1]).any(1).nonzero()[:, 0]


def padded(rows: Int[Tensor, "N W"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N W"]:
    """The rows with ``<pad>`` from their lengths on."""
    return rows.masked_fill(torch.arange(rows.shape[1]) >= lengths[:, None], Vocabulary.PAD)
