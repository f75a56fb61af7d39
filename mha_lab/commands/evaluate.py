"""Test a run again, on its own task or on another, longer or harder one.

Usage:
  python -m mha_lab evaluate run=FOLDER                      the run's own test set
  python -m mha_lab evaluate run=FOLDER task.max_length=20   any override
  python -m mha_lab evaluate run=FOLDER task=sort            another task of the same vocabulary
  python -m mha_lab evaluate run=FOLDER checkpoint=last      the last weights, not the best
  python -m mha_lab evaluate run=FOLDER trust=my_variants    a run of code of your own
  python -m mha_lab evaluate run=latest                      the newest run below outputs/
  python -m mha_lab evaluate run=FOLDER lengths=1-10,11-20,21-40 samples=2000
                                                             lengths, in and beyond training

run= is a run's folder, or a folder of runs, of which the newest is taken.

Prints the accuracy, whole and by length, and keeps it in FOLDER/evaluations/, with a page of the
attention maps of one test sequence, a wrong one where the first 64 hold one. With lengths= that is
for each range and each length: the sequence accuracy, also with the length given; the token
accuracy, teacher forced and free running; standard errors; a plot with the training range shaded;
and the attention maps of one sequence of each range, a wrong one where there is one.
"""

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_lab.arguments import split, whole_number
from mha_lab.commands.which_run import which_run
from mha_lab.config import trust
from mha_lab.errors import UserError
from mha_lab.terminal import relative, show_table, tracked, wrapped

if TYPE_CHECKING:
    from mha_lab.build import Parts

_SETTINGS = ("run", "checkpoint", "lengths", "samples", trust.SETTING)
_LONGEST = 10_000
_LOOKED_AT = 64  # test sequences among which a wrong one is looked for
_BEYOND = "longer than in training"


def main(arguments: Sequence[str]) -> int:
    """Evaluate and print."""
    settings, overrides = split(arguments, _SETTINGS)
    if "run" not in settings:
        raise UserError("evaluate needs run=FOLDER, the folder of a trained run")
    if "samples" in settings and "lengths" not in settings:
        raise UserError("samples= goes with lengths=; the test set's size is data.test_size=")
    ranges = _ranges(settings["lengths"]) if "lengths" in settings else []
    folder = which_run("run", settings["run"])
    common = {
        "checkpoint": settings.get("checkpoint", "best"),
        "trusted": trust.modules(settings.get(trust.SETTING)),
    }
    kept = folder / "evaluations" / f"{datetime.now():%Y-%m-%d_%H-%M-%S-%f}"
    if ranges:
        samples = whole_number("samples", settings.get("samples", "2000"), low=1, high=10**7)
        longest = _by_range(folder, ranges, overrides, samples, common, kept)
    else:
        longest = _by_test_set(folder, overrides, common, kept)
    from mha_lab.evaluation.by_length import why_beyond

    reason = why_beyond(folder, longest, common["trusted"])
    if reason is not None:
        print(wrapped(reason, sys.stdout))
    print(relative(kept))
    return 0


