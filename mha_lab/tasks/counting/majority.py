"""Majority: at each bit, whether more of the bits so far are 1 or 0.

Nothing is asked where they are as many.

Example: ``1 0 0 1 1`` → ``1 _ 0 _ 1``

Source: Hahn (2020), "Theoretical Limitations of Self-Attention in Neural Sequence Models"; Merrill
et al. (2022), "Saturated Transformers are Constant-Depth Threshold Circuits" (majority).
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def majority_task(*, min_length: Size = 1, max_length: Size = 20) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "majority", target_of, min_length=min_length, max_length=max_length, vocab_size=2,
        along=True,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The more frequent bit of each row's beginnings; see ``mha_lab.tasks.generated.Rule``."""
    lead = (2 * (source - FIRST) - 1).cumsum(1)
    target = torch.where(lead > 0, FIRST + 1, FIRST)
    return target.masked_fill_((lead == 0) | (source == 0), 0)
