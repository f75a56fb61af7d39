"""One attention map as a value of a summary: its tag, its two strings, its metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_BLOB_SEQUENCE, Summary
from tensorboard.compat.proto.types_pb2 import DT_STRING

from mha_lab.tensorboard.event_files import PLUGIN_NAME
from mha_lab.view.header import KINDS, Tokens
from mha_lab.view.packed import pack_weights

if TYPE_CHECKING:
    from torch import Tensor


class WritableMap(Protocol):
    """What is needed of a map; :class:`mha_lab.AttentionMap` has it.

    ``samples``, ``heads``, ``size``, ``pool``, ``key_heads``, ``images``, ``measure`` and a method
    ``scores()``, which returns a (H,) or (N, H) tensor for each score's name, are written too where
    the map has them.
    """

    @property
    def name(self) -> str:
        """The module's path."""

    @property
    def weights(self) -> Tensor:
        """(N, H, L, S)."""

    @property
    def kind(self) -> str:
        """One of "self", "masked" and "cross"."""

    @property
    def query_tokens(self) -> Tokens:
        """N lists of L labels, or None."""

    @property
    def key_tokens(self) -> Tokens:
        """N lists of S labels, or None."""


def fill(value: Summary.Value, one: WritableMap, scores: Mapping[str, Any] | None) -> None:
    """Put one map into a summary value as a tensor of two strings."""
    _check(one)
    if scores is None:
        scores = one.scores() if hasattr(one, "scores") else {}
    images = getattr(one, "images", None)
    strings = pack_weights(
        one.weights.detach().float().cpu().numpy(),
        name=one.name,
        kind=one.kind,
        query_tokens=one.query_tokens,
        key_tokens=one.key_tokens,
        samples=_whole_numbers(getattr(one, "samples", None)),
        heads=_whole_numbers(getattr(one, "heads", None)),
        size=_whole_numbers(getattr(one, "size", None)),
        scores={name: np.asarray(values).tolist() for name, values in _on_cpu(scores)},
        pool=getattr(one, "pool", "mean"),
        key_heads=_whole_numbers(getattr(one, "key_heads", None)),
        images=None if images is None else [image.about() for image in images],
        measure=getattr(one, "measure", "weights"),
    )
    value.metadata.display_name = one.name
    # A blob sequence: TensorBoard then reads the two strings of one step, not the whole series.
    value.metadata.data_class = DATA_CLASS_BLOB_SEQUENCE
    value.metadata.plugin_data.plugin_name = PLUGIN_NAME
    value.tensor.dtype = DT_STRING
    value.tensor.tensor_shape.dim.add(size=len(strings))
    value.tensor.string_val.extend(strings)


def tag_of(prefix: str, name: str) -> str:
    """Where a map is written; the root module has no name.

    TensorBoard's fast loader (0.7.2) cannot find tags again that hold quotes, backslashes or
    control characters; the name itself is kept beside the tag.
    """
    return re.sub(r'["\\\x00-\x1f]', "_", f"{prefix}/{name}" if name else prefix)


def _check(one: WritableMap) -> None:
    """Refuse a map that could not be read back."""
    if one.weights.ndim != 4:
        raise ValueError(
            f"map {one.name!r} has weights of shape {tuple(one.weights.shape)}; "
            "they must be (N, H, L, S)"
        )
    if one.kind not in KINDS:
        raise ValueError(f"map {one.name!r} has kind {one.kind!r}; it must be one of {KINDS}")
    samples, _, rows, columns = one.weights.shape
    for which, tokens, length in (
        ("query_tokens", one.query_tokens, rows),
        ("key_tokens", one.key_tokens, columns),
    ):
        if tokens is not None and [len(row) for row in tokens] != [length] * samples:
            raise ValueError(
                f"map {one.name!r} has {which} of lengths {[len(row) for row in tokens]}; "
                f"weights of shape {tuple(one.weights.shape)} need {samples} lists of {length}"
            )


def _on_cpu(scores: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        (name, values.detach().float().cpu() if hasattr(values, "detach") else values)
        for name, values in scores.items()
    ]


def _whole_numbers(values: Sequence[int] | None) -> list[int] | None:
    return None if values is None else [int(value) for value in values]
