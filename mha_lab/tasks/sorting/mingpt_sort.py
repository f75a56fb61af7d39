"""minGPT sort: the demo's set, six digits out of three, drawn its own way.

A source is uniform, but every second one is drawn again while it holds more than ``length // 2``
different digits: the demo wants more sources with many repeats. (With its own sizes that never
happens, since three digits are not more than 6 // 2; with more digits it does.) The demo keeps a
quarter of the sources for its test by Python's ``hash``; here our own hash decides, as for every
task.

Example: ``0 0 2 1 0 1`` → ``0 0 0 1 1 2``

Source: Karpathy, minGPT, ``demo.ipynb``, class ``SortDataset(length=6, num_digits=3)``.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.drawing import padded
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.ordering import ascending
from mha_lab.tasks.sequence_space import FIRST


def mingpt_sort_task(
    *, min_length: Size = 6, max_length: Size = 6, vocab_size: Size = 3
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""

    def uniform(lengths: Tensor, width: int, generator: torch.Generator) -> Tensor:
        shape = (len(lengths), width)
        rows = torch.randint(FIRST, FIRST + vocab_size, shape, generator=generator)
        return padded(rows, lengths)

    def sampler(lengths: Tensor, width: int, generator: torch.Generator) -> Tensor:
        rows = uniform(lengths, width, generator)
        again = torch.arange(len(rows))
        while len(again):
            coin = torch.rand(len(again), generator=generator) < 0.5
            again = again[coin & _varied(rows[again], lengths[again])]
            rows[again] = uniform(lengths[again], width, generator)
        return rows

    return GeneratedTask(
        "mingpt_sort", target_of, min_length=min_length, max_length=max_length,
        vocab_size=vocab_size, sampler=sampler, settings={"vocab_size": vocab_size},
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The source's ids in ascending order; see ``mha_lab.tasks.generated.Rule``."""
    return ascending(source)


def _varied(rows: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Bool[Tensor, " N"]:
    """Whether a row holds more different digits than half of its length."""
    ordered = ascending(rows)
    changes = (ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] > 0)
    return 1 + changes.sum(1) > lengths // 2
