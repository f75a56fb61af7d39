"""Binary addition: the sum of two binary numbers, least bit first.

Both numbers are at least 1. The sum ends at its highest 1. Sources of length 1 and 2 have no room
for two numbers: they are one number, 0, and 0 to 2, which is the answer too.

Example: ``0 0 1 + 0 1 1 0 1`` → ``0 1 0 1 1``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training.
"""

from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.formal.binary import as_ids, carried, draw_operands, operands
from mha_lab.tasks.generated import GeneratedTask


def binary_addition_task(*, min_length: Size = 1, max_length: Size = 40) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "binary_addition", target_of, min_length=min_length, max_length=max_length,
        vocab_size=2, symbols=["0", "1", "+"], sampler=draw_operands,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The sum's bits; see ``mha_lab.tasks.generated.Rule``."""
    first, second = operands(source, lengths)
    return as_ids(carried(first + second))
