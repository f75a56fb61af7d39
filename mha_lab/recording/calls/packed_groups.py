"""Grouped-query attention of one token, whose groups lie along the length.

Hugging Face transformers generates with G query heads for each key head (module attribute
``num_key_value_groups``). Where a mask keeps it from torch's own ``enable_gqa``, it lays the
queries (N, H, 1, D) of the new token out as (N, H/G, G, D), so that a call on H/G heads and G
queries does the work. Its map is one of H heads and one query all the same.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mha_lab.recording.caller import Caller

_NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


def unpack_groups(
    caller: Caller, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of ``scaled_dot_product_attention`` as if nothing had been packed.

    Args:
        caller: The module that calls it.
        args: What it is called with.
        kwargs: The same, by name.

    Returns:
        Queries (N, H, 1, D), keys (N, H, S, D) and a mask that fits, where groups are packed; else
        what was given.
    """
    call = {**dict(zip(_NAMES, args, strict=False)), **kwargs}
    query, key, mask = call.get("query"), call.get("key"), call.get("attn_mask")
    groups = getattr(caller.module, "num_key_value_groups", 1)
    if not (
        isinstance(groups, int)
        and groups > 1
        and isinstance(query, Tensor)
        and isinstance(key, Tensor)
        and query.ndim == key.ndim == 4
        and query.shape[1:3] == (key.shape[1], groups)
        and not call.get("enable_gqa")
        and _reads_one_token(caller)
    ):
        return args, kwargs
    if mask is not None and mask.ndim == 4 and mask.shape[1] > 1:
        mask = mask.flatten(1, 2).unsqueeze(2)
    unpacked = {
        "query": query.flatten(1, 2).unsqueeze(2),
        "key": key.repeat_interleave(groups, dim=1),
        "attn_mask": mask,
    }
    return (), {**kwargs, **call, **unpacked}


def _reads_one_token(caller: Caller) -> bool:
    inputs = [value for value in caller.arguments.values() if isinstance(value, Tensor)]
    return bool(inputs) and inputs[0].ndim == 3 and inputs[0].shape[1] == 1
