"""Run folders as `train` writes them, without training: fast, and with numbers that are known."""

import csv
import json
from pathlib import Path

import numpy as np
import yaml


def config(*, attention="custom", model="encoder_decoder", position="learned", task="copy", seed=0,
           lr=0.004, run_dir="", **more):  # fmt: skip
    tree = {
        "seed": seed,
        "compile": False,
        "run_dir": str(run_dir),
        "data": {"batch_size": 64, "train_size": None, "validation_size": 1000},
        "attention": {"_target_": f"somewhere.{attention}", "_partial_": True},
        "model": {
            "_target_": f"somewhere.{model}", "embed_dim": 64, "num_heads": 4,
            "num_layers": 1 if model == "encoder_decoder" else 2, "dropout": 0.0,
        },
        "position": {"_target_": f"somewhere.{position}", "_partial_": True},
        "task": {"_target_": f"somewhere.{task}", "min_length": 1, "max_length": 10},
        "optimizer": {"lr": lr, "betas": [0.9, 0.98], "warmup_steps": 50},
        "trainer": {"max_steps": 2000, "val_check_interval": 50, "accelerator": "auto"},
        "callbacks": {"checkpoint": {"dirpath": f"{run_dir}/checkpoints"}},
        "choices": {
            "attention": attention, "model": model, "position": position, "task": task,
            "optimizer": "adamw", "trainer": "auto", "experiment": task,
        },
    }  # fmt: skip
    for key, value in more.items():
        node = tree
        *path, last = key.split("__")
        for name in path:
            node = node[name]
        node[last] = value
    return tree


def write_run(folder: Path, *, status="solved", accuracy=1.0, loss=0.002, steps=300, seconds=6.5,
              parameters=123_456, curve=None, lengths=None, uses_attention=True,
              **choices) -> Path:  # fmt: skip
    """Write one run's folder; ``choices`` go to :func:`config`."""
    folder.mkdir(parents=True)
    tree = config(run_dir=folder, **choices)
    (folder / "config.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    write_metrics(folder, curve or [(50, 2.0, 0.1), (steps, loss, accuracy)])
    if status == "unfinished":
        return folder
    chosen = tree["choices"]
    summary = {
        "task": chosen["task"],
        "attention": chosen["attention"] if uses_attention else "none",
        "model": chosen["model"],
        "position": chosen["position"] if uses_attention else "none",
        "experiment": chosen["experiment"],
        "seed": tree["seed"],
        "parameters": parameters,
        "status": status,
        "steps": steps,
        "train_seconds": seconds,
        "wall_seconds": seconds + 2,
    }
    if status in ("solved", "finished"):
        summary |= {
            "test/loss": loss, "test/token_accuracy": accuracy, "test/sequence_accuracy": accuracy,
        }  # fmt: skip
        lengths = lengths or dict.fromkeys((1, 2, 3, 5, 7), accuracy)
        write_csv(
            folder / "accuracy_by_length.csv",
            [{"length": k, "sequences": 200.0, "sequence_accuracy": v} for k, v in lengths.items()],
        )
    (folder / "summary.json").write_text(json.dumps(summary, indent=2))
    return folder


def write_evaluation(folder: Path, lengths, *, name="2026-01-01_00-00-00-000000", overrides=()):
    """Write what ``evaluate lengths=...`` leaves of a run."""
    kept = folder / "evaluations" / name
    kept.mkdir(parents=True)
    rows = [{"length": n, "sequences": 50, "sequence_accuracy": v} for n, v in lengths.items()]
    write_csv(kept / "accuracy_by_length.csv", rows)
    (kept / "summary.json").write_text(json.dumps({"overrides": list(overrides), "ranges": []}))
    return kept


def write_failed(
    folder: Path, *, reason="embed_dim=63 must be divisible by num_heads=4", **choices
):
    """Write what a job of a multirun leaves that failed before its config was saved."""
    (folder / ".hydra").mkdir(parents=True)
    tree = config(run_dir="${hydra:runtime.output_dir}", **choices)
    chosen = tree.pop("choices")
    hydra = {"hydra": {"runtime": {"choices": {**chosen, "hydra/launcher": "basic"}}}}
    (folder / ".hydra" / "config.yaml").write_text(yaml.safe_dump(tree))
    (folder / ".hydra" / "hydra.yaml").write_text(yaml.safe_dump(hydra))
    (folder / ".hydra" / "overrides.yaml").write_text("- seed=0\n")
    if reason:
        summary = {"status": "failed", "reason": reason, "exit_code": 2, "overrides": []}
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def write_metrics(folder: Path, points):
    """Write ``metrics.csv``: training rows, and between them validations (step, loss, accuracy)."""
    last = int(points[-1][0])
    rows = {s: {"step": s, "epoch": 0, "train/loss": 1.0 / s} for s in range(10, last + 1, 10)}
    for step, loss, accuracy in points:
        row = rows.setdefault(int(step), {"step": int(step)})
        row |= {"val/loss": loss, "val/sequence_accuracy": accuracy}
    write_csv(folder / "metrics.csv", [rows[step] for step in sorted(rows)])


def write_csv(file: Path, rows):
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)


def write_grid(folder: Path, *, attentions=("builtin", "custom", "masked_decoder"),
               positions=("learned", "none"), tasks=("copy",), seeds=5) -> list[Path]:  # fmt: skip
    """Write a full grid of plausible runs, some of which are not solved."""
    random = np.random.default_rng(7)
    folders = []
    for task in tasks:
        for a, attention in enumerate(attentions):
            for p, position in enumerate(positions):
                for seed in range(seeds):
                    folder = (
                        folder / str(len(folders))
                        if not folders
                        else folder.parent / str(len(folders))
                    )
                    folders.append(
                        _plausible(folder, random, task, attention, position, a, p, seed)
                    )
    return folders


def _plausible(folder, random, task, attention, position, a, p, seed) -> Path:
    pace = 90 * (1 + 0.5 * a + p) * random.uniform(0.8, 1.25)
    is_hard = p == 1 and a == 1
    top = 0.75 if is_hard else 1.0
    steps = 2000 if is_hard else int(50 * np.ceil(pace * 6 / 50))
    at = np.arange(50, steps + 1, 50)
    share = top / (1 + np.exp(-(at - pace * 3) / (pace / 2)))
    losses = 2.3 * np.exp(-at / pace) + 0.002 + (0.4 if is_hard else 0.0)
    noise = random.normal(0, 0.01, len(at))
    share = np.clip(share + noise, 0, 1)
    accuracy = float(
        min(1.0, top * random.uniform(0.985, 1.0) if is_hard else random.uniform(0.9985, 1.0))
    )
    masked = attention == "masked_decoder"
    return write_run(
        folder,
        status="finished" if is_hard else "solved",
        accuracy=accuracy,
        loss=float(losses[-1]),
        steps=steps,
        seconds=steps * random.uniform(0.017, 0.02),
        parameters=100_000 + 20_000 * masked + (0 if p else 16_384),
        curve=list(zip(at.tolist(), losses.tolist(), share.tolist(), strict=True)),
        lengths={n: float(accuracy ** (n / 5)) for n in range(1, 11)},
        task=task,
        attention=attention,
        model="decoder" if masked else "encoder_decoder",
        position=position,
        seed=seed,
    )
