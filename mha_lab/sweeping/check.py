"""What can be known to be wrong with a sweep before its first trial."""

from omegaconf import DictConfig, OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution

from mha_lab import config
from mha_lab.config.validation import validate
from mha_lab.errors import UserError, nearest
from mha_lab.sweeping.plan import Plan
from mha_lab.sweeping.settings import TO_SOLVE
from mha_lab.sweeping.space import Parameter, Space, grid_size, override

DEFAULT_TRIALS = 30


def check(plan: Plan, space: Space, base: DictConfig) -> int:
    """Compare a plan with the config tree.

    Args:
        plan: the sweep.
        space: what varies.
        base: the config that the fixed overrides make.

    Returns:
        How many trials it has.

    Raises:
        UserError: a key or option that does not exist, values of another type than the key's, a
            grid without end, an objective that the runs would not have, runs of many processes.
    """
    for parameter in space.values():
        _check_parameter(parameter, base)
    first = [override(key, parameter.first) for key, parameter in space.items()]
    validate(config.compose([*plan.overrides, *first], run_dir="RUN"))
    for parameter in space.values():
        _check_values(parameter, base)
    _check_objectives(plan, base)
    if "ddp" in str(base.trainer.strategy) or base.trainer.devices not in (1, "1", "auto"):
        raise UserError(
            "a sweep runs each trial in one process (trainer.devices=1): use several with "
            "sweep.n_jobs, or start the same command on each machine or GPU"
        )
    if plan.settings.sampler == "grid":
        size = grid_size(space)
        return min(size, plan.settings.n_trials or size)
    return plan.settings.n_trials or DEFAULT_TRIALS


def _check_parameter(parameter: Parameter, base: DictConfig) -> None:
    key, distribution = parameter.key.lstrip("+"), parameter.distribution
    if key in config.groups() and isinstance(distribution, CategoricalDistribution):
        known = config.options(key)
        for choice in distribution.choices:
            if choice not in known:
                raise UserError(
                    f"{parameter.key}={choice} is not an option{nearest(str(choice), known)} "
                    f"(there are: {', '.join(known)})"
                )
        return
    default = OmegaConf.select(base, key, throw_on_missing=False)
    is_whole = isinstance(default, int) and not isinstance(default, bool)
    if is_whole and isinstance(distribution, FloatDistribution):
        raise UserError(
            f"{key} is a whole number, and {parameter.text} is not: write int({parameter.text})"
        )


def _check_values(parameter: Parameter, base: DictConfig) -> None:
    """Each value that can be told apart from its neighbours must be one that the key takes."""
    key, distribution = parameter.key.lstrip("+"), parameter.distribution
    if key in config.groups() or OmegaConf.select(base, key) is None:
        return  # options are known to exist; a key of another option than the base's says nothing
    if isinstance(distribution, CategoricalDistribution):
        values = list(distribution.choices)
    else:
        values = [distribution.low, distribution.high]  # type: ignore[attr-defined]
    for value in values:
        validate(config.override(base, [override(key, value)]))  # type: ignore[arg-type]


def _check_objectives(plan: Plan, base: DictConfig) -> None:
    if base.callbacks.get("stop_when_solved") is not None:
        return
    for name in plan.settings.objectives:
        if name in TO_SOLVE:
            raise UserError(
                f"sweep.objectives={name} needs runs that stop when solved, as "
                "+experiment=copy and +experiment=sort do (callbacks.stop_when_solved)"
            )
