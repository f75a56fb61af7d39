"""Sequences as tensors: a batch, and how rows are ended, padded and trimmed."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from mha_lab.tasks.vocabulary import Vocabulary


class Batch(NamedTuple):
    """Sources and their targets, as token ids.

    Every row ends in ``<eos>`` and is padded on the right with ``<pad>``, so lengths need not be
    carried along. The target's ``<eos>`` is predicted like any token: it tells where the output
    ends. The source's gives a bidirectional encoder one more output position, for that ``<eos>``.

    A target may hold ``<pad>`` before its ``<eos>`` too: nothing is asked there (``blanks``). Tasks
    that predict along the sequence say so which positions count; loss and accuracy are over those.

    Attributes:
        source: (N, S), N sequences.
        target: (N, T), the right outputs.
    """

    source: Int[Tensor, "N S"]
    target: Int[Tensor, "N T"]


def end_rows(
    rows: Int[Tensor, "N L"], lengths: Int[Tensor, " N"] | None = None
) -> Int[Tensor, "N L+1"]:
    """Append ``<eos>`` to each padded row.

    Args:
        rows: (N, L) ids, padded on the right with ``<pad>``.
        lengths: (N,) how many ids of each row come before its ``<eos>``; None counts those that
            are not ``<pad>``.
    """
    if lengths is None:
        lengths = (rows != Vocabulary.PAD).sum(1)
    return F.pad(rows, (0, 1), value=Vocabulary.PAD).scatter_(1, lengths[:, None], Vocabulary.EOS)


def blanks(target: Int[Tensor, "N T"]) -> Bool[Tensor, "N T"]:
    """True where a target asks nothing: at ``<pad>`` before its ``<eos>``."""
    comes_later = (target == Vocabulary.EOS).flip(1).cumsum(1).flip(1) > 0
    return comes_later & (target == Vocabulary.PAD)


def pad_rows(rows: Sequence[Sequence[int]]) -> Int[Tensor, "N L"]:
    """Turn lists of ids into one tensor, padded on the right to the longest."""
    width = max(map(len, rows), default=0)
    padded = [[*row, *[Vocabulary.PAD] * (width - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), width)


def trim(batch: Batch) -> Batch:
    """Drop the columns that hold nothing but padding, at the end."""
    return Batch(*(part[:, : _longest(part)] for part in batch))


def _longest(rows: Int[Tensor, "N L"]) -> int:
    used = (rows != Vocabulary.PAD).any(0).nonzero()
    return int(used[-1]) + 1 if len(used) else 0
