"""Binary numbers, least bit first, as rows of bits of any width."""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks.drawing import below, bits
from mha_lab.tasks.sequence_space import FIRST


def draw_operands(
    lengths: Int[Tensor, " N"], width: int, generator: torch.Generator
) -> Int[Tensor, "N W"]:
    """Draw two numbers of at least 1 with an operator, id ``FIRST + 2``, between them.

    The first number's length is uniform from 1 to what leaves a bit for the second. Lengths 1 and 2
    have no room for that: they are one number, 0, and 0 to 2.
    """
    first = 1 + below((lengths - 2).clamp(min=1), generator)
    columns = torch.arange(width)
    rows = bits(len(lengths), width, generator)
    is_first = columns < first[:, None]
    is_second = (columns > first[:, None]) & (columns < lengths[:, None])
    while True:
        has_none = [(rows * part).sum(1) == 0 for part in (is_first, is_second)]
        again = ((has_none[0] | has_none[1]) & (lengths > 2)).nonzero()[:, 0]
        if not len(again):
            break
        for part, is_zero in zip((is_first, is_second), has_none, strict=True):
            fresh = bits(len(again), width, generator)
            wrong = part[again] & is_zero[again, None]
            rows[again] = torch.where(wrong, fresh, rows[again])
    rows = (FIRST + rows).masked_fill_(columns == first[:, None], FIRST + 2)
    short = torch.randint(3, (len(lengths), 1), generator=generator) * (lengths == 2)[:, None]
    alone = FIRST + torch.where(columns == 0, short % 2, short // 2)
    rows = torch.where((lengths <= 2)[:, None], alone, rows)
    return rows.masked_fill_(columns >= lengths[:, None], 0)


def operands(
    source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]
) -> tuple[Int[Tensor, "N L"], Int[Tensor, "N L"]]:
    """The bits of the two numbers of each source; the second is 0 where there is only one."""
    columns = torch.arange(source.shape[1])
    is_operator = source == FIRST + 2
    end = torch.where(is_operator.any(1), is_operator.int().argmax(1), lengths)[:, None]
    numbers = (source - FIRST).clamp(min=0)
    shifted = numbers.gather(1, (columns + end + 1).clamp(max=source.shape[1] - 1))
    is_second = columns < lengths[:, None] - end - 1
    return numbers * (columns < end), shifted * is_second


def carried(counts: Int[Tensor, "N W"]) -> Int[Tensor, "N W"]:
    """Turn how often each power of two counts into bits; the sum must fit."""
    result, carry = torch.zeros_like(counts), torch.zeros_like(counts[:, 0])
    for column in range(counts.shape[1]):
        total = counts[:, column] + carry
        result[:, column], carry = total % 2, total // 2
    return result


def as_ids(number: Int[Tensor, "N W"]) -> Int[Tensor, "N W"]:
    """Ids of numbers without the zeros above the highest one; 0 is one zero."""
    columns = torch.arange(number.shape[1])
    highest = (number * columns).amax(1, keepdim=True)
    return (FIRST + number).masked_fill_(columns > highest, 0)
