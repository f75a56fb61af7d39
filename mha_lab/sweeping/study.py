"""Opening the study of a plan: the same command joins it, another sweep is refused."""

import math
from pathlib import Path
from typing import Any
from zlib import crc32

import optuna
from omegaconf import DictConfig, OmegaConf
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage

from mha_lab import config
from mha_lab.config.plain_yaml import check_size
from mha_lab.errors import UserError
from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.settings import Settings
from mha_lab.training.run_folder import write_atomically

RECORD = "sweep.yaml"
_QUESTION = "question"
_DRAWN_BY_CHANCE = 10
"""Trials before TPE begins to learn from them, in all brackets together."""


def open_study(plan: Plan, base: DictConfig, storage: BaseStorage) -> optuna.Study:
    """Make the plan's study, or join it where it exists.

    Args:
        plan: the sweep.
        base: the config that the fixed overrides make.
        storage: where the study is kept.

    Raises:
        UserError: a study of that name asks another question.
    """
    question = ask(plan, base)
    try:
        study = optuna.create_study(
            study_name=plan.name,
            storage=storage,
            directions=plan.settings.directions,
            load_if_exists=True,
        )
    except ValueError as error:
        raise UserError(f"sweep.name={plan.name}: {config.first_line(error)}") from error
    known = study.user_attrs.get(_QUESTION)
    if known is None:
        if study.get_trials(deepcopy=False):
            raise UserError(
                f"the study {plan.name!r} was not made by mha_lab: choose another sweep.name"
            )
        study.set_user_attr(_QUESTION, question)
    else:
        _compare(known, question, f"the study {plan.name!r}", "sweep.name")
    _refuse_orphans(plan, study)
    study.pruner = pruner(plan.settings, base.trainer)
    return study


def open_folder(plan: Plan, base: DictConfig) -> None:
    """Make the sweep's folder, or go on in it; it says in ``sweep.yaml`` what it is.

    Raises:
        UserError: the folder cannot be used, or belongs to something else.
    """
    file, question = plan.folder / RECORD, ask(plan, base)
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
        is_used = any(not entry.name.startswith(".") for entry in plan.folder.iterdir())
        if not file.exists() and not is_used:
            record = {"name": plan.name, "overrides": plan.overrides, **question}
            write_atomically(file, OmegaConf.to_yaml(OmegaConf.create(record)))
    except OSError as error:
        raise UserError(f"cannot use sweep.folder={plan.folder}: {error.strerror}") from error
    _compare(_read(file), question, str(plan.folder), "sweep.name or sweep.folder")


def _refuse_orphans(plan: Plan, study: optuna.Study) -> None:
    """Runs of a study that is gone must not be overwritten by those of a new one."""
    folder = plan.folder / "trials"
    if not study.get_trials(deepcopy=False) and folder.is_dir() and any(folder.iterdir()):
        raise UserError(
            f"{str(folder)!r} holds runs, but the study {plan.name!r} has none: its storage is "
            "gone, or another one; choose another sweep.folder, or remove that one"
        )


def ask(plan: Plan, base: DictConfig) -> dict[str, Any]:
    """What must be the same for two sweeps to be one study: the plan's question and its config."""
    return {**plan.question, "config": OmegaConf.to_container(base)}


class Hyperband(HyperbandPruner):
    """Optuna's, which shares the trials out among brackets that know nothing of each other.

    Args:
        shortest: training steps before a trial may be pruned.
        longest: of a trial that never is.
    """

    def __init__(self, shortest: int, longest: int) -> None:
        factor = 3
        super().__init__(min_resource=shortest, max_resource=longest, reduction_factor=factor)
        self.brackets = int(math.log(longest / shortest, factor)) + 1


def sampler(settings: Settings, slot: int, brackets: int = 1) -> BaseSampler:
    """The sampler of a slot: what it draws follows from slot, seed and the finished trials.

    Args:
        settings: the sweep's.
        slot: the trial's place.
        brackets: those of the pruner. TPE learns from trials of the same bracket only, so it
            begins to learn that much earlier in each.
    """
    seed = crc32(f"{settings.sampler_seed}/{slot}".encode())
    if settings.sampler != "tpe":
        return RandomSampler(seed=seed)
    return TPESampler(seed=seed, n_startup_trials=math.ceil(_DRAWN_BY_CHANCE / brackets))


def pruner(settings: Settings, trainer: DictConfig) -> BasePruner:
    """The pruner, its resources counted in training steps."""
    match settings.pruner:
        case "hyperband":
            shortest = min(trainer.val_check_interval, trainer.max_steps)
            return Hyperband(shortest, trainer.max_steps)
        case "median":
            return MedianPruner()
    return NopPruner()


def _read(file: Path) -> dict[str, Any]:
    try:
        check_size(file.read_text(encoding="utf-8"))
        record = OmegaConf.to_container(OmegaConf.load(file))
    except FileNotFoundError as error:
        raise UserError(
            f"{str(file.parent)!r} holds other files and is not a sweep's folder: "
            "choose another sweep.folder"
        ) from error
    except Exception as error:  # whatever a damaged file makes the YAML parser raise
        raise UserError(f"cannot read {str(file)!r}: {config.first_line(error)}") from error
    if not isinstance(record, dict):
        raise UserError(f"{str(file)!r} is not the record of a sweep")
    return {str(key): value for key, value in record.items()}


def _compare(known: dict[str, Any], question: dict[str, Any], where: str, remedy: str) -> None:
    """Refuse to mix two sweeps, naming what differs."""
    was, now = _flat(known), _flat(question)
    differing = [key for key in dict.fromkeys([*now, *was]) if was.get(key) != now.get(key)]
    differing = [key for key in differing if key.split(".")[0] in question]
    differing.sort(key=lambda key: not key.startswith("config.choices."))  # those say most
    if differing:
        shown = "; ".join(
            f"{key}: {was.get(key)} there, {now.get(key)} here" for key in differing[:3]
        )
        more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
        raise UserError(f"{where} holds another sweep ({shown}{more}): choose another {remedy}")


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        inner = value if isinstance(value, dict) else None
        flat |= _flat(inner, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return flat
