"""What kind of attention a call is: to itself, to what is earlier, or to another sequence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mha_lab.maps.attention_map import Kind
from mha_lab.recording.caller import Caller

_MEMORY_NAMES = ("key_value_states", "encoder_hidden_states", "memory", "context", "cross_states")
"""What libraries call the sequence that cross-attention looks at."""

_CACHE_NAMES = ("past_key_values", "past_key_value", "layer_past", "cache", "kv_cache")

_CROSS_NAME = re.compile(r"cross|enc_?dec|encoder_attn|src_attn|multihead_attn", re.IGNORECASE)


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
