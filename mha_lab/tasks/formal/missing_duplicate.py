"""Missing duplicate: a binary string stands twice with one bit replaced by ?; which bit is it?

Where the length is odd, ``_`` follows the two. The one source of length 1 is ``1``, its answer 1.

Example: ``1 0 1 1 ? 1 _`` → ``0``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.drawing import below, bits
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST

_MISSING, _EMPTY = FIRST + 2, FIRST + 3


def missing_duplicate_task(*, min_length: Size = 1, max_length: Size = 40) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "missing_duplicate", target_of, min_length=min_length, max_length=max_length,
        vocab_size=2, symbols=["0", "1", "?", "_"], longest_target=1, sampler=_draw,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N 1"]:
    """The bit; see ``mha_lab.tasks.generated.Rule``."""
    half = lengths // 2
    place = (source == _MISSING).int().argmax(1)
    twin = torch.where(place < half, place + half, place - half).clamp(min=0)
    return source.gather(1, twin[:, None])


def _draw(lengths: Int[Tensor, " N"], width: int, generator: torch.Generator) -> Int[Tensor, "N W"]:
    half = (lengths // 2)[:, None]
    columns = torch.arange(width)
    string = FIRST + bits(len(lengths), width, generator)
    rows = string.gather(1, torch.where(columns < half, columns, columns - half).clamp(min=0))
    rows = rows.masked_fill_(columns == 2 * half, _EMPTY)
    place = below(2 * half, generator)
    rows = rows.masked_fill_((columns == place) & (half > 0), _MISSING)
    rows = rows.masked_fill_((columns == 0) & (half == 0), FIRST + 1)
    return rows.masked_fill_(columns >= lengths[:, None], 0)
