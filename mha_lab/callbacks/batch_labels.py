"""Tokens on the axes of maps that were recorded of a batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torch import nn

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.recording.labels import label_maps
from mha_lab.recording.token_lists import is_tokenizer
from mha_lab.recording.tokenizer_labels import tokenize_maps


class BatchLabels:
    """Writes tokens on maps; says once if it cannot, which is no reason to end a training run.

    Args:
        tokens: A function of the batch, or a tokenizer; None means the module's own
            ``attention_tokens(batch)`` where it has one.

    Raises:
        TypeError: If it is neither.
    """

    def __init__(self, tokens: Callable[[Any], Any] | Any | None) -> None:
        if tokens is not None and not callable(tokens) and not is_tokenizer(tokens):
            raise TypeError(
                f"tokens={tokens!r} must be a function of the batch or a tokenizer, "
                f"not {type(tokens).__name__}"
            )
        self._tokens = tokens
        self._has_warned = False

    def write(self, maps: list[AttentionMap], module: nn.Module, batch: Any) -> list[AttentionMap]:
        """The maps with tokens on their axes, or as they are."""
        try:
            if is_tokenizer(self._tokens):
                return tokenize_maps(maps, self._tokens, batch)
            tokens_of = self._tokens or getattr(module, "attention_tokens", None)
            return maps if tokens_of is None else label_maps(maps, tokens_of(batch))
        except Exception as error:
            if not self._has_warned:
                self._has_warned = True
                warnings.warn(
                    f"attention maps are logged without tokens: {type(error).__name__}: {error}",
                    stacklevel=3,
                )
            return maps
