"""Write attention maps to TensorBoard, for the Attention tab and for ``read_attention``."""

from __future__ import annotations

import importlib
import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensorboard.compat.proto.summary_pb2 import Summary

from mha_lab.tensorboard.checksum import use_compiled_checksum
from mha_lab.tensorboard.summary_values import WritableMap, fill, tag_of
from mha_lab.view.header import FORMAT_VERSION

_EVENT_BYTES = 250 * 1024
"""Of an event's values; below 256 KiB with what else an event has."""
_VALUE_OVERHEAD = 8
"""Bytes around a value within a summary."""


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
    tags = [tag_of(prefix, one.name) for one in maps]
    if len(set(tags)) != len(tags):
        twice = next(one.name for i, one in enumerate(maps) if tags[i] in tags[:i])
        raise ValueError(f"maps holds {twice!r} twice; give every map a name of its own")
    if not maps:
        return
    summary = Summary()
    for place, (one, tag) in enumerate(zip(maps, tags, strict=True)):
        known = None if scores is None else scores.get(one.name, {})
        value = summary.value.add(tag=tag)
        fill(value, one, known)
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
