"""A stand-in for training: instant, and as good as its hyperparameters say."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from mha_lab import config
from mha_lab.sweeping.observer import Observer
from mha_lab.sweeping.plan import Plan, read_plan
from mha_lab.training.run_folder import write_rows, write_summary

STEPS = (10, 20, 30)


@cache
def _base(words: tuple[str, ...]) -> DictConfig:
    return config.compose(words, run_dir="RUN")


def compose(words: Sequence[str], *, run_dir: Path) -> DictConfig:
    """As ``mha_lab.config.compose``, where only numbers of the learning rate and seed differ."""
    varied = [word for word in words if word.startswith(("optimizer.lr=", "seed="))]
    cfg = _base(tuple(word for word in words if word not in varied)).copy()
    for word in varied:
        key, _, value = word.partition("=")
        OmegaConf.update(cfg, key, float(value) if key == "optimizer.lr" else int(value))
    cfg.run_dir = str(run_dir)
    return cfg


def accuracy(cfg: DictConfig) -> float:
    """Best at optimizer.lr=0.01, worse with each decade; higher seeds are a little worse."""
    import math

    return max(0.0, 1 - abs(math.log10(cfg.optimizer.lr) + 2) / 4) - 0.01 * cfg.seed


def train(cfg: DictConfig, *, callbacks: list[Observer], hparams: bool) -> dict[str, Any]:
    """As ``mha_lab.run.train``: calls the observer, writes a folder, returns a summary."""
    folder, (observer,), reached = Path(cfg.run_dir), callbacks, accuracy(cfg)
    folder.mkdir(parents=True)
    config.save(cfg, folder)
    rows = []
    for step in STEPS:
        observer.best = {
            "val/loss": 1 - reached * step / STEPS[-1],
            "val/token_accuracy": reached * step / STEPS[-1],
            "val/sequence_accuracy": reached * step / STEPS[-1],
        }
        observer.steps = step
        rows.append({"step": step - 1, **observer.best})
        write_rows(folder / "metrics.csv", rows)
        if observer.trial is not None:
            import optuna

            observer.trial.report(observer.sign * observer.best[observer.metric], step)
            if observer.trial.should_prune() and step < STEPS[-1]:
                raise optuna.TrialPruned(f"at step {step}")
    is_solved = reached > 0.8
    summary = {
        "status": "solved" if is_solved else "finished",
        "seed": cfg.seed,
        "steps": STEPS[-1],
        "train_seconds": 2.0,
        "parameters": 7,
        "test/sequence_accuracy": reached,
    }
    write_summary(folder, summary)
    return summary


def plan(folder: Path, *words: str) -> Plan:
    """A small plan: three learning rates, no pruning."""
    defaults = {
        "sweep.folder": str(folder),
        "sweep.pruner": "none",
        "sweep.n_trials": "3",
        "optimizer.lr": "choice(0.001,0.01,0.1)",
    }
    given = {word.lstrip("+").partition("=")[0] for word in words}
    rest = [f"{key}={value}" for key, value in defaults.items() if key not in given]
    space = ["sweep.space.model.embed_dim=null", "sweep.space.model.num_heads=null"]
    return read_plan([*words, *rest, *(s for s in space if s.split("space.")[1][:-5] not in given)])
