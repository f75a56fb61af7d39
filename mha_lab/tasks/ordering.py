"""Rows of ids in ascending order."""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks.vocabulary import Vocabulary


def ascending(rows: Int[Tensor, "N L"]) -> Int[Tensor, "N L"]:
    """Each row's ids in ascending order, its padding still at the end."""
    last = torch.iinfo(rows.dtype).max  # padding must stay behind the symbols
    ordered = rows.masked_fill(rows == Vocabulary.PAD, last).sort(dim=1).values
    return ordered.masked_fill_(ordered == last, Vocabulary.PAD)
