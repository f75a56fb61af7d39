"""Record the attention of any model, without changing the model.

A ``torch.overrides.TorchFunctionMode`` sees every call of torch's attention functions while it is
active; each is answered by torch itself, and its weights are computed beside it. While a mode is
active, ``nn.TransformerEncoder`` leaves its fused fast path by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from mha_lab.recording.attention_map import AttentionMap
from mha_lab.recording.caller import find_caller, kind_of_call
from mha_lab.recording.calls import SCORES_OF
from mha_lab.recording.distribution import Pool, attention_distribution


@contextmanager
def record_attention(
    model: nn.Module,
    *,
    modules: str | Sequence[str] | None = None,
    samples: int | Sequence[int] | None = None,
    heads: int | Sequence[int] | None = None,
    average_heads: bool = False,
    max_size: int | None = None,
    pool: Pool = "mean",
    softmax: bool = False,
) -> Iterator[list[AttentionMap]]:
    """Record every attention call that a model makes inside the block."""
    recorder = _Recorder(model, samples, heads, average_heads, max_size, pool)
    with recorder:
        yield recorder.maps


class _Recorder(TorchFunctionMode):
    """Sees every torch function that is called; records those that are attention."""

    def __init__(
        self,
        model: nn.Module,
        samples: int | Sequence[int] | None,
        heads: int | Sequence[int] | None,
        average_heads: bool,
        max_size: int | None,
        pool: Pool,
    ) -> None:
        super().__init__()
        self.maps: list[AttentionMap] = []
        self._names = {id(module): name for name, module in model.named_modules()}
        self._samples, self._heads = samples, heads
        self._average_heads, self._max_size, self._pool = average_heads, max_size, pool
        self._calls: Counter[str] = Counter()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in SCORES_OF:
            with torch.no_grad():
                self._record(func, args, kwargs)
        return func(*args, **kwargs)

    def _record(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        caller = find_caller(self._names)
        if caller is None:
            return
        scores = SCORES_OF[func](caller.num_heads, *args, **kwargs)
        n, h, length, source = scores.shape
        samples, heads = _indices(self._samples, n), _indices(self._heads, h)
        with torch.autocast(scores.q.device.type, enabled=False):
            weights = attention_distribution(
                scores.select(samples, heads),
                average_heads=self._average_heads,
                max_size=self._max_size,
                pool=self._pool,
            )
        is_causal = scores.is_causal or _sees_no_later_key(weights, length, source)
        self._calls[caller.name] += 1
        count = self._calls[caller.name]
        self.maps.append(
            AttentionMap(
                name=caller.name if count == 1 else f"{caller.name}#{count}",
                weights=weights.detach(),
                kind=kind_of_call(caller, is_causal=is_causal, length=length, source=source),
                size=(length, source),
                samples=tuple(samples),
                heads=None if self._average_heads else tuple(heads),
            )
        )


def _indices(chosen: int | Sequence[int] | None, size: int) -> list[int]:
    """Which of ``size`` samples or heads: all, the first so many, or those listed."""
    if chosen is None:
        return list(range(size))
    if isinstance(chosen, int):
        return list(range(min(chosen, size)))
    return list(chosen)


def _sees_no_later_key(weights: Tensor, length: int, source: int) -> bool:
    """Whether all weights above the diagonal are 0; the last query stands at the last key."""
    rows, columns = weights.shape[-2:]
    if rows < 2 or weights.numel() == 0:
        return False
    pooled = (rows, columns) != (length, source)
    return not bool(weights.triu(columns - rows + 1 + pooled).any())
