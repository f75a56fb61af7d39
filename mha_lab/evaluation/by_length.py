"""A trained run on lengths that it may never have seen: numbers, a plot, and maps of each range."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mha_lab import config, memory
from mha_lab.errors import UserError
from mha_lab.evaluation import load_trained
from mha_lab.evaluation.prediction import Prediction, first_wrong
from mha_lab.tasks.batch import Batch
from mha_lab.tasks.generated import GeneratedTask
from mha_lab.training.length_scores import by_length, score, summarise

Range = tuple[int, int]
_MADE_FOR_LONGER = ("rotary", "alibi", "randomized")


@dataclass(frozen=True)
class LengthEvaluation:
    """What a run does on each range of lengths.

    Attributes:
        ranges: one row a range: ``lengths`` ("11-20"), ``beyond`` (longer than in training), how
            many ``sequences``, the measures of ``length_scores`` and their standard errors.
        lengths: one row a length, in ascending order, with ``length`` in place of ``lengths``;
            where ranges overlap, of the first that has it.
        examples: for each range, one sequence with its attention maps: the first whose output is
            wrong, or else the first. None of a model without attention.
        trained: the lengths that the run was trained on; None where that is not known.
        chance: of a symbol that is guessed.
    """

    ranges: list[dict[str, Any]]
    lengths: list[dict[str, Any]]
    examples: dict[str, Prediction]
    trained: Range | None
    chance: float


def evaluate_lengths(
    folder: Path,
    ranges: Iterable[Range],
    overrides: Sequence[str] = (),
    *,
    samples: int = 2000,
    checkpoint: str = "best",
    trusted: Sequence[str] = (),
) -> LengthEvaluation:
    """Test a run's weights on ranges of lengths.

    Args:
        folder: the run's folder.
        ranges: the shortest and the longest source of each.
        overrides: changes to the run's config.
        samples: sequences of each range, at most.
        checkpoint: ``best`` or ``last``.
        trusted: modules that the run's config may name besides this project's own options.

    Raises:
        UserError: as ``evaluation.evaluate``; or the task cannot make sequences of any length, or
            the model cannot read them.
    """
    _, parts = load_trained(folder, overrides, checkpoint=checkpoint, trusted=trusted)
    trained = trained_lengths(folder, trusted)
    rows, lengths, examples = [], dict[int, dict[str, Any]](), {}
    for low, high in ranges:
        name = f"{low}-{high}"
        try:
            batch = _sequences(parts.task, low, high, samples)
            scores = score(parts.module.model, batch)
            if parts.module.model.uses_attention:
                examples[name] = first_wrong(parts.module, batch, scores["sequence_accuracy"])
        except ValueError as error:
            raise UserError(f"lengths={name}: {' '.join(str(error).split())}") from error
        is_beyond = trained is not None and high > trained[1]
        rows.append({"lengths": name, "beyond": is_beyond, **summarise(scores)})
        for row in by_length(scores):
            length = row.pop("length")
            is_beyond = trained is not None and length > trained[1]
            lengths.setdefault(length, {"length": length, "beyond": is_beyond, **row})
    by_one = [lengths[length] for length in sorted(lengths)]
    return LengthEvaluation(rows, by_one, examples, trained, parts.task.chance)


def trained_lengths(folder: Path, trusted: Sequence[str] = ()) -> Range | None:
    """The lengths that a run was trained on, by its own config."""
    cfg = config.load_run(folder, trusted=trusted)
    low, high = cfg.task.get("min_length"), cfg.task.get("max_length")
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def _sequences(task: Any, low: int, high: int, samples: int) -> Batch:
    """Test sequences of a range of lengths."""
    if not isinstance(task, GeneratedTask):
        raise UserError(
            "lengths= needs a task that makes sequences of any length; this run's has those of its "
            "files alone: evaluate it without lengths="
        )
    memory.require(2 * high * samples * memory.ID, f"samples={samples} of length {high}")
    return task.at_lengths(min_length=low, max_length=high).fixed_split("test", samples)


def why_beyond(folder: Path, longest: int, trusted: Sequence[str] = ()) -> str | None:
    """Say what lengths beyond training mean for a run's model; None where none is beyond.

    Args:
        folder: the run's folder.
        longest: the longest source that was evaluated.
        trusted: as ``evaluate_lengths``.
    """
    trained = trained_lengths(folder, trusted)
    if trained is None or longest <= trained[1]:
        return None
    cfg = config.load_run(folder, trusted=trusted)
    reason = f"lengths above {trained[1]} are longer than any in training"
    advice = f"train with task.max_length={longest}"
    if cfg.choices.get("model") == "recurrent":
        return f"{reason}: to do better there, {advice}"
    position = cfg.choices.get("position")
    if position == "learned":
        reason += (
            "; position=learned holds a vector for each place, and those of places that training "
            "never met are still random"
        )
    *others, last = (one for one in _MADE_FOR_LONGER if one != position)
    return (
        f"{reason}: to do better there, {advice}, or with an encoding that was made for longer "
        f"sequences, such as position={', '.join(others)} or {last}, and compare them by lengths="
    )
