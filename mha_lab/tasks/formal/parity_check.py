"""Parity check: is the number of 1s in a binary string even (0) or odd (1)?

Example: ``1 0 1 0 1 0 0`` → ``1``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training.
"""

from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def parity_check_task(*, min_length: Size = 1, max_length: Size = 40) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "parity_check", target_of, min_length=min_length, max_length=max_length, vocab_size=2,
        longest_target=1,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N 1"]:
    """0 or 1; see ``mha_lab.tasks.generated.Rule``."""
    return FIRST + (source == FIRST + 1).sum(1, keepdim=True) % 2
