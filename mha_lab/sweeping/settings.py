"""The settings of a sweep, as ``configs/sweep/*.yaml`` and ``sweep.KEY=VALUE`` give them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mha_lab import config
from mha_lab.errors import UserError, nearest

SAMPLERS = ("tpe", "random", "grid")
PRUNERS = ("hyperband", "median", "none")

Direction = Literal["maximize", "minimize"]
MAXIMIZE: Direction = "maximize"
MINIMIZE: Direction = "minimize"
DIRECTIONS: dict[str, Direction] = {
    "val/sequence_accuracy": MAXIMIZE,
    "val/token_accuracy": MAXIMIZE,
    "val/loss": MINIMIZE,
    "test/sequence_accuracy": MAXIMIZE,
    "test/token_accuracy": MAXIMIZE,
    "test/loss": MINIMIZE,
    "steps_to_solve": MINIMIZE,
    "seconds_to_solve": MINIMIZE,
    "parameters": MINIMIZE,
}
"""What can be an objective. Each has one sensible direction."""

TO_SOLVE = ("steps_to_solve", "seconds_to_solve")


@dataclass
class Settings:
    """The settings; ``configs/sweep/optuna.yaml`` says what each one means."""

    space: dict[str, Any] = field(default_factory=dict)
    objectives: list[str] = field(default_factory=lambda: ["val/sequence_accuracy"])
    n_trials: int | None = None
    seeds: int = 1
    sampler: str = "tpe"
    sampler_seed: int = 0
    pruner: str = "hyperband"
    prune_by: str = "val/token_accuracy"
    n_jobs: int = 1
    name: str | None = None
    folder: str | None = None
    storage: str | None = None
    lease: float = 60.0

    def set(self, key: str, value: Any) -> None:
        """Change one setting, its type checked.

        Raises:
            UserError: no such setting, or a value of another type.
        """
        names = [f.name for f in fields(self)]
        if key not in names:
            raise UserError(f"unknown setting 'sweep.{key}'{nearest(key, names)}")
        if key == "objectives" and isinstance(value, str):
            value = [value]
        try:
            tree = OmegaConf.merge(OmegaConf.structured(Settings), {key: value})
            setattr(self, key, getattr(OmegaConf.to_object(tree), key))
        except OmegaConfBaseException as error:
            raise UserError(f"sweep.{key}: {config.first_line(error)}") from error

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            UserError: an unknown name, a number out of range, settings that contradict each other.
        """
        for key, known in (("sampler", SAMPLERS), ("pruner", PRUNERS)):
            _require(f"sweep.{key}", getattr(self, key), known)
        for objective in self.objectives:
            _require("sweep.objectives", objective, DIRECTIONS)
        _require("sweep.prune_by", self.prune_by, [m for m in DIRECTIONS if m.startswith("val/")])
        for key in ("n_trials", "seeds", "n_jobs", "lease"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise UserError(f"sweep.{key} must be at least 1, got {value}")
        if not 0 <= self.sampler_seed < 2**32:
            raise UserError(
                f"sweep.sampler_seed must be from 0 to 2^32 - 1, got {self.sampler_seed}"
            )
        if not self.objectives or len(set(self.objectives)) < len(self.objectives):
            raise UserError(
                f"sweep.objectives must name each objective once, got {self.objectives}"
            )
        if len(self.objectives) > 1 and self.pruner != "none":
            raise UserError(
                f"sweep.pruner={self.pruner} needs a single objective, and there are "
                f"{len(self.objectives)}: add sweep.pruner=none"
            )

    @property
    def directions(self) -> list[Direction]:
        """For each objective, ``maximize`` or ``minimize``."""
        return [DIRECTIONS[name] for name in self.objectives]


def load(option: str, trusted: Sequence[str] = ()) -> Settings:
    """Read ``configs/sweep/OPTION.yaml``, or a file of one's own.

    Args:
        option: its name, or the file.
        trusted: modules that a file may name besides this project's own options.

    Raises:
        UserError: no such option or file, an unreadable one, or an unknown setting in it.
    """
    known = config.options("sweep")
    is_file = option.endswith((".yaml", ".yml"))
    if not is_file and option not in known:
        raise UserError(
            f"sweep={option} is not an option{nearest(option, known)} "
            f"(there are: {', '.join(known)}; or a file: sweep=FILE.yaml)"
        )
    file = Path(option) if is_file else config.config_folder() / "sweep" / f"{option}.yaml"
    content = config.read_yaml(file, trusted)
    try:
        tree = OmegaConf.merge(OmegaConf.structured(Settings), content)
        settings = OmegaConf.to_object(tree)
    except Exception as error:  # whatever a missing or damaged file makes the YAML parser raise
        raise UserError(f"cannot read {str(file)!r}: {config.first_line(error)}") from error
    assert isinstance(settings, Settings)
    return settings


def _require(name: str, value: str, known: Any) -> None:
    if value not in known:
        raise UserError(
            f"{name}={value} is unknown{nearest(value, known)} (there are: {', '.join(known)})"
        )
