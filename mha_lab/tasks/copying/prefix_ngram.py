"""Prefix n-gram lookup: given an n-gram, then a string that holds it, go on after the n-gram.

The source is the n-gram, ``|``, and the string; the target is all of the string after the n-gram's
first occurrence. The n-gram is that of a random place, not at the string's end. A source too short
for a string longer than the n-gram has a shorter n-gram; one of length 1 is ``|`` alone.

Example: ``0 1 2 | 4 0 1 2 5 3`` → ``5 3``

Source: Jelassi et al. (2024), "Repeat After Me: Transformers are Better than State Space Models at
Copying", section 3.2; n-grams of 3 out of 26 letters.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.ranges import Size
from mha_lab.tasks.copying.ngrams import after_first, draw_lookup, place, split_lengths
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.tasks.sequence_space import FIRST


def prefix_ngram_task(
    *, min_length: Size = 1, max_length: Size = 20, vocab_size: Size = 26, ngram: Size = 3
) -> GeneratedTask:
    """Make the task; its arguments are those of ``GeneratedTask``, and how long the n-gram is."""

    def sampler(lengths: Tensor, width: int, generator: torch.Generator) -> Tensor:
        strings, grams = draw_lookup(lengths, width, ngram, vocab_size, generator)
        gram, string = split_lengths(lengths, ngram)
        rows = torch.zeros_like(strings)
        place(rows, grams, torch.zeros_like(gram), gram)
        place(rows, torch.full_like(grams, FIRST + vocab_size), gram, torch.ones_like(gram))
        place(rows, strings, gram + 1, string)
        return rows

    def rule(source: Int[Tensor, "N L"], lengths: Int[Tensor, " N"]) -> Int[Tensor, "N L"]:
        gram, string = split_lengths(lengths, ngram)
        columns = torch.arange(source.shape[1]) + gram[:, None] + 1
        strings = source.gather(1, columns.clamp(max=source.shape[1] - 1))
        return after_first(strings, source[:, :ngram], string, gram)

    return GeneratedTask(
        "prefix_ngram", rule, min_length=min_length, max_length=max_length, vocab_size=vocab_size,
        symbols=[*map(str, range(vocab_size)), "|"], sampler=sampler,
        settings={"vocab_size": vocab_size, "ngram": ngram},
    )  # fmt: skip
