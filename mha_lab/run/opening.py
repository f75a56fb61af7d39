"""What a run says before its first step: what is trained, on what, and where it is kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from omegaconf import DictConfig

from mha_lab import config
from mha_lab.build import Parts
from mha_lab.terminal import relative

COMPILED_ON_CPU = (
    "compile=true on a CPU: torch compiles before the first step and the first validation, which "
    "takes from ten seconds to a minute, and models this small then train no faster than without "
    "(compile=false); it is meant for GPUs"
)


def describe(cfg: DictConfig, parts: Parts) -> dict[str, Any]:
    """Which run it is: the part of ``summary.json`` that is known before training."""
    uses_attention = parts.module.model.uses_attention
    brought = _brought_position(cfg) if uses_attention else ""
    parted = ", ".join(config.chosen_parts(cfg)) if uses_attention else ""
    return {
        "task": cfg.choices.task,
        "attention": cfg.choices.attention if uses_attention else "none",
        **({"attention_parts": parted} if parted else {}),
        "model": cfg.choices.model,
        "position": cfg.choices.position if uses_attention else "none",
        **({"position_of_attention": brought} if brought else {}),
        "experiment": cfg.choices.get("experiment"),
        "seed": cfg.seed,
        "parameters": parts.parameters,
    }


def opening_lines(description: dict[str, Any], trainer: pl.Trainer, folder: Path) -> str:
    """The lines that begin a run."""
    device = trainer.strategy.root_device
    where = f"{trainer.num_devices} × {device.type}" if trainer.num_devices > 1 else device.type
    size = f"{description['parameters']:,} parameters"
    facts = (*_names(description), f"seed {description['seed']}", size, f"on {where}")
    return f"{' · '.join(map(str, facts))}\n{relative(folder)}"


def names_of_run(cfg: DictConfig) -> list[str]:
    """The same of a run that was trained before, by its config."""
    known = {key: cfg.choices.get(key, "?") for key in ("task", "attention", "position", "model")}
    if known["model"] == "recurrent":
        known["attention"] = "none"
    told = {
        "position_of_attention": _brought_position(cfg),
        "attention_parts": ", ".join(config.chosen_parts(cfg)),
    }
    return _names(known | {key: text for key, text in told.items() if text})


def _names(description: Mapping[str, Any]) -> list[str]:
    """What a run is of: task, attention, position and model, each by its option."""
    if description["attention"] == "none":
        return [description["task"], description["model"]]
    task, attention, position, model = (
        description[key] for key in ("task", "attention", "position", "model")
    )
    if "attention_parts" in description:
        attention = f"{attention} ({description['attention_parts']})"
    if "position_of_attention" in description:
        position = f"{position}, and of its own: {description['position_of_attention']}"
    return [task, attention, position, model]


def _brought_position(cfg: DictConfig) -> str:
    """What the attention, or a part of it, tells order by beside ``position``."""
    chosen = {k: v for k, v in cfg.choices.items() if str(k).split("/")[0] == "attention"}
    found = [config.own_positions(str(k)).get(v) for k, v in chosen.items()]
    return ", ".join(dict.fromkeys(text for text in found if text))
