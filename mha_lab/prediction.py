"""What a trained run makes of sequences: of one with its attention maps, or of many at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from omegaconf import DictConfig
from torch import Tensor

from mha_lab import config
from mha_lab.build import build_module, build_task
from mha_lab.errors import UserError, nearest, shown
from mha_lab.evaluation import fill, read_weights
from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.printable import WRITES
from mha_lab.recording.labels import label_maps
from mha_lab.recording.recorder import record_attention
from mha_lab.tasks.batch import Batch, blanks, end_rows
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.trainer import quieten
from mha_lab.training.module import SequenceModule
from mha_lab.validation import validate

_TOGETHER = 256  # sequences that the model reads at once


@dataclass(frozen=True)
class Prediction:
    """What a run makes of one sequence.

    Attributes:
        source: the tokens read.
        output: the tokens predicted, without ``<eos>``.
        written: the tokens predicted, with ``<eos>`` and what stands where nothing is asked.
        maps: the attention maps of the model reading the source and writing the output.
    """

    source: list[str]
    output: list[str]
    written: list[str]
    maps: list[AttentionMap]

    def drawn(self) -> list[AttentionMap]:
        """The maps as a picture labels them: each row that writes a token says which."""
        starts = [_start(one) for one in self.maps]
        # A model that writes nothing step by step writes each token at its place in the source.
        steps = starts if any(start is not None for start in starts) else [0] * len(starts)
        pairs = zip(self.maps, steps, strict=True)
        return [one if at is None else _with_written(one, at, self.written) for one, at in pairs]

    @property
    def title(self) -> str:
        """What was read and what was written, above a picture of it."""
        return f"{' '.join(self.source)} → {' '.join(self.output) or '(nothing)'}"


@dataclass(frozen=True)
class Predictor:
    """A trained run that is asked.

    Attributes:
        cfg: the run's config.
        module: with its trained weights.
    """

    cfg: DictConfig
    module: SequenceModule

    @classmethod
    def load(
        cls,
        folder: Path,
        overrides: Sequence[str] = (),
        *,
        checkpoint: str = "best",
        trusted: Sequence[str] = (),
    ) -> "Predictor":
        """Load a run.

        Args:
            folder: the run's folder.
            overrides: changes to the run's config.
            checkpoint: ``best`` or ``last``.
            trusted: modules that the run's config may name besides this project's own options.

        Raises:
            UserError: no such run or checkpoint, or one that cannot be read.
        """
        quieten()
        cfg = config.load_run(folder, overrides, trusted=trusted)
        cfg.compile = False  # it would take longer than what is asked
        validate(cfg)
        content, vocabulary = read_weights(folder, checkpoint)
        module = build_module(cfg, vocabulary)
        fill(module, content)
        return cls(cfg, module)

    def read(self, sequence: str | Sequence[str]) -> list[str]:
        """The tokens of what a person typed, or the same tokens.

        Raises:
            UserError: there is none, or one that the run does not know.
        """
        symbols = self.module.vocabulary.symbols
        if isinstance(sequence, str):
            sequence = self.module.vocabulary.parse(sequence)
        tokens = list(sequence)
        if not tokens:
            raise UserError("the sequence is empty: give at least one token")
        for token in tokens:
            if token not in symbols:
                known = " ".join(symbols[:20]) + (" ..." if len(symbols) > 20 else "")
                near = nearest(token, symbols)
                raise UserError(f"unknown token {shown(token)}{near} (the run knows: {known})")
        return tokens

    def predict(self, tokens: Sequence[str]) -> Prediction:
        """What the model makes of one sequence that was ``read``, with its maps.

        Raises:
            UserError: it is longer than the model can read.
        """
        source = self._source([tokens])
        try:
            return predict_source(self.module, source, self._blanks(source))
        except ValueError as error:
            raise UserError(" ".join(str(error).split())) from error

    def outputs(self, rows: Sequence[Sequence[str]], places: Sequence[str] = ()) -> list[list[str]]:
        """The outputs of many sequences that were ``read``, in their order.

        Sequences of one length are read together, so each is answered as if it were alone.

        Args:
            rows: the sequences.
            places: where each comes from, for what is said of one that fails.

        Raises:
            UserError: one is longer than the model can read.
        """
        answers: list[list[str]] = [[] for _ in rows]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for _, same in groupby(order, key=lambda i: len(rows[i])):
            while some := list(islice(same, _TOGETHER)):
                for i, answer in zip(some, self._answers(some, rows, places), strict=True):
                    answers[i] = answer
        return answers

    def _answers(
        self, some: Sequence[int], rows: Sequence[Sequence[str]], places: Sequence[str]
    ) -> list[list[str]]:
        source = self._source([rows[i] for i in some])
        try:
            output = _generate(self.module, source, self._blanks(source))
        except ValueError as error:
            if len(some) == 1:
                place = f"{places[some[0]]}: " if places and places[some[0]] else ""
                raise UserError(place + " ".join(str(error).split())) from error
            # One of them is too long, or its output is: alone, it says so.
            return [answer for i in some for answer in self._answers([i], rows, places)]
        return [_symbols(self.module.vocabulary, ids) for ids in output]

    def _source(self, rows: Sequence[Sequence[str]]) -> Int[Tensor, "N S"]:
        encode = self.module.vocabulary.encode
        return torch.tensor([[*encode(tokens), Vocabulary.EOS] for tokens in rows])

    @cached_property
    def _task(self) -> Any:
        return build_task(self.cfg, self.module.vocabulary)

    def _blanks(self, source: Int[Tensor, "N S"]) -> Bool[Tensor, "N S"] | None:
        """Where the run's task asks nothing of a source; None where it asks everywhere."""
        if self.cfg.choices.task == "files":  # its files may be gone; its targets hold no blanks
            return None
        if not getattr(self._task, "along", False):
            return None
        rows = source[:, :-1]
        return blanks(end_rows(self._task.target_of(rows), (rows != Vocabulary.PAD).sum(1)))


