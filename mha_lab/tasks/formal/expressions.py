"""Arithmetic expressions modulo 5 with brackets: how they are drawn, and what they are worth.

Ids are those of the symbols below, from ``FIRST`` on.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from mha_lab.tasks.drawing import below
from mha_lab.tasks.sequence_space import FIRST

MODULUS = 5
SYMBOLS = [*map(str, range(MODULUS)), "+", "-", "*", "(", ")"]
PLUS, MINUS, TIMES, OPEN, CLOSE = range(FIRST + MODULUS, FIRST + MODULUS + 5)


def draw_expressions(
    lengths: Int[Tensor, " N"], width: int, operators: int, generator: torch.Generator
) -> Int[Tensor, "N W"]:
    """Draw an expression of each length.

    Of length 1 to 4 it is ``d``, ``-d``, ``(d)`` or ``(-d)``; a longer one is ``(left op right)``,
    where the length of the left part is uniform from 1 to what leaves one for the right.

    Args:
        lengths: (N,) from 1.
        width: columns; padded with 0.
        operators: 2 for plus and minus, 3 with times.
        generator: source of the random numbers.
    """
    rows = torch.zeros(len(lengths), width, dtype=torch.long)
    row, start, length = torch.arange(len(lengths)), torch.zeros_like(lengths), lengths
    while len(row):  # a generation of parts each time, of all rows at once
        _write_short(rows, row, start, length, generator)
        is_long = length > 4
        row, start, length = row[is_long], start[is_long], length[is_long]
        left = 1 + below(length - 4, generator)
        rows[row, start], rows[row, start + length - 1] = OPEN, CLOSE
        rows[row, start + left + 1] = torch.randint(
            PLUS, PLUS + operators, row.shape, generator=generator
        )
        row = row.repeat(2)
        start = torch.cat([start + 1, start + left + 2])
        length = torch.cat([left, length - left - 3])
    return rows


def values(rows: Int[Tensor, "N W"]) -> Int[Tensor, " N"]:
    """What each expression is worth, 0 to 4.

    A machine with a stack reads all rows at once. Each open bracket has a level with the value so
    far, from 0, and the sign that the next operand is taken with, from plus.
    """
    n, width = rows.shape
    rows = rows.to(torch.int8)  # small numbers are read faster
    is_digit, is_negative = _digits(rows)
    numbers = torch.where(is_negative, FIRST - rows, rows - FIRST)
    is_sign = (rows >= PLUS) & (rows <= TIMES) & ~is_negative.roll(-1, 1)
    value = torch.zeros(n, width // 2 + 2, dtype=torch.int8)
    sign = torch.full_like(value, PLUS)
    depth = torch.zeros(n, 1, dtype=torch.long)
    for column in range(width):
        at = slice(column, column + 1)
        token = rows[:, at]
        is_open, is_close = token == OPEN, token == CLOSE
        depth += is_open
        operand = torch.where(is_close, value.gather(1, depth), numbers[:, at])
        depth -= is_close.long()
        here = value.gather(1, depth).masked_fill_(is_open, 0)
        way = sign.gather(1, depth).masked_fill_(is_open, PLUS)
        worth = torch.where(way == TIMES, here * operand, here + operand)
        worth = torch.where(way == MINUS, here - operand, worth) % MODULUS
        value.scatter_(1, depth, torch.where(is_digit[:, at] | is_close, worth, here))
        sign.scatter_(1, depth, torch.where(is_sign[:, at], token, way))
    return value[:, 0].long()


def _digits(rows: Int[Tensor, "N W"]) -> tuple[Bool[Tensor, "N W"], Bool[Tensor, "N W"]]:
    """Where digits stand, and which of them come after a minus of their own."""
    is_digit = (rows >= FIRST) & (rows < FIRST + MODULUS)
    ends_operand = torch.nn.functional.pad((is_digit | (rows == CLOSE))[:, :-1], (1, 0))
    is_own_minus = (rows == MINUS) & ~ends_operand
    return is_digit, is_digit & torch.nn.functional.pad(is_own_minus[:, :-1], (1, 0))


def _write_short(
    rows: Int[Tensor, "N W"],
    row: Int[Tensor, " K"],
    start: Int[Tensor, " K"],
    length: Int[Tensor, " K"],
    generator: torch.Generator,
) -> None:
    """Write the parts of length 1 to 4."""
    has_bracket, has_minus = (length == 3) | (length == 4), (length == 2) | (length == 4)
    rows[row[has_bracket], start[has_bracket]] = OPEN
    rows[row[has_bracket], (start + length - 1)[has_bracket]] = CLOSE
    digit = start + has_bracket.long() + has_minus.long()
    rows[row[has_minus], digit[has_minus] - 1] = MINUS
    is_short = length <= 4
    digits = torch.randint(FIRST, FIRST + MODULUS, (int(is_short.sum()),), generator=generator)
    rows[row[is_short], digit[is_short]] = digits
