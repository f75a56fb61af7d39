"""A study from its first run to its finding; it goes on where it stopped."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from rich.console import Console

from mha_lab.config import CONFIG_FILE, complete, compose, read_yaml
from mha_lab.errors import UserError
from mha_lab.reporting.writing import check_out
from mha_lab.studies import finding
from mha_lab.studies.job import is_done, seconds_of, words_of
from mha_lab.studies.launching import launch
from mha_lab.studies.measuring import Measuring, Row, measuring_of, read_measured
from mha_lab.studies.progress import Bar
from mha_lab.studies.study import Job, Study
from mha_lab.training.run_folder import COMPLETE, read_summary


def run_study(
    study: Study, *, launcher: Sequence[str] = (), trusted: Sequence[str] = ()
) -> dict[str, Any] | None:
    """Do what is left of a study, and write its report.

    Args:
        study: in the form wanted.
        launcher: words for Hydra, such as ``hydra/launcher=joblib``.
        trusted: modules that runs may name besides this project's own options.

    Returns:
        The finding; None where a run failed or another process is at it, which is told then.

    Raises:
        UserError: an arm that cannot be trained, or a run that was made with other settings.
    """
    measuring = measuring_of(study, trusted)
    jobs = study.jobs
    waiting = [job for job in jobs if not is_done(study.runs / job.name, measuring)]
    _check_words(study)
    _check_arms(study, waiting)
    check_out(study.report)
    console = Console()
    if waiting:
        done = len(jobs) - len(waiting)
        _tell(console, f"study {study.name}, {study.form} form: {len(jobs)} runs in {study.runs}"
              + (f", {done} are done" if done else ""))  # fmt: skip
        is_finished = _Done(measuring)
        with Bar(study.name, waiting, done, study.runs, is_finished, console):
            launch(waiting, study.runs, measuring, launcher)
    open_ones = [job for job in jobs if not is_done(study.runs / job.name, measuring)]
    if open_ones:
        summaries = [read_summary(study.runs / job.name) for job in open_ones]
        reasons = sorted({str(one.get("reason", "still running elsewhere")) for one in summaries})
        _tell(console, f"{len(open_ones)} of {len(jobs)} runs are not done: {'; '.join(reasons)}; "
                       "the same command goes on with them")  # fmt: skip
        return None
    found = finding.find(study, rows_of(study), seconds=total_seconds(study))
    finding.write(study, rows_of(study), found)
    return found


def rows_of(study: Study) -> list[Row]:
    """Everything that was measured, each row with its arm and seed."""
    rows: list[Row] = []
    for job in study.jobs:
        place = {axis: job.levels.get(axis, "") for axis in study.axes} | {"seed": job.seed}
        measured = read_measured(study.runs / job.name).get("rows", [])
        rows += [place | row for row in measured]
    return rows


def total_seconds(study: Study) -> float:
    """What all runs took of the processor together, training and measuring."""
    return sum(seconds_of(study.runs / job.name) for job in study.jobs)


def state(study: Study) -> str:
    """How far a study is: not run, so many of its runs, or what it found."""
    found = finding.read_finding(study)
    if found:
        return str(found["verdict"]) + ("" if found.get("key") == study.key else ", then changed")
    jobs = study.jobs
    done = sum(read_summary(study.runs / job.name).get("status") in COMPLETE for job in jobs)
    return f"{done} of {len(jobs)} runs" if done else "not run"


class _Done:
    def __init__(self, measuring: Measuring) -> None:
        self.measuring = measuring

    def __call__(self, folder: Path) -> bool:
        return is_done(folder, self.measuring)


def _check_words(study: Study) -> None:
    """See that what lies in the runs' folders are the runs of this study."""
    arms: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for job in study.jobs:
        folder, wanted = study.runs / job.name, set(complete(job.words))
        before = words_of(folder)
        if before is None:
            continue
        changed = sorted(set(before) ^ wanted)
        if not changed and (folder / CONFIG_FILE).exists():
            # The same words mean other settings where a recipe that they name has changed since.
            arm = tuple(job.levels.items())
            if arm not in arms:
                arms[arm] = _values(OmegaConf.to_container(compose(job.words, run_dir=".")))
            changed = _changed_keys(folder, arms[arm])
        if changed:
            raise UserError(
                f"{str(folder)!r} was trained with other settings ({' '.join(changed)}): remove "
                "it, and the study trains it anew"
            )


def _changed_keys(folder: Path, now: dict[str, Any]) -> list[str]:
    """The keys, besides the seed, whose values in a run's config are others now."""
    before = _values(OmegaConf.to_container(read_yaml(folder / CONFIG_FILE)))
    keys = sorted((before.keys() | now) - {"seed"})
    return [key for key in keys if before.get(key) != now.get(key)]


def _values(tree: Any, key: str = "") -> dict[str, Any]:
    """The leaves of a config by their keys."""
    if not isinstance(tree, dict):
        return {key: tree}
    leaves = [_values(part, f"{key}.{name}".lstrip(".")) for name, part in tree.items()]
    return {name: value for leaf in leaves for name, value in leaf.items()}


def _check_arms(study: Study, waiting: Sequence[Job]) -> None:
    """See, before anything is trained, that every arm can be."""
    from mha_lab.quick_start import import_lightning

    import_lightning()
    from mha_lab.build import build_parts

    for job in {tuple(job.levels.items()): job for job in waiting}.values():
        try:
            build_parts(compose(job.words, run_dir=study.runs / job.name))
        except UserError as error:
            arm = " ".join(f"{axis}={level}" for axis, level in job.levels.items())
            raise UserError(f"study {study.name}, {arm}: {error}") from error


def _tell(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)
