"""One run of a study, where a launcher starts it: train or go on, then measure."""

import json
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from omegaconf import DictConfig

from mha_lab.config import CONFIG_FILE, finish
from mha_lab.studies.measuring import MEASURED, Measuring, read_measured
from mha_lab.training.run_folder import COMPLETE, read_summary, write_atomically, write_summary

STARTED = "started.json"
_LOCK = ".study.lock"


def work(cfg: DictConfig, *, measuring: Measuring) -> None:
    """Do what is left to do of one run, unless another process does.

    A failure is noted in the run's summary, and ends no other.

    Args:
        cfg: composed by Hydra.
        measuring: how the study measures.

    Raises:
        KeyboardInterrupt: a signal came; the run can go on.
    """
    from hydra.core.hydra_config import HydraConfig

    folder = Path(HydraConfig.get().runtime.output_dir)
    words = list(HydraConfig.get().overrides.task)
    lock = FileLock(folder / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:  # the same command was started twice: the other one does this run
        return
    try:
        if not is_done(folder, measuring):
            _do(cfg, folder, words, measuring)
    finally:
        lock.release()


def _do(cfg: DictConfig, folder: Path, words: list[str], measuring: Measuring) -> None:
    spent, since = seconds_of(folder), time.process_time()
    _note(folder, words, spent)
    try:
        _work(cfg, folder, measuring)
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        summary = read_summary(folder) | {"reason": reason}
        if summary.get("status") not in COMPLETE:  # else it was the measuring that failed
            summary |= {"status": "failed", "exit_code": 1, "overrides": words}
        write_summary(folder, summary)
    finally:
        _note(folder, words, spent + time.process_time() - since)


def _work(cfg: DictConfig, folder: Path, measuring: Measuring) -> None:
    summary = read_summary(folder)
    if summary.get("status") not in COMPLETE:
        summary = _train(cfg, folder)
    content = {"key": measuring.key, "rows": measuring.rows(folder, summary)}
    write_atomically(folder / MEASURED, json.dumps(content) + "\n")


def _train(cfg: DictConfig, folder: Path) -> dict[str, Any]:
    from mha_lab.quick_start import import_lightning

    import_lightning()
    from mha_lab.run import train

    summary = train(finish(cfg), resume=(folder / CONFIG_FILE).exists())
    if summary["status"] == "interrupted":
        stopped = KeyboardInterrupt()
        stopped.exit_code = summary["exit_code"]  # type: ignore[attr-defined]
        raise stopped
    return summary


def is_done(folder: Path, measuring: Measuring) -> bool:
    """Whether nothing is left to do of a run."""
    is_trained = read_summary(folder).get("status") in COMPLETE
    return is_trained and read_measured(folder).get("key") == measuring.key


def words_of(folder: Path) -> list[str] | None:
    """The overrides that a run was started with; None where none was."""
    return _read_note(folder).get("words")


def seconds_of(folder: Path) -> float:
    """What a run took of the processor, training and measuring, whenever that was."""
    return float(_read_note(folder).get("cpu_seconds", 0.0))


def _note(folder: Path, words: list[str], seconds: float) -> None:
    content = {"words": words, "cpu_seconds": round(seconds, 3)}
    write_atomically(folder / STARTED, json.dumps(content) + "\n")


def _read_note(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / STARTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
