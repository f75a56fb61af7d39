"""The search space: Hydra's override syntax, read as Optuna's distributions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import optuna
from hydra.core.override_parser.types import (
    ChoiceSweep,
    Glob,
    IntervalSweep,
    RangeSweep,
    Transformer,
)
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mha_lab import config
from mha_lab.errors import UserError, nearest
from mha_lab.sweeping.plan import parse

Value = str | int | float | bool
Number = int | float


@dataclass(frozen=True)
class Parameter:
    """One key that varies.

    Args:
        key: a dotted key or a config group.
        text: its values in Hydra's override syntax.
        distribution: the same for Optuna. What Optuna cannot hold (lists, mappings) is a string
            there, written as an override.
    """

    key: str
    text: str
    distribution: BaseDistribution

    def suggest(self, trial: optuna.Trial) -> Value:
        """Let the trial's sampler choose a value."""
        value: Value
        match self.distribution:
            case CategoricalDistribution(choices=choices):
                value = trial.suggest_categorical(self.key, choices)  # type: ignore[assignment]
            case IntDistribution(low=low, high=high, step=step, log=log):
                value = trial.suggest_int(self.key, low, high, step=step, log=log)
            case FloatDistribution(low=low, high=high, step=step, log=log):
                value = trial.suggest_float(self.key, low, high, step=step, log=log)
            case other:
                raise TypeError(f"no such distribution: {other}")
        return value

    @property
    def first(self) -> Value:
        """The lowest value, or the first choice."""
        match self.distribution:
            case CategoricalDistribution(choices=choices):
                return choices[0]  # type: ignore[return-value]
            case IntDistribution(low=low) | FloatDistribution(low=low):
                return low
        raise TypeError(f"no such distribution: {self.distribution}")

    def values(self) -> list[Any]:
        """Every value, for a grid.

        Raises:
            UserError: the values are continuous.
        """
        match self.distribution:
            case CategoricalDistribution(choices=choices):
                return list(choices)
            case IntDistribution(low=low, high=high, step=step):
                return list(range(low, high + 1, step))
            case FloatDistribution(low=low, high=high, step=float() as step):
                return [low + i * step for i in range(round((high - low) / step) + 1)]
        raise UserError(
            f"sampler=grid tries every value, and {self.key}={self.text} is continuous: "
            "write choice(...) or range(...), or choose sampler=tpe or random"
        )


Space = dict[str, Parameter]


def read_space(texts: Mapping[str, str]) -> Space:
    """Read a space.

    Args:
        texts: for each key its values: ``choice(a, b)`` or ``a,b``; ``range(start, stop, step)``,
            without stop, as in Hydra; ``interval(low, high)``; ``glob(*)`` for the options of a
            group; ``int(...)`` of any of them; ``tag(log, ...)`` for a log scale.

    Raises:
        UserError: the space is empty, or a text says no values.
    """
    if not texts:
        raise UserError(
            "the search space is empty: vary a key, e.g. model.embed_dim=32,64 or "
            "'optimizer.lr=tag(log,interval(1e-4,1e-2))'"
        )
    return {key: _parameter(key, text) for key, text in texts.items()}


def override(key: str, value: Value) -> str:
    """The override that gives a key a value."""
    return f"{key}={value if isinstance(value, str) else Transformer.str(value)}"


def grid_size(space: Space) -> int:
    """How many combinations there are."""
    return math.prod(len(parameter.values()) for parameter in space.values())


def grid_point(space: Space, index: int) -> dict[str, Value]:
    """Combination ``index``, the last key varying fastest, as in ``train -m``."""
    point: dict[str, Value] = {}
    for key, parameter in reversed(space.items()):
        values = parameter.values()
        index, place = divmod(index, len(values))
        point[key] = values[place]
    return {key: point[key] for key in space}


def _parameter(key: str, text: str) -> Parameter:
    (item,) = parse([f"{key}={text}"])
    values: Any = item.value()
    if not item.is_sweep_override():
        raise UserError(
            f"the space of {key} is one value, {text}: write choice(...), range(...) or "
            f"interval(...), or fix it outside the space as {key}={text}"
        )
    if isinstance(values, Glob):
        values = ChoiceSweep(list=list(values.filter(list(config.options(item.key_or_group)))))
    tags: set[str] = getattr(values, "tags", set())
    for tag in tags - {"log"}:
        raise UserError(f"{key}={text}: unknown tag {tag!r}{nearest(tag, ['log'])} (there is: log)")
    try:
        return Parameter(key, text, _distribution(values, log="log" in tags))
    except ValueError as error:
        raise UserError(f"{key}={text}: {' '.join(str(error).split())}") from error


def _distribution(values: Any, *, log: bool) -> BaseDistribution:
    """Optuna's distribution of what Hydra parsed; a ValueError says what is wrong with it."""
    match values:
        case ChoiceSweep(list=choices):
            if log:
                raise ValueError("a log scale needs interval(...) or range(...)")
            texts = [x if isinstance(x, int | float) else Transformer.str(x) for x in choices]
            if len(set(texts)) < len(texts):
                raise ValueError("it holds a value twice")
            return CategoricalDistribution(texts)
        case RangeSweep(step=0):
            raise ValueError("the step of a range cannot be 0")
        case RangeSweep(step=step):
            numbers: Any = values.range()
            numbers = numbers if isinstance(numbers, range) else list(numbers)
            if not numbers:
                raise ValueError("the range is empty")
            low, high = sorted((numbers[0], numbers[-1]))
            return _numeric(low, high, log=log, step=None if log else abs(step or 1))
        case IntervalSweep(start=float() | int() as low, end=float() | int() as high):
            if not low <= high:
                raise ValueError(f"the interval is empty: {low} is above {high}")
            return _numeric(low, high, log=log)
    raise ValueError("write choice(...), range(...) or interval(...)")


def _numeric(
    low: Number, high: Number, *, log: bool, step: Number | None = None
) -> BaseDistribution:
    if log and low <= 0:
        raise ValueError(f"a log scale begins above 0, not at {low}")
    if isinstance(low, int) and isinstance(high, int):
        return IntDistribution(low, high, log=log, step=int(step or 1))
    return FloatDistribution(low, high, log=log, step=step)
