"""The weights of one attention call, chosen and pooled, as plain tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mha_lab.maps.scores import WholeMap
from mha_lab.recording.caller import Caller
from mha_lab.recording.calls.packed_groups import unpack_groups
from mha_lab.recording.calls.readers import scores_reader
from mha_lab.recording.choice import Choice
from mha_lab.recording.heads import as_heads
from mha_lab.recording.transforms import is_transformed, outside_transforms
from mha_lab.recording.value_norms import norms_of, values_given, values_met


@dataclass(frozen=True)
class Weighed:
    """What is known of one call.

    Attributes:
        weights: The chosen weights (N, H, L, S).
        size: (L, S) of the call, before pooling.
        samples: Which samples of the batch they are.
        heads: Which heads they are; None when averaged.
        scores: The scores (H,) of the whole map where it was pooled; else None.
        is_causal: Whether no query sees a later key.
        whole: What is kept of the whole map where it was pooled; else None.
        key_heads: Which head of keys each head reads, where several read one; else None.
        value_norms: The norms of the values, where they are wanted and known.
        weighted: The pooled map of weights times norms, where the map was pooled and these are.
    """

    weights: Float[Tensor, "N H L S"]
    size: tuple[int, int]
    samples: tuple[int, ...]
    heads: tuple[int, ...] | None
    scores: dict[str, Tensor] | None
    is_causal: bool
    whole: WholeMap | None = None
    key_heads: tuple[int, ...] | None = None
    value_norms: Float[Tensor, "N H S"] | None = None
    weighted: Float[Tensor, "N H L S"] | None = None


def weigh(
    func: Callable[..., Any] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    caller: Caller,
    choice: Choice,
) -> Weighed:
    """Compute the weights of one attention call.

    Args:
        func: The function that was called; None where its weights are known.
        args: What it was called with; the weights themselves where func is None.
        kwargs: The same, by name.
        caller: The module that called it.
        choice: What of it is wanted.

    Raises:
        ValueError: If the call lacks a chosen sample or head.
    """
    is_causal = False
    values: Tensor | None = None
    within_transform = any(isinstance(arg, Tensor) and is_transformed(arg) for arg in args)
    part = choice.of_all() if within_transform else choice
    read = scores_reader(func)
    if read is not None:
        args, kwargs = unpack_groups(caller, args, kwargs)
        scores = read(caller.num_heads, *args, **kwargs)
        is_causal = scores.is_causal
        shape = scores.shape
        values = scores.values() if choice.values and scores.values is not None else None
        norms = None if values is None else norms_of(values, shape)
        with torch.autocast(scores.q.device.type, enabled=False):
            chosen = part.of_scores(scores, caller.name, norms)
    else:
        whole = args[0] if func is None else func.attention_weights(*args, **kwargs)  # type: ignore[attr-defined]
        if func is None:
            values = values_met(whole, args[1], caller.num_heads)
        else:
            values = values_given(func, args, kwargs, caller.num_heads)
        whole = as_heads(whole, caller.num_heads)
        whole = whole.to(torch.promote_types(whole.dtype, torch.float32))
        n, h, length, source = whole.shape
        shape = (n, h, length, source)
        norms = norms_of(values, shape) if choice.values and values is not None else None
        chosen = part.of_weights(whole, caller.name, values, norms)
    if norms is not None:
        norms = norms[chosen.samples][:, chosen.heads]
    if within_transform:
        weights = outside_transforms(chosen.weights)
        samples = choice.samples_of(weights.shape[0], caller.name)
        norms = _as_outside(norms, chosen.weights, weights)
        norms = norms if norms is None else norms[samples]
        chosen = replace(chosen, weights=weights[samples], samples=samples, scores=None, whole=None)
        chosen = replace(chosen, weighted=None)
    return Weighed(
        weights=chosen.weights,
        size=(shape[2], shape[3]),
        samples=tuple(chosen.samples),
        heads=None if choice.average_heads else tuple(chosen.heads),
        scores=chosen.scores,
        whole=chosen.whole,
        key_heads=None if chosen.key_heads is None else tuple(chosen.key_heads),
        is_causal=is_causal or _sees_no_later_key(chosen.weights, shape[2], shape[3]),
        value_norms=norms,
        weighted=chosen.weighted,
    )


def _as_outside(norms: Tensor | None, inside: Tensor, outside: Tensor) -> Tensor | None:
    """Norms outside the transforms as those weights are; None if transforms map over them alone."""
    if norms is None:
        return None
    mapped = norms.unsqueeze(2) + torch.zeros_like(inside.sum(2, keepdim=True))
    norms = outside_transforms(mapped).squeeze(2)
    return norms if norms.shape[0] == outside.shape[0] else None


def _sees_no_later_key(weights: Tensor, length: int, source: int) -> bool:
    """Whether all weights above the diagonal are 0; the last query stands at the last key."""
    rows, columns = weights.shape[-2:]
    if rows < 2 or weights.numel() == 0:
        return False
    is_pooled = (rows, columns) != (length, source)
    return not bool(weights.triu(columns - rows + 1 + is_pooled).any())
