"""What a model makes of one sequence: what it writes, and its attention maps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.printable import WRITES
from mha_lab.recording.labels import label_maps
from mha_lab.recording.recorder import record_attention
from mha_lab.tasks.batch import Batch, blanks
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training.module import SequenceModule

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
    output = generate(module, source, nothing)
    maps: list[AttentionMap] = []
    if module.model.uses_attention:
        with record_attention(module.model, softmax=True) as recorded:
            module.model(source, output)
        maps = list(recorded)
    maps = label_maps(maps, module.attention_tokens(Batch(source, output)))
    read = module.vocabulary.decode(source[0, :-1].tolist())
    written = module.vocabulary.decode(output[0].tolist())
    return Prediction(read, symbols_of(module.vocabulary, output[0]), written, maps)


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
    return Vocabulary.output_start(tokens)


def _with_written(one: AttentionMap, start: int, written: Sequence[str]) -> AttentionMap:
    if one.query_tokens is None:
        return one
    rows = list(one.query_tokens[0])
    for row, token in enumerate(written[: len(rows) - start], start):
        rows[row] += f"{WRITES}{token}"
    return replace(one, query_tokens=[rows])


@torch.no_grad()
def generate(
    module: SequenceModule, source: Int[Tensor, "N S"], nothing: Bool[Tensor, "N T"] | None
) -> Int[Tensor, "N T"]:
    """The ids that a model writes, with ``<eos>`` where it ends.

    Args:
        module: a trained one.
        source: ids of sequences of one length.
        nothing: True where nothing is asked; None where the task asks everywhere.
    """
    # The longest target a model of this source can be asked for: twice its length, and some.
    limit = 2 * source.shape[1] + 8 if nothing is None else source.shape[1]
    asked: dict[str, Any] = {} if nothing is None else {"blanks": nothing}
    return module.model.generate(source, max_length=limit, **asked)


def symbols_of(vocabulary: Vocabulary, ids: Int[Tensor, " T"]) -> list[str]:
    """The tokens of what was written, without ``<eos>`` and padding."""
    ending = {Vocabulary.EOS, Vocabulary.PAD}
    return vocabulary.decode([i for i in ids.tolist() if i not in ending])
