"""The settings of a sweep, as ``configs/sweep/*.yaml`` and ``sweep.KEY=VALUE`` give them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge
from omegaconf import OmegaConf

from mha_lab import config
from mha_lab.config.lightning_ranges import Metric
from mha_lab.config.signatures import check_arguments
from mha_lab.errors import UserError, nearest, shown
from mha_lab.ranges import FolderName, Seed, Size, Text

Sampler = Literal["tpe", "random", "grid"]
Pruner = Literal["hyperband", "median", "none"]
Objective = Literal[
    "val/sequence_accuracy",
    "val/token_accuracy",
    "val/loss",
    "test/sequence_accuracy",
    "test/token_accuracy",
    "test/loss",
    "steps_to_solve",
    "seconds_to_solve",
    "parameters",
]
Lease = Annotated[float, Ge(1)]

Direction = Literal["maximize", "minimize"]
MAXIMIZE: Direction = "maximize"
MINIMIZE: Direction = "minimize"
DIRECTIONS: dict[str, Direction] = {
    name: MAXIMIZE if name.endswith("accuracy") else MINIMIZE for name in get_args(Objective)
}
"""What can be an objective. Each has one sensible direction."""

TO_SOLVE = ("steps_to_solve", "seconds_to_solve")


@dataclass
class Settings:
    """The settings; ``configs/sweep/optuna.yaml`` says what each one means."""

    space: dict[str, Any] = field(default_factory=dict)
    objectives: list[Objective] = field(default_factory=lambda: ["val/sequence_accuracy"])
    n_trials: Size | None = None
    seeds: Size = 1
    sampler: Sampler = "tpe"
    sampler_seed: Seed = 0
    pruner: Pruner = "hyperband"
    prune_by: Metric = "val/token_accuracy"
    n_jobs: Size = 1
    name: FolderName | None = None
    folder: Text | None = None
    storage: Text | None = None
    lease: Lease = 60.0

    def set(self, key: str, value: Any) -> None:
        """Change one setting, its type checked.

        Raises:
            UserError: no such setting, or a value of another type.
        """
        if key == "objectives" and isinstance(value, str):
            value = [value]
        check_arguments("sweep", Settings, {key: value})
        setattr(self, key, value)

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            UserError: an unknown name, a number out of range, settings that contradict each other.
        """
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
    file = Path(option) if is_file else config.option_files("sweep")[option]
    content = config.read_yaml(file, trusted)
    tree = OmegaConf.to_container(content, resolve=False)
    if not isinstance(tree, dict):
        raise UserError(f"{str(file)!r} holds no settings of a sweep, but {shown(tree)}")
    settings = Settings()
    for key, value in tree.items():
        try:
            settings.set(str(key), value)
        except UserError as error:
            raise UserError(f"cannot read {str(file)!r}: {error}") from error
    return settings
