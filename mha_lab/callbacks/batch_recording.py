"""Record what a trainer runs between two hooks of a callback.

Several callbacks may record one batch. They begin in the trainer's order and end in that order too,
but recordings lie within each other: what began last must end first. So the first callback that
ends its recording also ends those that began after it; their maps wait for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.recording.recorder import record_attention

_OPEN: list[BatchRecording] = []
"""The recordings of all callbacks that are open now; each lies within those before it."""


class BatchRecording:
    """Records one batch at a time."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._maps: list[AttentionMap] | None = None
        self._told: set[bool] = set()  # whether there were maps when the recorder had its say

    def start(self, model: nn.Module, **options: Any) -> None:
        """Record from now on.

        Args:
            model: The model.
            options: Those of :func:`mha_lab.record_attention`.
        """
        self.discard()
        self._maps = self._stack.enter_context(record_attention(model, **options))
        _OPEN.append(self)

    def stop(self) -> list[AttentionMap]:
        """Give the maps of what ran since ``start``; none where nothing was recorded.

        The first time that this happens, or that something is missing, a warning says so.
        """
        while self in _OPEN:
            _OPEN.pop()._close()
        maps, self._maps = self._maps, None
        return maps or []

    def discard(self) -> None:
        """End a recording that nobody wants any more."""
        while self in _OPEN:
            _OPEN.pop()._close(in_silence=True)
        self._maps = None

    def _close(self, *, in_silence: bool = False) -> None:
        """End the recording; the recorder says once what is missing, unless it ends by an error."""
        has_maps = bool(self._maps)
        if in_silence or has_maps in self._told:
            self._stack.__exit__(_Discarded, _Discarded(), None)
        else:
            self._stack.close()
            self._told.add(has_maps)


def is_empty(batch: Any) -> bool:
    """Whether a batch holds no sample: its tensors have no rows."""
    values = list(batch.values()) if isinstance(batch, Mapping) else batch
    tensors = [x for x in tree_leaves(values) if isinstance(x, Tensor) and x.ndim > 0]
    return bool(tensors) and all(len(tensor) == 0 for tensor in tensors)


class _Discarded(Exception):
    """Ends a recording in silence."""
