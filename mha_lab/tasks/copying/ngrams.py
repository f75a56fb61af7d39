"""What the two n-gram lookups share: n-grams of strings, and what follows them."""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks.drawing import below
from mha_lab.tasks.sequence_space import FIRST


def split_lengths(
    lengths: Int[Tensor, " N"], ngram: int
) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
    """How long the n-gram and the string are in sources of some length, the bar not counted.

    The string is always longer than the n-gram, which is shorter than asked for where the source
    has no room.
    """
    gram = ((lengths - 2) // 2).clamp(min=0, max=ngram)
    return gram, (lengths - gram - 1).clamp(min=0)


def draw_lookup(
    lengths: Int[Tensor, " N"], width: int, ngram: int, vocab_size: int, generator: torch.Generator
) -> tuple[Int[Tensor, "N W"], Int[Tensor, "N K"]]:
    """Draw a string for each source length, and one of its n-grams that is not at its end."""
    gram, string = split_lengths(lengths, ngram)
    shape = (len(lengths), width + ngram)
    strings = torch.randint(FIRST, FIRST + vocab_size, shape, generator=generator)
    start = below((string - gram).clamp(min=1), generator)
    grams = strings.gather(1, start[:, None] + torch.arange(ngram))
    return strings[:, :width], grams


def after_first(
    strings: Int[Tensor, "N W"],
    grams: Int[Tensor, "N K"],
    string: Int[Tensor, " N"],
    gram: Int[Tensor, " N"],
) -> Int[Tensor, "N W"]:
    """What follows the first occurrence of each n-gram in its string, up to the string's end.

    Args:
        strings: (N, W) ids; what stands after a string's length is not read.
        grams: (N, K) ids; what stands after an n-gram's length is not read.
        string: (N,) lengths.
        gram: (N,) lengths.
    """
    columns = torch.arange(strings.shape[1])
    agrees = columns <= (string - gram)[:, None]
    for offset in range(grams.shape[1]):
        matches = strings.roll(-offset, 1) == grams[:, offset, None]
        agrees &= matches | (gram <= offset)[:, None]
    start = agrees.int().argmax(1) + gram
    places = (columns + start[:, None]).clamp(max=strings.shape[1] - 1)
    return strings.gather(1, places).masked_fill_(columns >= (string - start)[:, None], 0)


def place(
    row: Int[Tensor, "N W"],
    part: Int[Tensor, "N K"],
    start: Int[Tensor, " N"],
    length: Int[Tensor, " N"],
) -> None:
    """Write the first ``length`` ids of each part into its row, from ``start`` on."""
    columns = torch.arange(row.shape[1]) - start[:, None]
    values = part.gather(1, columns.clamp(min=0, max=part.shape[1] - 1))
    row.copy_(torch.where((columns >= 0) & (columns < length[:, None]), values, row))
