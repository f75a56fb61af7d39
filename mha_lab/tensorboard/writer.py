"""Write attention maps to TensorBoard, for the Attention tab and for ``read_attention``."""

from __future__ import annotations

import importlib
import json
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_BLOB_SEQUENCE, Summary
from tensorboard.compat.proto.types_pb2 import DT_STRING

from mha_lab.tensorboard.checksum import use_compiled_checksum
from mha_lab.tensorboard.event_files import PLUGIN_NAME
from mha_lab.view.header import FORMAT_VERSION, KINDS, Tokens
from mha_lab.view.packed import pack_weights

if TYPE_CHECKING:
    from torch import Tensor

_EVENT_BYTES = 250 * 1024
"""Of an event's values; below 256 KiB with what else an event has."""
_VALUE_OVERHEAD = 8
"""Bytes around a value within a summary."""


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


def write_attention(
    writer: Any,
    maps: Sequence[WritableMap],
    step: int,
    *,
    prefix: str = "attention",
    scores: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write one step's maps as one summary, a tag a map: ``{prefix}/{map.name}``.

    An event takes one or two bytes a weight before compression and keeps the precision that
    :mod:`mha_lab.view.codec` states. Weights of any device and floating type are accepted;
    they are copied to the CPU, and nothing is kept.

    Args:
        writer: A ``SummaryWriter`` of ``torch.utils.tensorboard`` or of ``tensorboardX``, or
            anything with their file writer's ``add_summary(summary, global_step)``.
        maps: Maps with different names, as ``record_attention`` yields them.
        step: The training step.
        prefix: What the tags begin with; maps of different stages need different ones.
        scores: Per-head scores that are already known, by map name and score name; without it,
            each map's own ``scores()`` are computed.

    Raises:
        TypeError: ``writer`` cannot write summaries, or ``step`` is not a whole number.
        ValueError: Two maps have one name, or a map's weights, kind and tokens do not fit.
    """
    file_writer = _file_writer(writer)
    step = operator.index(step)
    tags = [_tag(prefix, one.name) for one in maps]
    if len(set(tags)) != len(tags):
        twice = next(one.name for i, one in enumerate(maps) if tags[i] in tags[:i])
        raise ValueError(f"maps holds {twice!r} twice; give every map a name of its own")
    if not maps:
        return
    summary = Summary()
    for place, (one, tag) in enumerate(zip(maps, tags, strict=True)):
        known = None if scores is None else scores.get(one.name, {})
        value = summary.value.add(tag=tag)
        _fill(value, one, known)
        about = {"version": FORMAT_VERSION, "name": one.name, "place": place}
        value.metadata.plugin_data.content = json.dumps(about).encode("ascii")
    add_summary(file_writer, summary, step)


def add_summary(writer: Any, summary: Summary, step: int) -> None:
    """Write a summary in few events; that costs much less than one call of the writer a value.

    An event holds up to 256 KiB: TensorBoard reads it as a whole, whichever value is asked for.

    Args:
        writer: As of :func:`write_attention`.
        summary: Values of any kind.
        step: The training step.

    Raises:
        TypeError: ``writer`` cannot write summaries.
    """
    file_writer = _file_writer(writer)
    use_compiled_checksum()
    for event in _events_of(summary):
        file_writer.add_summary(_for_library_of(file_writer, event), step)


def _events_of(summary: Summary) -> Iterator[Summary]:
    """Cut a summary where it would outgrow an event; a value stays whole."""
    event = Summary()
    size = 0
    for value in summary.value:
        more = value.ByteSize() + _VALUE_OVERHEAD
        if event.value and size + more > _EVENT_BYTES:
            yield event
            event, size = Summary(), 0
        event.value.append(value)
        size += more
    if event.value:
        yield event


def _fill(value: Summary.Value, one: WritableMap, scores: Mapping[str, Any] | None) -> None:
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


def _tag(prefix: str, name: str) -> str:
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


def _file_writer(writer: Any) -> Any:
    """The object that takes summaries, inside a ``SummaryWriter`` or given as it is."""
    inner = getattr(writer, "_get_file_writer", lambda: writer)()
    if not hasattr(inner, "add_summary"):
        raise TypeError(
            f"writer must be a SummaryWriter or have add_summary(summary, global_step), "
            f"not a {type(writer).__name__}"
        )
    return inner


def _for_library_of(file_writer: Any, summary: Summary) -> Any:
    """The summary in the class that the writer takes: tensorboardX brings its own."""
    if type(file_writer).__module__.partition(".")[0] != "tensorboardX":
        return summary
    own = importlib.import_module("tensorboardX.proto.summary_pb2")
    return own.Summary.FromString(summary.SerializeToString())


def _on_cpu(scores: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        (name, values.detach().float().cpu() if hasattr(values, "detach") else values)
        for name, values in scores.items()
    ]


def _whole_numbers(values: Sequence[int] | None) -> list[int] | None:
    return None if values is None else [int(value) for value in values]
