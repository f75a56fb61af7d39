"""What tasks with generated sequences share: how sources are drawn and the rule are their own."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from mha_lab.tasks.batch import Batch, end_rows
from mha_lab.tasks.fixed_sets import FixedSets
from mha_lab.tasks.sampled_space import SampledSpace, Sampler
from mha_lab.tasks.sequence_space import SequenceSpace
from mha_lab.tasks.splits import SPLITS, Split
from mha_lab.tasks.vocabulary import Vocabulary

# From sources, (N, L) ids padded with 0, and their lengths (N,) to targets, (N, M) padded alike.
Rule = Callable[[Int[Tensor, "N L"], Int[Tensor, " N"]], Int[Tensor, "N M"]]


class GeneratedTask:
    """Random sequences with a rule for their targets.

    Lengths are uniform from ``min_length`` to ``max_length``; symbols are uniform and independent
    unless ``sampler`` draws them otherwise. Whether a sequence is for training, validation or test
    is decided by its hash (``mha_lab.tasks.splits``), so nothing that is tested was ever trained
    on.

    Fixed sets hold distinct sequences. A short length may not have as many as the others, or none:
    then the longer ones have more.

    Args:
        name: names the task in the cache.
        rule: the oracle: gives the targets of sources.
        min_length: the shortest source, ``<eos>`` not counted.
        max_length: the longest.
        vocab_size: how many symbols sources are made of: the first of all; special tokens are not
            counted.
        symbols: names of all symbols; None names them "0", "1", and so on.
        longest_target: the longest target that the rule can give, ``<eos>`` not counted: a number,
            or what makes it of the longest source; None where it is as long as that.
        sampler: draws sources; None draws every symbol uniformly.
        length_of: which length a request for each gives; None where it is the one asked for.
        along: the target has a place for each token of the source; the rule leaves ``<pad>`` where
            nothing is asked.
        answers: how many symbols may stand in a target; None where all of ``vocab_size`` may.
        settings: further arguments of the task that its sequences follow from.

    Attributes:
        chance: the share of a target's symbols, ``<eos>`` not counted, that is guessed right by
            drawing uniformly among the ``answers``.

    Raises:
        ValueError: a length or size is below 1, max_length is below min_length, or the space is so
            small that training, validation or test would have no sequence.
    """

    training_size = None

    def __init__(
        self,
        name: str,
        rule: Rule,
        *,
        min_length: int,
        max_length: int,
        vocab_size: int,
        symbols: Sequence[str] | None = None,
        longest_target: int | Callable[[int], int] | None = None,
        sampler: Sampler | None = None,
        length_of: Callable[[int], int] | None = None,
        along: bool = False,
        answers: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.rule = rule
        self.along = along
        self.chance = 1 / (answers or max(1, vocab_size))
        self.settings = dict(settings or {})
        self.space: SequenceSpace | SampledSpace = (
            SequenceSpace(min_length, max_length, vocab_size)
            if sampler is None
            else SampledSpace(min_length, max_length, sampler, length_of)
        )
        self.vocabulary = Vocabulary(symbols or [str(symbol) for symbol in range(vocab_size)])
        self.max_source_length = max_length + 1
        longest = longest_target(max_length) if callable(longest_target) else longest_target
        self.max_target_length = (max_length if longest is None else longest) + 1
        lengths = {split: self.space.lengths(split) for split in SPLITS}  # raises if one is empty
        self._training_lengths = lengths["train"]
        sizes = {k: v for k, v in vars(self.space).items() if isinstance(v, int)}
        self.sets = FixedSets(
            self.space, self._batch, tokens=len(self.vocabulary), longest=self.max_source_length,
            key={"task": name, **sizes, **self.settings},
        )  # fmt: skip
        self.at_lengths = partial(
            GeneratedTask, name, rule, vocab_size=vocab_size, symbols=symbols, sampler=sampler,
            longest_target=longest_target, length_of=length_of, along=along, answers=answers,
            settings=settings,
        )  # fmt: skip
        """Makes the same task with another ``min_length`` and ``max_length``."""

    @property
    def training_lengths(self) -> list[int]:
        """The lengths of which training has sequences, in ascending order."""
        return sorted(self._training_lengths.tolist())

    def draw(
        self,
        n: int,
        generator: torch.Generator,
        *,
        shortest: int | None = None,
        longest: int | None = None,
    ) -> Batch:
        """Draw sequences to train on.

        Args:
            n: how many.
            generator: source of the random numbers.
            shortest: the least length; None is ``min_length``.
            longest: the greatest length; None is ``max_length``.

        Returns:
            Batch of (n, max_source_length) and (n, max_target_length): always as wide as the
            longest can be, so that a compiled model meets one shape.

        Raises:
            ValueError: training has no sequence of these lengths.
        """
        lengths = self._training_lengths
        if shortest is not None:
            lengths = lengths[lengths >= shortest]
        if longest is not None:
            lengths = lengths[lengths <= longest]
        if not len(lengths):
            raise ValueError(f"training has no sequence of length {shortest} to {longest}")
        chosen = torch.randint(len(lengths), (n,), generator=generator)
        return self._batch(self.space.draw("train", lengths[chosen], generator))

    def fixed_split(self, split: Split, size: int, *, cache_dir: Path | None = None) -> Batch:
        """Distinct sequences of a split, the same ones at every call, whatever the seed.

        Args:
            split: ``"train"``, ``"validation"`` or ``"test"``.
            size: how many; where the whole split has fewer, they all come, with a warning.
            cache_dir: where they are kept as a Hugging Face dataset; None keeps them nowhere.
        """
        return self.sets.get(split, size, cache_dir)

    def target_of(self, source: Int[Tensor, "N L"]) -> Int[Tensor, "N M"]:
        """The right targets of sources, both without ``<eos>`` and padded on the right."""
        return self.rule(source, (source != Vocabulary.PAD).sum(1))

    def _batch(self, rows: Int[Tensor, "N L"]) -> Batch:
        lengths = (rows != Vocabulary.PAD).sum(1)
        target = end_rows(self.rule(rows, lengths), lengths if self.along else None)
        return Batch(end_rows(rows), target)
