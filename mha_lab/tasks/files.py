"""A person's own pairs of sequences, from files."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import torch
from annotated_types import Interval

from mha_lab.tasks.batch import Batch, end_rows, pad_rows
from mha_lab.tasks.cache import default_cache_dir
from mha_lab.tasks.pair_file import Pair, Value, read_pairs
from mha_lab.tasks.shares import Tokens, keep_apart
from mha_lab.tasks.splits import SPLITS, Split
from mha_lab.tasks.vocabulary import Vocabulary

Share = Annotated[float, Interval(gt=0, lt=1)]


class FilesTask:
    """Pairs of token sequences from JSONL or CSV files with the columns source and target.

    A value is a list of tokens (JSONL only) or text. Text is cut at its spaces where any text of
    the training file has a space inside; else every character is a token.

    The vocabulary is that of the training file (of all of it, shares included), in sorted order.
    Other tokens of the other files become ``<unk>``, with a warning that counts them; another
    warning counts the sources that training has too.

    Args:
        train: the training file.
        validation: the file to validate on, of which all is used; or a share of the training
            file, such as 0.1, to be kept out of training for it.
        test: the file to test on, or a share, as for validation.
        vocabulary: one to use in place of the training file's own, so that the ids stay those of
            an earlier run.
        cache_dir: where Arrow copies of the files are kept; None is the folder in the environment
            variable MHA_LAB_CACHE, or ``~/.cache/mha_lab``.

    Raises:
        ValueError: a file is not named, or a share is not between 0 and 1, or leaves nothing.
        DataFileError: a file is missing, unreadable or malformed.
    """

    def __init__(
        self,
        train: str | None = None,
        validation: str | Share | None = None,
        test: str | Share | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        cache_dir: str | None = None,
    ) -> None:
        given = dict(zip(SPLITS, (train, validation, test), strict=True))
        folder = (Path(cache_dir).expanduser() if cache_dir else default_cache_dir()) / "files"
        files, shares = _check_named(given)
        pairs = {split: read_pairs(file, cache_dir=folder) for split, file in files.items()}
        cut = _cutter(pairs["train"])
        tokens = {
            split: [(cut(pair.source), cut(pair.target)) for pair in rows]
            for split, rows in pairs.items()
        }
        self.vocabulary = vocabulary or _vocabulary(tokens["train"])
        for split, file in files.items():
            self._warn_of_unknown(file, tokens[split])
            if split != "train":
                _warn_of_known(file, tokens[split], tokens["train"])
        if shares:
            tokens |= keep_apart(tokens["train"], shares)
        self._batches = {split: self._batch(rows) for split, rows in tokens.items()}
        self.training_size = len(tokens["train"])
        self.max_source_length = max(b.source.shape[1] for b in self._batches.values())
        self.max_target_length = max(b.target.shape[1] for b in self._batches.values())

    def fixed_split(self, split: Split, size: int, *, cache_dir: Path | None = None) -> Batch:
        """The rows of a file, in its order.

        Args:
            split: ``"train"``, ``"validation"`` or ``"test"``.
            size: of the training file, use the first rows only; the other files are used whole.
            cache_dir: not needed here: the files are read already.
        """
        batch = self._batches[split]
        return Batch(*(part[:size] for part in batch)) if split == "train" else batch

    def draw(self, n: int, generator: torch.Generator) -> Batch:
        """Draw n rows of the training file, with repeats."""
        chosen = torch.randint(self.training_size, (n,), generator=generator)
        return Batch(*(part[chosen] for part in self._batches["train"]))

    def _batch(self, rows: Sequence[Tokens]) -> Batch:
        sides = zip(*rows, strict=True)
        return Batch(*(end_rows(pad_rows([*map(self.vocabulary.encode, side)])) for side in sides))

    def _warn_of_unknown(self, file: str, rows: Sequence[Tokens]) -> None:
        unknown = Counter(
            token for row in rows for side in row for token in side if token not in self.vocabulary
        )
        if unknown:
            shown = ", ".join(repr(token) for token, _ in unknown.most_common(5))
            more = ", ..." if len(unknown) > 5 else ""
            warnings.warn(
                f"{file}: not in the vocabulary, so read as <unk>: {shown}{more} "
                f"({unknown.total()} times in all)",
                stacklevel=3,
            )


def _check_named(
    given: dict[Split, str | float | None],
) -> tuple[dict[Split, str], dict[Split, float]]:
    """Which splits are files, and which are shares of the training file."""
    for split, source in given.items():
        if source is None or (split == "train" and not isinstance(source, str)):
            raise ValueError(
                f"{split} is missing: task=files needs three files, task.train=FILE, "
                "task.validation=FILE and task.test=FILE, each .jsonl or .csv; or one, of which "
                "shares are kept apart: task.train=FILE task.validation=0.1 task.test=0.1"
            )
    files = {split: file for split, file in given.items() if isinstance(file, str)}
    shares = {split: float(x) for split, x in given.items() if isinstance(x, int | float)}
    return files, shares


def _cutter(pairs: Iterable[Pair]) -> Callable[[Value], list[str]]:
    """How to cut text into tokens, which the training file decides for all."""
    texts = (value for pair in pairs for value in pair if isinstance(value, str))
    has_spaces = any(len(text.split()) > 1 for text in texts)

    def cut(value: Value) -> list[str]:
        if isinstance(value, list):
            return value
        return value.split() if has_spaces else list("".join(value.split()))

    return cut


def _vocabulary(rows: Iterable[Tokens]) -> Vocabulary:
    return Vocabulary(sorted({token for row in rows for side in row for token in side}))


def _warn_of_known(file: str, rows: Sequence[Tokens], training: Sequence[Tokens]) -> None:
    known = {tuple(source) for source, _ in training}
    seen = sum(tuple(source) in known for source, _ in rows)
    if seen:
        warnings.warn(
            f"{file}: {seen} of {len(rows)} sources are in the training file too, so accuracy here "
            "says less about new ones",
            stacklevel=3,
        )
