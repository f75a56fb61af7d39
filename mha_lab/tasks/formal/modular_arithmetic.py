"""Modular arithmetic: the value modulo 5 of a sum of products without brackets.

Numbers are 0 to 4, operators +, - and *, which binds first. A source has an odd length; where an
even one is asked for, it is one shorter.

Example: ``0 * 1 + 4 * 3 - 2`` → ``0``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.drawing import padded
from mha_lab.tasks.formal.expressions import MODULUS, PLUS, SYMBOLS, TIMES
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def modular_arithmetic_task(*, min_length: Size = 1, max_length: Size = 40) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "modular_arithmetic", target_of, min_length=min_length, max_length=max_length,
        vocab_size=MODULUS, symbols=SYMBOLS[:8], longest_target=1, sampler=_draw,
        length_of=lambda length: length - (length % 2 == 0),
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N 1"]:
    """The value, 0 to 4; see ``mha_lab.tasks.generated.Rule``."""
    total = torch.zeros(len(source), dtype=torch.long)
    product = source[:, 0] - FIRST
    for column in range(2, source.shape[1], 2):
        sign, number = source[:, column - 1], source[:, column] - FIRST
        is_times = sign == TIMES
        total += product.masked_fill(is_times, 0)  # a product ends before + and -
        product = torch.where(is_times, product * number, torch.where(sign == PLUS, 1, -1) * number)
        product = (product % MODULUS).masked_fill_(sign == 0, 0)
    return FIRST + ((total + product) % MODULUS)[:, None]


def _draw(lengths: Int[Tensor, " N"], width: int, generator: torch.Generator) -> Int[Tensor, "N W"]:
    shape = (len(lengths), width)
    rows = torch.randint(FIRST, FIRST + MODULUS, shape, generator=generator)
    rows[:, 1::2] = torch.randint(PLUS, TIMES + 1, rows[:, 1::2].shape, generator=generator)
    return padded(rows, lengths)
