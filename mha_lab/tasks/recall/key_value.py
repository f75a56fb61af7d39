"""Key-value lookup: letters with their digits, then one of the letters; which digit is its own?

A source is the pairs, ``??`` (one ``?`` where the length is even), and the letter asked for. No
letter stands twice in the first 26 pairs; after that letters are random, and the last pair of a
letter counts. Sources of up to three tokens hold no pair, and their answer is empty.

Example: ``c 9 k 8 j 3 f 1 ? ? c`` → ``9``

Source: Ba et al. (2016), "Using Fast Weights to Attend to the Recent Past", section 4.1.
"""

import string

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.drawing import below, distinct
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST

_LETTERS, _DIGITS = list(string.ascii_lowercase), list(string.digits)
_DIGIT = FIRST + len(_LETTERS)
_ASK = _DIGIT + len(_DIGITS)


def key_value_task(*, min_length: Size = 1, max_length: Size = 19) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``."""
    return GeneratedTask(
        "key_value", target_of, min_length=min_length, max_length=max_length,
        vocab_size=len(_LETTERS), symbols=[*_LETTERS, *_DIGITS, "?"], longest_target=1,
        sampler=_draw, answers=len(_DIGITS),
    )  # fmt: skip


def target_of(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N 1"]:
    """The digit of the last pair with the letter; see ``mha_lab.tasks.generated.Rule``."""
    asked = source.gather(1, (lengths - 1).clamp(min=0)[:, None])
    columns = torch.arange(source.shape[1])
    is_found = (source == asked) & (columns < 2 * _pairs(lengths)[:, None]) & (columns % 2 == 0)
    last = (is_found * (columns + 1)).amax(1, keepdim=True)  # the place after the letter, or 0
    return source.gather(1, last.clamp(max=source.shape[1] - 1)).masked_fill_(last == 0, 0)


def _draw(lengths: Int[Tensor, " N"], width: int, generator: torch.Generator) -> Int[Tensor, "N W"]:
    rows, columns = len(lengths), torch.arange(width)
    letters = torch.randint(FIRST, _DIGIT, (rows, width), generator=generator)
    first = FIRST + distinct(rows, len(_LETTERS), len(_LETTERS), generator)
    letters[:, : 2 * len(_LETTERS)] = first.repeat_interleave(2, 1)[:, :width]
    digits = torch.randint(_DIGIT, _ASK, (rows, width), generator=generator)
    source = torch.where(columns % 2 == 0, letters, digits)
    pairs = _pairs(lengths)[:, None]
    asked = letters.gather(1, 2 * below(pairs.clamp(min=1), generator).clamp(max=width // 2))
    source = source.masked_fill_(columns >= 2 * pairs, _ASK)
    is_last = (columns == lengths[:, None] - 1) & (columns > 0)
    return torch.where(is_last, asked, source).masked_fill_(columns >= lengths[:, None], 0)


def _pairs(lengths: Int[Tensor, " N"]) -> Int[Tensor, " N"]:
    return ((lengths - 2) // 2).clamp(min=0)