def _by_test_set(folder: Path, overrides: Sequence[str], common: dict[str, Any], kept: Path) -> int:
    """Test on the test set; the longest length in it."""
    from mha_lab.evaluation.by_length import trained_lengths
    from mha_lab.evaluation.trained import load_trained, test
    from mha_lab.training.run_folder import write_rows, write_summary

    cfg, parts = load_trained(folder, overrides, **common)
    metrics, rows = test(cfg, parts)
    trained = trained_lengths(folder, common["trusted"])
    longest = max((int(row["length"]) for row in rows), default=0)
    limit = trained[1] if trained else longest
    print(_which(folder, common))
    show_table(
        ("length", "sequences", "sequence accuracy", ""),
        [
            (
                f"{row['length']:.0f}",
                f"{row['sequences']:.0f}",
                f"{row['sequence_accuracy']:.4f}",
                _BEYOND if row["length"] > limit else "",
            )
            for row in rows
        ],
        numeric=4,
    )
    count = sum(int(row["sequences"]) for row in rows)
    beyond = sum(int(row["sequences"]) for row in rows if row["length"] > limit)
    some = f", {beyond:,} of them {_BEYOND}" if beyond else ""
    meanings = {
        "test/sequence_accuracy": f"of {count:,} sequences, wholly right{some}",
        "test/token_accuracy": "of their tokens, each given the right ones before; no padding",
        "test/loss": "a token, in nats; no padding",
    }
    for key, value in sorted(metrics.items(), key=lambda one: list(meanings).index(one[0])):
        print(wrapped(f"{key:<24} {value:.4f}  {meanings[key]}", sys.stdout, indent=33))
    kept.mkdir(parents=True, exist_ok=True)
    write_rows(kept / "accuracy_by_length.csv", rows)
    write_summary(kept, {"overrides": list(overrides), **metrics})
    if parts.module.model.uses_attention:
        print(relative(_write_maps(parts, kept)))
    return longest


def _write_maps(parts: "Parts", kept: Path) -> Path:
    """A page with the maps of one test sequence: a wrong one, where the first ones hold one."""
    from mha_lab.evaluation.prediction import first_wrong
    from mha_lab.tasks.batch import Batch
    from mha_lab.training.length_scores import score
    from mha_lab.view.gallery import Gallery

    module = parts.module.cpu()
    batch = Batch(*(rows[:_LOOKED_AT] for rows in next(iter(parts.data.test_dataloader()))))
    example = first_wrong(module, batch, score(module.model, batch)["sequence_accuracy"])
    return Gallery(example.maps, title=example.title).save(kept / "maps.html")


def _by_range(
    folder: Path,
    ranges: Sequence[tuple[int, int]],
    overrides: Sequence[str],
    samples: int,
    common: dict[str, Any],
    kept: Path,
) -> int:
    """Test on ranges of lengths; the longest of them."""
    from mha_lab.evaluation.by_length import evaluate_lengths
    from mha_lab.evaluation.length_files import write_evaluation
    from mha_lab.training.length_scores import MEASURES

    bar = tracked(ranges, "testing lengths")
    result = evaluate_lengths(folder, bar, overrides, samples=samples, **common)
    print(_which(folder, common))
    show_table(
        ("lengths", "sequences", *MEASURES.values(), ""),
        [
            (
                row["lengths"],
                str(row["sequences"]),
                *(f"{row[name]:.4f} ± {row[f'{name}_error']:.4f}" for name in MEASURES),
                _BEYOND if row["beyond"] else "",
            )
            for row in result.ranges
        ],
        numeric=6,
        # Of a narrow terminal; the files have them.
        spare=(MEASURES["token_accuracy_free"], MEASURES["sequence_accuracy_length_given"]),
    )
    print(f"± standard error; a symbol that is guessed is right in {result.chance:.4f}")
    write_evaluation(result, kept, overrides=overrides)
    return max(high for _, high in ranges)


def _which(folder: Path, common: dict[str, Any]) -> str:
    """Which run it was, and which of its weights."""
    from mha_lab.config import load_run
    from mha_lab.run.opening import names_of_run
    from mha_lab.training.checkpoint_files import checkpoint_path, load_checkpoint

    cfg = load_run(folder, trusted=common["trusted"])
    step = load_checkpoint(checkpoint_path(folder, common["checkpoint"])).get("global_step")
    weights = f"{common['checkpoint']} weights, of step {step:,}"
    return " · ".join([*names_of_run(cfg), f"seed {cfg.seed}", weights])


def _ranges(text: str) -> list[tuple[int, int]]:
    """Read ``1-10,11-20,40``."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= low <= high <= _LONGEST:
            raise UserError(
                f"lengths= takes ranges from 1 to {_LONGEST}, the shorter length first, such as "
                f"1-10,11-20; got {part!r}"
            )
        found.append((low, high))
    if len(set(found)) < len(found):
        raise UserError(f"lengths={text} names a range twice")
    return found
