"""Which module of a model makes the call that is running now.

The answer is read from the Python stack: the innermost function whose first argument is a module of
the model. So no hook is put on the model, a forward that is called directly counts too, and an
exception leaves nothing to clean up.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor, nn

Kind = Literal["self", "masked", "cross"]

_MEMORY_NAMES = {"key_value_states", "encoder_hidden_states", "memory", "context", "cross_states"}
"""What libraries call the sequence that cross-attention looks at."""

_CACHE_NAMES = {"past_key_values", "past_key_value", "layer_past", "cache", "kv_cache"}

_CROSS_NAME = re.compile(r"cross|enc_?dec|encoder_attn|src_attn|multihead_attn", re.IGNORECASE)


@dataclass(frozen=True)
class Caller:
    """A module that is computing attention.

    Attributes:
        name: Its path in the model; the model's class name for the model itself.
        module: The module.
        arguments: What it was called with, by argument name; empty where that is not known.
    """

    name: str
    module: nn.Module
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def num_heads(self) -> int | None:
        """How many heads the module says that it has, under any of the usual names."""
        for name in ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads"):
            value = getattr(self.module, name, None)
            if isinstance(value, int) and value > 0:
                return value
        return None


def find_caller(names: Mapping[int, str]) -> Caller | None:
    """Find the module that is running now.

    Args:
        names: The path of each module of the model by the module's ``id``.

    Returns:
        The innermost module of the model on the stack, or None when there is none.
    """
    frame = sys._getframe(1)
    found: nn.Module | None = None
    while frame is not None:
        code = frame.f_code
        if code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])
            if found is None and isinstance(first, nn.Module) and id(first) in names:
                found = first
            if found is not None and (code is nn.Module._call_impl.__code__ or first is not found):
                break
        frame = frame.f_back  # type: ignore[assignment]
    if found is None:
        return None
    name = names[id(found)] or type(found).__name__
    if frame is None or frame.f_code is not nn.Module._call_impl.__code__:
        return Caller(name, found)
    return Caller(name, found, _bind(found, frame.f_locals["args"], frame.f_locals["kwargs"]))


def _bind(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Give a module's arguments their names."""
    try:
        bound = inspect.signature(module.forward).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return dict(kwargs)
    return {**bound, **bound.get("kwargs", {})}


def kind_of_call(caller: Caller, *, is_causal: bool, length: int, source: int) -> Kind:
    """Say what kind of attention a call is, from how its module was called.

    Args:
        caller: The calling module.
        is_causal: Whether no query sees a later key.
        length: L.
        source: S.

    Returns:
        "cross" when queries and keys come from two sequences; else "masked" when no query sees a
        later key, "self" when some does. A module whose arguments do not tell is judged by its
        name, then by whether both sequences are equally long.
    """
    arguments = caller.arguments
    query, key = arguments.get("query"), arguments.get("key")
    tensors = [value for value in arguments.values() if isinstance(value, Tensor)]
    memory = [
        value
        for name, value in arguments.items()
        if name in _MEMORY_NAMES and isinstance(value, Tensor)
    ]
    if isinstance(query, Tensor) and isinstance(key, Tensor):
        is_cross = not same_tensor(query, key)
    elif (memory and not same_tensor(memory[0], tensors[0])) or _CROSS_NAME.search(caller.name):
        is_cross = True
    else:
        cached = any(arguments.get(name) is not None for name in _CACHE_NAMES)
        is_cross = length != source and not is_causal and not cached
    if is_cross:
        return "cross"
    return "masked" if is_causal else "self"


def same_tensor(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same numbers in the same memory."""
    return a is b or (
        a.shape == b.shape and a.stride() == b.stride() and a.data_ptr() == b.data_ptr()
    )
