"""Modular arithmetic with brackets: the value modulo 5 of a fully bracketed expression.

Numbers are 0 to 4, operators +, - and *. Of length 1 to 4 a source is ``d``, ``-d``, ``(d)`` or
``(-d)``; a longer one is ``(left op right)``, its left part of a random length.

Example: ``( ( 2 ) * ( - 3 ) )`` → ``4``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.formal.expressions import MODULUS, SYMBOLS, draw_expressions, values
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def modular_arithmetic_brackets_task(
    *, min_length: Size = 1, max_length: Size = 40
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "modular_arithmetic_brackets", target_of, min_length=min_length, max_length=max_length,
        vocab_size=MODULUS, symbols=SYMBOLS, longest_target=1, sampler=_draw,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N 1"]:
    """The value, 0 to 4; see ``mha_lab.tasks.generated.Rule``."""
    return FIRST + values(source)[:, None]


def _draw(lengths: Int[Tensor, " N"], width: int, generator: torch.Generator) -> Int[Tensor, "N W"]:
    return draw_expressions(lengths, width, 3, generator)
