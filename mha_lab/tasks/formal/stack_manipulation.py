"""Stack manipulation: a stack of bits, then instructions; the output is the stack they leave.

The stack is given bottom first and answered top first. The instructions are POP, which does nothing
on an empty stack, PUSH0 and PUSH1. The stack's length is uniform from 1 to one below the source's;
a source of length 1 is a stack of one bit.

Example: ``0 1 1 0 PUSH1 POP POP`` → ``1 1 0``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.drawing import below, bits, padded
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST

_POP = FIRST + 2  # PUSH0 and PUSH1 follow


def stack_manipulation_task(*, min_length: Size = 1, max_length: Size = 40) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "stack_manipulation", target_of, min_length=min_length, max_length=max_length,
        vocab_size=2, symbols=["0", "1", "POP", "PUSH0", "PUSH1"], sampler=_draw,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The stack, its top first; see ``mha_lab.tasks.generated.Rule``."""
    n, width = source.shape
    stack = torch.zeros(n, width + 1, dtype=torch.long)
    height = torch.zeros(n, 1, dtype=torch.long)
    for token in torch.split(source, 1, 1):
        bit = torch.where(token > _POP, token - 3, token)  # given or pushed
        stack.scatter_(1, height, bit)  # above the top nothing is read
        height += ((token > 0) & (token != _POP)).long()
        height = (height - (token == _POP).long()).clamp_(min=0)
    columns = height - 1 - torch.arange(width)
    return stack.gather(1, columns.clamp(min=0)).masked_fill_(columns < 0, 0)


def _draw(lengths: Int[Tensor, " N"], width: int, generator: torch.Generator) -> Int[Tensor, "N W"]:
    height = 1 + below((lengths - 1).clamp(min=1), generator)
    stack = FIRST + bits(len(lengths), width, generator)
    orders = torch.randint(_POP, _POP + 3, (len(lengths), width), generator=generator)
    return padded(torch.where(torch.arange(width) < height[:, None], stack, orders), lengths)
