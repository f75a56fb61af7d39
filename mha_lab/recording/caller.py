"""Which module of a model makes the call that is running now.

The answer is read from the Python stack: the innermost function whose first argument is a module of
the model. So no hook is put on the model, a forward that is called directly counts too, and an
exception leaves nothing to clean up.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from torch import Tensor, nn

_CALL = nn.Module._call_impl.__code__

_HEAD_COUNTS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads")


@dataclass(frozen=True)
class Caller:
    """A module that is computing attention.

    Attributes:
        name: Its path in the model.
        module: The module.
        arguments: What it was called with, by argument name; empty where that is not known.
    """

    name: str
    module: nn.Module
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def num_heads(self, rows: int) -> int | None:
        """H of a tensor (N·H, L, ...) that the module computes with.

        Args:
            rows: N·H, or N where the tensor has no heads.

        Returns:
            How many heads the module says that it has, if that and a batch that it was called
            with make N·H; else None.
        """
        inputs = [value for value in self.arguments.values() if isinstance(value, Tensor)]
        counts = [getattr(self.module, name, None) for name in _HEAD_COUNTS]
        for heads in counts:
            if not isinstance(heads, int) or heads < 1 or rows % heads:
                continue
            if not inputs or rows // heads in inputs[0].shape[:2]:
                return heads
        return None


def find_caller(names: Mapping[int, str]) -> Caller | None:
    """Find the module that is running now.

    Args:
        names: The path of each module of the model by the module's ``id``.

    Returns:
        The innermost module of the model on the stack, or None when there is none.
    """
    found = _innermost(names, sys._getframe(1))
    if found is None:
        return None
    module, call = found
    while call is not None and not (call.f_code is _CALL and _first_argument(call) is module):
        call = call.f_back
    locals_ = {} if call is None else call.f_locals
    arguments = _bind(module, locals_.get("args", ()), locals_.get("kwargs", {}))
    return Caller(names[id(module)], module, arguments)


def find_name(names: Mapping[int, str]) -> str | None:
    """The path of the module that is running now; None outside of the model.

    A quarter of what finding the caller costs, which also reads what it was called with.
    """
    found = _innermost(names, sys._getframe(1))
    return None if found is None else names[id(found[0])]


def _innermost(
    names: Mapping[int, str], frame: FrameType | None
) -> tuple[nn.Module, FrameType | None] | None:
    """The innermost module of the model on the stack, and the frame that shows it."""
    while frame is not None:
        module = _first_argument(frame)
        if id(module) in names:
            return (module, frame) if isinstance(module, nn.Module) else None
        frame = frame.f_back
    return None


def _first_argument(frame: FrameType) -> Any:
    """What ``self`` is in a method."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def _bind(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Give a module's arguments their names."""
    try:
        bound = inspect.signature(module.forward).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return dict(kwargs)
    return {**bound, **bound.get("kwargs", {})}
