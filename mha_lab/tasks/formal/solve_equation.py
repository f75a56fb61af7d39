"""Solve equation: the number that stands for x in an equation modulo 5 with brackets.

A source is an expression with + and - alone, one of its digits replaced by x, then ``=`` and the
expression's value. (Times is left out, since a product with 0 would leave x open.) The digit is the
first at or after a random place, the start following the end. Sources of length 1 and 2, too short
for an equation, are zeros, and the answer is 0.

Example: ``( x + ( - 3 ) ) = 1`` → ``4``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.drawing import below
from mha_lab.tasks.formal.expressions import MODULUS, SYMBOLS, draw_expressions, values
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST

_SYMBOLS = [*(symbol for symbol in SYMBOLS if symbol != "*"), "x", "="]
_TIMES = FIRST + SYMBOLS.index("*")
X, EQUALS = FIRST + _SYMBOLS.index("x"), FIRST + _SYMBOLS.index("=")


def solve_equation_task(*, min_length: Size = 1, max_length: Size = 40) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "solve_equation", target_of, min_length=min_length, max_length=max_length,
        vocab_size=MODULUS, symbols=_SYMBOLS, longest_target=1, sampler=_draw,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N 1"]:
    """The number for x; see ``mha_lab.tasks.generated.Rule``.

    x comes in once, with a plus or a minus: the left side at 0 and at 1 tells which.
    """
    right = source.gather(1, (lengths - 1)[:, None])[:, 0] - FIRST
    is_left = torch.arange(source.shape[1]) < (lengths - 2)[:, None]
    left = _with_times(source.masked_fill(~is_left, 0))
    at_zero, at_one = (values(left.masked_fill(source == X, FIRST + n)) for n in (0, 1))
    answer = (right - at_zero) * (at_one - at_zero) % MODULUS
    return FIRST + answer.masked_fill_(lengths < 3, 0)[:, None]


def _draw(lengths: Int[Tensor, " N"], width: int, generator: torch.Generator) -> Int[Tensor, "N W"]:
    left = lengths - 2
    is_equation = left > 0
    rows = torch.zeros(len(lengths), width, dtype=torch.long)
    rows[:, :2] = torch.where(torch.arange(rows[:, :2].shape[1]) < lengths[:, None], FIRST, 0)
    if is_equation.any():
        rows[is_equation] = _equations(left[is_equation], width, generator)
    return rows


def _equations(
    left: Int[Tensor, " N"], width: int, generator: torch.Generator
) -> Int[Tensor, "N W"]:
    """Equations whose left sides are of given lengths."""
    rows = draw_expressions(left, width, 2, generator)
    value = values(rows[:, : int(left.max())])
    columns = torch.arange(width)
    after = (columns - below(left, generator)[:, None]) % left[:, None]
    is_digit = (rows >= FIRST) & (rows < FIRST + MODULUS) & (columns < left[:, None])
    place = after.masked_fill(~is_digit, width).argmin(1)
    rows = torch.where(rows > _TIMES, rows - 1, rows)  # these ids have no times
    each = torch.arange(len(rows))
    rows[each, place], rows[each, left], rows[each, left + 1] = X, EQUALS, FIRST + value
    return rows


def _with_times(rows: Int[Tensor, "N W"]) -> Int[Tensor, "N W"]:
    """Ids of this task as ids of expressions."""
    return torch.where((rows >= _TIMES) & (rows < X), rows + 1, rows)
