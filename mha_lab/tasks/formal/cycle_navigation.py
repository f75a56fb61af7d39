"""Cycle navigation: where on a circle of five places does a walk from place 0 end?

A step is -1, 0 or 1; the answer is the place, 0 to 4.

Example: ``-1 0 1 -1 -1`` → ``3``

Source: Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", appendix A; lengths 1
to 40 in training.
"""

from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST
from mha_lab.tasks.vocabulary import Vocabulary

PLACES = 5
_SYMBOLS = ["-1", "0", "1", "2", "3", "4"]  # the first three are steps, the last five places


def cycle_navigation_task(*, min_length: Size = 1, max_length: Size = 40) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "cycle_navigation", target_of, min_length=min_length, max_length=max_length, vocab_size=3,
        symbols=_SYMBOLS, longest_target=1, answers=PLACES,
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N 1"]:
    """The last place; see ``mha_lab.tasks.generated.Rule``."""
    steps = (source - FIRST - 1).masked_fill_(source == Vocabulary.PAD, 0)
    return FIRST + 1 + steps.sum(1, keepdim=True) % PLACES
