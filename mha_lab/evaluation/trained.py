"""A trained run used again: its weights loaded, and tested on its own task or on another."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from mha_lab import config
from mha_lab.build import Parts, build_parts
from mha_lab.errors import UserError
from mha_lab.run.trainer import build_trainer, quieten
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training import run_folder
from mha_lab.training.checkpoint_files import checkpoint_path, load_checkpoint
from mha_lab.training.module import SequenceModule


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
    return test(*load_trained(folder, overrides, checkpoint=checkpoint, trusted=trusted))


def test(cfg: DictConfig, parts: Parts) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Test what ``load_trained`` gave; returns what ``evaluate`` does."""
    cfg.trainer.enable_progress_bar = False
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
    cfg.compile = False  # it would take longer than what is asked
    content, vocabulary = read_weights(folder, checkpoint)
    parts = build_parts(cfg, vocabulary=vocabulary)
    if list(parts.task.vocabulary.symbols) != list(vocabulary.symbols):
        raise UserError(
            f"the run knows {len(vocabulary.symbols)} symbols and the task has "
            f"{len(parts.task.vocabulary.symbols)}, or others: only a task of the same symbols "
            "can be evaluated"
        )
    fill(parts.module, content)
    return cfg, parts


def read_weights(folder: Path, checkpoint: str) -> tuple[dict[str, object], Vocabulary]:
    """A run's checkpoint, ``best`` or ``last``, and the symbols that it knows.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    if checkpoint not in ("best", "last"):
        raise UserError(f"checkpoint must be best or last, got {checkpoint!r}")
    content = load_checkpoint(checkpoint_path(folder, checkpoint))
    file = folder / run_folder.VOCABULARY
    try:
        return content, Vocabulary.load(file)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {str(file)!r}: {config.first_line(error)}") from error


def fill(module: SequenceModule, content: dict[str, object]) -> None:
    """Put a checkpoint's weights into a module, ready to be used.

    Raises:
        UserError: they do not fit.
    """
    try:
        module.load_state_dict(content["state_dict"])  # type: ignore[arg-type]
    except RuntimeError as error:
        raise UserError(
            "the checkpoint does not fit the model: the overrides change its shape or its parts"
        ) from error
    module.eval()
