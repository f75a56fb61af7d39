"""The sequences on which models are checked, and how the models are made."""

import warnings
from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.models.interface import SequenceModel
from mha_lab.tasks.vocabulary import Vocabulary

Factory = Callable[[int], SequenceModel]

# Distinct primes, so that no two axes can be swapped unnoticed.
N, S, T, V = 5, 11, 7, 17
_SOURCES, _TARGETS = (10, 6, 9, 7, 8), (4, 6, 0, 5, 3)  # symbols of each row; a target is shorter
_SYMBOLS = len(Vocabulary.SPECIAL)  # the first id of a symbol


def make(factory: Factory, *, seed: int = 0) -> SequenceModel:
    """A model in eval mode, whose outputs differ from place to place; no random number is used."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings(), torch.no_grad():
        torch.manual_seed(seed)
        warnings.simplefilter("ignore")  # cautions of what may be trained are no faults
        model = factory(V).eval()
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


def source() -> Int[Tensor, "N S"]:
    """Symbols, ``<eos>``, padding."""
    return _rows(_SOURCES, S, seed=0)


def target() -> Int[Tensor, "N T"]:
    """No longer than the source, row by row; one holds ``<eos>`` alone."""
    return _rows(_TARGETS, T, seed=1)


def changed(rows: Int[Tensor, "N L"], column: int) -> Int[Tensor, "N L"]:
    """Other symbols in a column, where symbols are."""
    is_symbol = rows[:, column] >= _SYMBOLS
    other = (rows[:, column] + 1 - _SYMBOLS) % (V - _SYMBOLS) + _SYMBOLS
    rows = rows.clone()
    rows[:, column] = torch.where(is_symbol, other, rows[:, column])
    return rows


def before_end(output: Int[Tensor, "N T"]) -> Tensor:
    """True up to and with the first ``<eos>`` of each row."""
    is_eos = output == Vocabulary.EOS
    return is_eos.cumsum(1) - is_eos.int() == 0


def _rows(lengths: tuple[int, ...], width: int, *, seed: int) -> Int[Tensor, "N L"]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(_SYMBOLS, V, (len(lengths), width), generator=generator)
    column, length = torch.arange(width), torch.tensor(lengths)[:, None]
    ids = ids.masked_fill(column == length, Vocabulary.EOS)
    return ids.masked_fill(column > length, Vocabulary.PAD)
