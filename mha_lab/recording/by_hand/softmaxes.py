"""Softmaxes of a model, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

from torch import Tensor

from mha_lab.recording.by_hand.moves import function_name

# Where each has its axis among its arguments, and the axis where none is given.
_NAMES = {
    "softmax": (1, None),
    "special_softmax": (1, None),
    "_safe_softmax": (1, None),
    "_softmax": (1, None),
    "softmin": (1, None),
    "gumbel_softmax": (4, -1),
}
_LOG_NAMES = ("log_softmax", "special_log_softmax", "_log_softmax")


class Fate(IntEnum):
    """What became of a softmax; a higher one is never followed by a lower one."""

    UNSEEN = 0
    """Nothing that matters was done with its result, or nobody saw it."""
    CHOSE = 1
    """Its result chose something (top-k, argmax), as that of a router or of a classifier does."""
    LOST = 2
    """Its result met another tensor, in a way that is not followed."""
    MULTIPLIED = 3
    """Its result was multiplied with values."""
    ANSWERED = 4
    """So it was, and that call is recorded, or counted as one that is not."""


@dataclass(eq=False)
class Softmax:
    """One softmax.

    Attributes:
        module: The path of the module that computed it.
        shape: Of its result.
        fate: What became of it.
    """

    module: str
    shape: tuple[int, ...]
    fate: Fate = Fate.UNSEEN

    def becomes(self, fate: Fate) -> None:
        """Note what became of it."""
        self.fate = max(self.fate, fate)

    @property
    def may_be_attention(self) -> bool:
        """Whether it may be attention that is not recorded.

        Weights without batch and heads that meet no values are a classifier's or a router's.
        """
        if self.fate in (Fate.UNSEEN, Fate.CHOSE):
            return len(self.shape) > 2
        return self.fate in (Fate.LOST, Fate.MULTIPLIED)


_EXPONENTIALS = (
    "exp", "exp_", "exp2", "exp2_", "expm1", "expm1_", "__rpow__", "logsumexp", "special_logsumexp",
)  # fmt: skip


def may_begin(func: Callable[..., Any]) -> bool:
    """Whether a function is a softmax of torch, or one that a softmax may be written with."""
    return _may_begin(str(getattr(func, "__name__", "")))


@lru_cache(1024)
def _may_begin(name: str) -> bool:
    name = name.partition(".")[0]
    return name in _NAMES or name in _LOG_NAMES or name in _EXPONENTIALS


def is_log_softmax(func: Callable[..., Any]) -> bool:
    """Whether a function is a softmax's logarithm, which is weights once ``exp`` was applied."""
    return function_name(func) in _LOG_NAMES


def softmax_axis(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> int | None:
    """The axis, counted from the end, of a softmax of scores (at least two axes); else None.

    That of a softmax's logarithm, too.
    """
    name = function_name(func)
    if (name not in _NAMES and name not in _LOG_NAMES) or not isinstance(result, Tensor):
        return None
    place, usual = _NAMES.get(name, (1, None))
    dim = kwargs.get("dim", args[place] if len(args) > place else usual)
    if result.ndim < 2 or not isinstance(dim, int):
        return None
    return dim if dim < 0 else dim - result.ndim
