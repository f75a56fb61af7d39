"""Compute sqrt: the square root of a binary number, rounded down; highest bit first.

The number is at least 1 and may begin with zeros; its root is written with half as many bits,
rounded up.

Example: ``1 0 0 1 0 1`` → ``1 1 0``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training. (Its worked example, 37 → 6, misprints 6 as 101.)
"""

import math

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.drawing import bits, padded
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def compute_sqrt_task(*, min_length: Size = 1, max_length: Size = 40) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "compute_sqrt", target_of, min_length=min_length, max_length=max_length, vocab_size=2,
        longest_target=lambda longest: (longest + 1) // 2, sampler=_draw,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N M"]:
    """The root's bits; see ``mha_lab.tasks.generated.Rule``."""
    width = (source.shape[1] + 1) // 2
    digits = (source - FIRST + ord("0")).byte().numpy()
    roots = bytearray()
    for row, length in zip(digits, lengths.tolist(), strict=True):  # numbers of any size
        root = math.isqrt(int(row[:length].tobytes(), 2)) if length else 0
        roots += format(root, f"0{(length + 1) // 2}b").ljust(width, "_").encode()
    ids = torch.from_numpy(np.frombuffer(roots, np.uint8).astype(np.int64))
    ids = ids.view(len(source), width)
    return (ids - ord("0") + FIRST).masked_fill_(ids == ord("_"), 0)


def _draw(lengths: Int[Tensor, " N"], width: int, generator: torch.Generator) -> Int[Tensor, "N W"]:
    rows = padded(FIRST + bits(len(lengths), width, generator), lengths)
    while len(again := (rows <= FIRST).all(1).nonzero()[:, 0]):  # zero is not drawn
        rows[again] = padded(FIRST + bits(len(again), width, generator), lengths[again])
    return rows
