"""Train one run, and tell how it ended."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mha_lab.terminal import relative, setting

if TYPE_CHECKING:
    from omegaconf import DictConfig


def train_and_tell(cfg: "DictConfig", *, resume: bool = False) -> int:
    """Train and print the short summary; the run's folder is the last line."""
    summary, code = train_for_summary(cfg, resume=resume)
    if summary and int(os.environ.get("LOCAL_RANK", "0")) == 0:
        print(summary_text(summary, Path(cfg.run_dir)))
    return code


def train_for_summary(cfg: "DictConfig", **how: Any) -> tuple[dict[str, Any], int]:
    """Train; the summary, which is empty where training diverged, and the exit code."""
    from mha_lab.quick_start import import_lightning

    import_lightning()
    from mha_lab.run import train
    from mha_lab.training.module import TrainingDiverged

    try:
        summary = train(cfg, **how)
    except TrainingDiverged as error:
        print(f"mha_lab: {error}", file=sys.stderr)
        return {}, 1
    return summary, int(summary.get("exit_code", 0))


def summary_text(summary: dict[str, Any], folder: Path) -> str:
    """The lines that end a run."""
    shown = relative(folder)
    if summary["status"] == "interrupted":
        return (
            f"\ninterrupted at step {summary['steps']}; go on with:\n"
            f"  python -m mha_lab train {setting('resume', folder)}\n{shown}"
        )
    lines = [
        ("test accuracy", f"{summary['test/sequence_accuracy']:.4f} of sequences, "
                          f"{summary['test/token_accuracy']:.4f} of tokens"),
        ("steps", f"{summary['steps']:,} ({summary['status']})"),
        ("time", _time_text(summary)),
        ("parameters", f"{summary['parameters']:,}"),
        ("dashboard", f"python -m mha_lab dashboard {setting('logdir', folder.parent)}"),
        ("run folder", ""),
    ]  # fmt: skip
    return "\n" + "\n".join(f"{name:<14} {text}".rstrip() for name, text in lines) + f"\n{shown}"


def _time_text(summary: dict[str, Any]) -> str:
    """This call's time; that of training is the whole run's, of which this call may be a part."""
    call, training = summary["wall_seconds"], summary["train_seconds"]
    if training <= call:
        return f"{call:.1f} s, of which training {training:.1f} s"
    return f"{call:.1f} s for this call; training took {training:.1f} s in the whole run"