def predict(
    folder: Path,
    text: str,
    overrides: Sequence[str] = (),
    *,
    checkpoint: str = "best",
    trusted: Sequence[str] = (),
) -> Prediction:
    """Run a trained model on one sequence.

    Args:
        folder: the run's folder.
        text: the source's tokens, separated by spaces (or one character a token).
        overrides: changes to the run's config.
        checkpoint: ``best`` or ``last``.
        trusted: modules that the run's config may name besides this project's own options.

    Raises:
        UserError: no such run or checkpoint, a token that the run does not know, or a sequence
            longer than the model can read.
    """
    predictor = Predictor.load(folder, overrides, checkpoint=checkpoint, trusted=trusted)
    return predictor.predict(predictor.read(text))


@torch.no_grad()
def predict_source(
    module: SequenceModule, source: Int[Tensor, "1 S"], nothing: Bool[Tensor, "1 T"] | None = None
) -> Prediction:
    """Run a model on one sequence of ids.

    Args:
        module: a trained one.
        source: ends in ``<eos>``.
        nothing: True where nothing is asked; None where the task asks everywhere.
    """
    output = _generate(module, source, nothing)
    maps: list[AttentionMap] = []
    if module.model.uses_attention:
        with record_attention(module.model, softmax=True) as recorded:
            module.model(source, output)
        maps = list(recorded)
    maps = label_maps(maps, module.attention_tokens(Batch(source, output)))
    read = module.vocabulary.decode(source[0, :-1].tolist())
    written = module.vocabulary.decode(output[0].tolist())
    return Prediction(read, _symbols(module.vocabulary, output[0]), written, maps)


def first_wrong(module: SequenceModule, batch: Batch, right: Float[Tensor, " N"]) -> Prediction:
    """The first sequence of a batch that went wrong, or else the first.

    Args:
        module: a trained one.
        batch: sequences and their right targets.
        right: 1 where the whole output is right.
    """
    chosen = int(right.argmin())
    length = int((batch.source[chosen] != Vocabulary.PAD).sum())
    source, target = batch.source[chosen : chosen + 1, :length], batch.target[chosen : chosen + 1]
    nothing = blanks(target)
    return predict_source(module, source, nothing if nothing.any() else None)


def _start(one: AttentionMap) -> int | None:
    """The row that writes the first token: the one that reads where the output begins."""
    tokens = one.query_tokens[0] if one.query_tokens else []
    begins = {Vocabulary.SPECIAL[Vocabulary.BOS], Vocabulary.SPECIAL[Vocabulary.SEP]}
    return next((i for i, token in enumerate(tokens) if token in begins), None)


def _with_written(one: AttentionMap, start: int, written: Sequence[str]) -> AttentionMap:
    if one.query_tokens is None:
        return one
    rows = list(one.query_tokens[0])
    for row, token in enumerate(written[: len(rows) - start], start):
        rows[row] += f"{WRITES}{token}"
    return replace(one, query_tokens=[rows])


@torch.no_grad()
def _generate(
    module: SequenceModule, source: Int[Tensor, "N S"], nothing: Bool[Tensor, "N T"] | None
) -> Int[Tensor, "N T"]:
    # The longest target a model of this source can be asked for: twice its length, and some.
    limit = 2 * source.shape[1] + 8 if nothing is None else source.shape[1]
    asked: dict[str, Any] = {} if nothing is None else {"blanks": nothing}
    return module.model.generate(source, max_length=limit, **asked)


def _symbols(vocabulary: Vocabulary, ids: Int[Tensor, " T"]) -> list[str]:
    ending = {Vocabulary.EOS, Vocabulary.PAD}
    return vocabulary.decode([i for i in ids.tolist() if i not in ending])
