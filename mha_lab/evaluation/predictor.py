"""A trained run that is asked: about one sequence with its maps, or about many at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from omegaconf import DictConfig
from torch import Tensor

from mha_lab import config
from mha_lab.build import build_module, build_task
from mha_lab.config.validation import validate
from mha_lab.errors import UserError, nearest, shown
from mha_lab.evaluation.prediction import Prediction, generate, predict_source, symbols_of
from mha_lab.evaluation.trained import fill, read_weights
from mha_lab.run.trainer import quieten
from mha_lab.tasks.batch import blanks, end_rows
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training.module import SequenceModule

_TOGETHER = 256  # sequences that the model reads at once


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
                raise UserError(
                    f"unknown token {shown(token)}{near} (the run knows: {known}; "
                    "spaces stand between tokens)"
                )
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
            output = generate(self.module, source, self._blanks(source))
        except ValueError as error:
            if len(some) == 1:
                place = f"{places[some[0]]}: " if places and places[some[0]] else ""
                raise UserError(place + " ".join(str(error).split())) from error
            # One of them is too long, or its output is: alone, it says so.
            return [answer for i in some for answer in self._answers([i], rows, places)]
        return [symbols_of(self.module.vocabulary, ids) for ids in output]

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
