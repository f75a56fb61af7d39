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
from types import FrameType
from typing import Any

from torch import Tensor, nn

from mha_lab.maps.attention_map import Kind

_CALL = nn.Module._call_impl.__code__

_WRAPPERS = re.compile(r"(^|\.)(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?=\.|$)")
"""What torch.compile, FSDP and checkpointing put into a module's path."""

_HEAD_COUNTS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads")

_MEMORY_NAMES = ("key_value_states", "encoder_hidden_states", "memory", "context", "cross_states")
"""What libraries call the sequence that cross-attention looks at."""

_CACHE_NAMES = ("past_key_values", "past_key_value", "layer_past", "cache", "kv_cache")

_CROSS_NAME = re.compile(r"cross|enc_?dec|encoder_attn|src_attn|multihead_attn", re.IGNORECASE)


def module_names(model: nn.Module) -> dict[int, str]:
    """The path of each module of a model by the module's ``id``; the model's own is its class."""
    names = {id(module): _WRAPPERS.sub("", name) for name, module in model.named_modules()}
    return {key: name.removeprefix(".") or _class_name(model) for key, name in names.items()}


def module_paths(model: nn.Module) -> list[tuple[str, str]]:
    """The name of each module, and a path to it: as many pairs as a shared module has paths."""
    names = module_names(model)
    return [
        (names[id(module)], _WRAPPERS.sub("", path).removeprefix(".") or names[id(module)])
        for path, module in model.named_modules(remove_duplicate=False)
    ]


def _class_name(model: nn.Module) -> str:
    return type(getattr(model, "_orig_mod", model)).__name__


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


def kind_of_call(caller: Caller, *, is_causal: bool, size: tuple[int, int]) -> Kind:
    """Say what kind of attention a call is, from how its module was called.

    Args:
        caller: The calling module.
        is_causal: Whether no query sees a later key.
        size: (L, S).

    Returns:
        "cross" when queries and keys come from two sequences; else "masked" when no query sees a
        later key, "self" when some does. A module whose arguments do not tell is judged by its
        name, then by whether both sequences are equally long.
    """
    is_cross = _has_memory(caller.arguments)
    if is_cross is None:
        cached = any(caller.arguments.get(name) is not None for name in _CACHE_NAMES)
        unequal = size[0] != size[1] and not is_causal and not cached
        is_cross = unequal or _CROSS_NAME.search(caller.name) is not None
    if is_cross:
        return "cross"
    return "masked" if is_causal else "self"


def _has_memory(arguments: Mapping[str, Any]) -> bool | None:
    """Whether a module was called with two sequences; None when its arguments do not tell."""
    query, key = arguments.get("query"), arguments.get("key")
    if isinstance(query, Tensor) and isinstance(key, Tensor):
        return not _is_same(query, key)
    tensors = [value for value in arguments.values() if isinstance(value, Tensor)]
    for name in _MEMORY_NAMES:
        memory = arguments.get(name)
        if isinstance(memory, Tensor):
            return not _is_same(memory, tensors[0])
    return None


def _is_same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same numbers in the same memory."""
    return a is b or (
        a.shape == b.shape and a.stride() == b.stride() and a.data_ptr() == b.data_ptr()
    )
