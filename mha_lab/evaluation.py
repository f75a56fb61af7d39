"""Using a trained run again: load its module, test it elsewhere, predict one sequence."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Int
from omegaconf import DictConfig
from torch import Tensor

from mha_lab import config
from mha_lab.build import Parts, build_module, build_parts, build_task
from mha_lab.errors import UserError, nearest, shown
from mha_lab.maps.attention_map import AttentionMap
from mha_lab.recording.labels import label_maps
from mha_lab.recording.recorder import record_attention
from mha_lab.run import build_trainer, quieten
from mha_lab.tasks.batch import Batch, blanks, end_rows
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training import run_folder
from mha_lab.training.checkpoint_files import checkpoint_path, load_checkpoint
from mha_lab.training.module import SequenceModule
from mha_lab.validation import validate


@dataclass(frozen=True)
class Prediction:
    """What a run makes of one sequence.

    Attributes:
        source: the tokens read.
        output: the tokens predicted, without ``<eos>``.
        maps: the attention maps of the model reading the source and writing the output.
    """

    source: list[str]
    output: list[str]
    maps: list[AttentionMap]


def evaluate(
    folder: Path,
    overrides: Sequence[str] = (),
    *,
    checkpoint: str = "best",
    trusted: Sequence[str] = (),
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Test a run's weights.

    Args:
        folder: the run's folder.
        overrides: changes to its config: lengths, another task of the same vocabulary, ...
        checkpoint: ``best`` or ``last``.
        trusted: modules that the run's config may name besides this project's own options.

    Returns:
        The ``test/...`` metrics; and for each length the sequences and the share wholly right.

    Raises:
        UserError: no such run or checkpoint, a corrupt one, one that names what is not trusted, or
            overrides that change the model.
    """
    cfg, parts = load_trained(folder, overrides, checkpoint=checkpoint, trusted=trusted)
    trainer = build_trainer(cfg, logger=False)
    metrics = trainer.test(parts.module, datamodule=parts.data, verbose=False)[0]
    return {k: float(v) for k, v in metrics.items()}, parts.module.accuracy_by_length()


def load_trained(
    folder: Path,
    overrides: Sequence[str] = (),
    *,
    checkpoint: str = "best",
    trusted: Sequence[str] = (),
) -> tuple[DictConfig, Parts]:
    """A run's config and parts, with its trained weights; arguments and errors as ``evaluate``."""
    quieten()
    cfg = config.load_run(folder, overrides, trusted=trusted)
    content, vocabulary = _weights(folder, checkpoint)
    parts = build_parts(cfg, vocabulary=vocabulary)
    if list(parts.task.vocabulary.symbols) != list(vocabulary.symbols):
        raise UserError(
            f"the run knows {len(vocabulary.symbols)} symbols and the task has "
            f"{len(parts.task.vocabulary.symbols)}, or others: only a task of the same symbols "
            "can be evaluated"
        )
    _fill(parts.module, content)
    return cfg, parts


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
    quieten()
    cfg = config.load_run(folder, overrides, trusted=trusted)
    validate(cfg)
    content, vocabulary = _weights(folder, checkpoint)
    module = build_module(cfg, vocabulary)
    _fill(module, content)
    tokens = vocabulary.parse(text)
    if not tokens:
        raise UserError("the sequence is empty: give at least one token")
    for token in tokens:
        if token not in vocabulary.symbols:
            known = " ".join(vocabulary.symbols[:20])
            more = " ..." if len(vocabulary.symbols) > 20 else ""
            raise UserError(
                f"unknown token {shown(token)}{nearest(token, vocabulary.symbols)} "
                f"(the run knows: {known}{more})"
            )
    source = torch.tensor([[*vocabulary.encode(tokens), Vocabulary.EOS]])
    try:
        return predict_source(module, source, _blanks(cfg, vocabulary, source))
    except ValueError as error:
        raise UserError(" ".join(str(error).split())) from error


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
    # The longest target a model of this source can be asked for: twice its length, and some.
    limit = 2 * source.shape[1] + 8 if nothing is None else source.shape[1]
    asked = {} if nothing is None else {"blanks": nothing}
    output = module.model.generate(source, max_length=limit, **asked)
    maps: list[AttentionMap] = []
    if module.model.uses_attention:
        with record_attention(module.model, softmax=True) as recorded:
            module.model(source, output)
        maps = list(recorded)
    maps = label_maps(maps, module.attention_tokens(Batch(source, output)))
    names = module.vocabulary.decode
    ending = {Vocabulary.EOS, Vocabulary.PAD}
    kept = [i for i in output[0].tolist() if i not in ending]
    return Prediction(names(source[0, :-1].tolist()), names(kept), maps)


def _blanks(
    cfg: DictConfig, vocabulary: Vocabulary, source: Int[Tensor, "1 S"]
) -> Bool[Tensor, "1 S"] | None:
    """Where the run's task asks nothing of a source; None where it asks everywhere."""
    if cfg.choices.task == "files":  # its files may be gone, and its targets hold no blanks
        return None
    task = build_task(cfg, vocabulary)
    if not getattr(task, "along", False):
        return None
    rows = source[:, :-1]
    return blanks(end_rows(task.target_of(rows), (rows != Vocabulary.PAD).sum(1)))


def _weights(folder: Path, checkpoint: str) -> tuple[dict[str, object], Vocabulary]:
    if checkpoint not in ("best", "last"):
        raise UserError(f"checkpoint must be best or last, got {checkpoint!r}")
    content = load_checkpoint(checkpoint_path(folder, checkpoint))
    file = folder / run_folder.VOCABULARY
    try:
        return content, Vocabulary.load(file)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {str(file)!r}: {config.first_line(error)}") from error


def _fill(module: SequenceModule, content: dict[str, object]) -> None:
    try:
        module.load_state_dict(content["state_dict"])  # type: ignore[arg-type]
    except RuntimeError as error:
        raise UserError(
            "the checkpoint does not fit the model: the overrides change its shape or its parts"
        ) from error
    module.eval()
