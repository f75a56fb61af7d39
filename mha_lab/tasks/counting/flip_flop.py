"""Flip-flop: a bit is written, ignored and read again and again; what does each read give?

Every instruction has a bit: ``w`` writes it, ``i`` is followed by one that means nothing, ``r`` by
the bit written last. The first instruction writes, the last reads; those between are drawn by
their probabilities, FFL(p) having ``ignore`` p and the others half of the rest each. Bits are
uniform. As models here may see the whole source, the bit after ``r`` is hidden there as ``?``, and
asked at that place; the published task shows it to later ones. Sources of one instruction write
only; one more token, of an odd length, is a lone ``i``.

The published test beyond the training set: ``task.ignore=0.98`` (sparse) and ``task.ignore=0.1``
(dense).

Example: ``w 1 i 0 r ? w 0 i 1 r ?`` → ``_ _ _ _ _ 1 _ _ _ _ _ 0``

Source: Liu et al. (2023), "Exposing Attention Glitches with Flip-Flop Language Modeling",
section 3; 512 tokens there, FFL(0.8) to train on.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Probability, Size
from mha_lab.tasks.drawing import padded
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST

_SYMBOLS = ["0", "1", "?", "w", "r", "i"]
_HIDDEN, _WRITE, _READ, _IGNORE = range(FIRST + 2, FIRST + 6)


def flip_flop_task(
    *,
    min_length: Size = 1,
    max_length: Size = 32,
    ignore: Probability = 0.8,
    write: Probability | None = None,
) -> GeneratedTask:
    """Make the task.

    Args:
        min_length: the shortest source, in tokens; see ``GeneratedTask``.
        max_length: the longest.
        ignore: probability that an instruction ignores.
        write: probability that it writes; None is half of what ``ignore`` leaves. It reads else.

    Raises:
        ValueError: the probabilities are above 1 together, or one is out of its range.
    """
    writes = (1 - ignore) / 2 if write is None else write
    if not (0 <= ignore <= 1 and writes >= 0 and ignore + writes <= 1):
        raise ValueError(
            f"ignore and write must be probabilities, at most 1 together; got ignore={ignore} and "
            f"write={write}"
        )

    def sampler(lengths: Tensor, width: int, generator: torch.Generator) -> Tensor:
        columns = torch.arange(width)
        shape = (len(lengths), width)
        lots = torch.rand(shape, generator=generator)
        orders = torch.where(lots < ignore + writes, _WRITE, _READ).masked_fill_(
            lots < ignore, _IGNORE
        )
        last = 2 * (lengths[:, None] // 2) - 2  # where the last instruction stands
        orders = orders.masked_fill_(columns == last, _READ).masked_fill_(columns == 0, _WRITE)
        orders = orders.masked_fill_(columns > last, _IGNORE)  # the lone one
        bits = FIRST + torch.randint(2, shape, generator=generator)
        bits = bits.masked_fill_(orders.roll(1, 1) == _READ, _HIDDEN)
        return padded(torch.where(columns % 2 == 0, orders, bits), lengths)

    return GeneratedTask(
        "flip_flop", target_of, min_length=min_length, max_length=max_length, vocab_size=2,
        symbols=_SYMBOLS, sampler=sampler, along=True,
        settings={"ignore": ignore, "write": writes},
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
    """The bit written last, at each hidden one; see ``mha_lab.tasks.generated.Rule``."""
    columns = torch.arange(source.shape[1])
    written = torch.where(source == _WRITE, columns, 0).cummax(1).values + 1
    bit = source.gather(1, written.clamp(max=source.shape[1] - 1))
    return bit.masked_fill_(source != _HIDDEN, 0)
