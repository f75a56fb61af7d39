"""Binary multiplication: the product of two binary numbers, least bit first.

Both numbers are at least 1. The product ends at its highest 1. Sources of length 1 and 2 have no
room for two numbers: the answer to one of length 1 is empty, to one of length 2 it is 0.

Example: ``0 0 1 * 0 1 1 0 1`` → ``0 0 0 1 1 0 1``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.formal.binary import as_ids, carried, draw_operands, operands
from mha_lab.tasks.generated import GeneratedTask


def binary_multiplication_task(*, min_length: Size = 1, max_length: Size = 40) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "binary_multiplication", target_of, min_length=min_length, max_length=max_length,
        vocab_size=2, symbols=["0", "1", "*"], sampler=draw_operands,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The product's bits; see ``mha_lab.tasks.generated.Rule``."""
    first, second = operands(source, lengths)
    width = source.shape[1]
    counts = torch.zeros_like(first)
    for shift in range(width):  # each bit of the first adds the second, moved up by its place
        counts[:, shift:] += first[:, shift, None] * second[:, : width - shift]
    return as_ids(carried(counts)).masked_fill_((lengths == 1)[:, None], 0)
