"""What the Attention tab's page may ask: runs, the maps of a run, one map, head scores."""

from __future__ import annotations

import contextlib
import json
import re
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorboard import plugin_util
from tensorboard.backend import http_util
from werkzeug import Request, Response

from mha_lab.tensorboard.parameters import not_found, shown, text, whole_number
from mha_lab.tensorboard.series import Asker, AttentionSeries, Datum
from mha_lab.view.packed import DamagedMapError, Header, unpack_codes

LARGEST_STEP = 2**63 - 1
LARGEST_SAMPLE = 2**31 - 1
_NUMBER = re.compile(r"([0-9]{1,18})", re.ASCII)


class Answers:
    """Each method answers one route.

    Every method raises :class:`BadRequestError` where the request is wrong (400) or names what
    does not exist (404).

    Args:
        series: Where the maps lie.
    """

    def __init__(self, series: AttentionSeries) -> None:
        self._series = series

    def runs(self, request: Request) -> Response:
        """Every run that has maps, with what tells the page that it has changed."""
        runs = [
            {
                "run": run,
                "maps": len(tags),
                "last_step": max(series.max_step for series in tags.values()),
                "last_wall_time": max(series.max_wall_time for series in tags.values()),
            }
            for run, tags in sorted(self._series.runs(_asker(request)).items())
        ]
        return _json(request, {"runs": runs})

    def maps(self, request: Request) -> Response:
        """The maps of one run: tag, name, and the step and time of each writing."""
        run = text(request.args, "run")
        listed, series = self._series.tags_and_steps(_asker(request), run)
        about = {tag: _about_map(listed[tag].plugin_content, tag) for tag in listed}
        tags = sorted(listed.keys() & series.keys(), key=lambda tag: (about[tag][1], _natural(tag)))
        if not tags:
            not_found(f"There is no run {shown(run)} with attention maps.")
        maps = [
            {
                "tag": tag,
                "name": about[tag][0],
                "steps": list(series[tag]),
                "wall_times": [datum.wall_time for datum in series[tag].values()],
            }
            for tag in tags
        ]
        return _json(request, {"run": run, "maps": maps})

    def map(self, request: Request) -> Response:
        """One map at one step for one sample, every head.

        The answer is the length of a JSON header (4 bytes, little-endian), the header, and the
        codes, (H, L, S).
        """
        run = text(request.args, "run")
        tag = text(request.args, "tag")
        step = whole_number(request.args, "step", low=0, high=LARGEST_STEP)
        sample = whole_number(request.args, "sample", low=0, high=LARGEST_SAMPLE)
        datum = self._find(request, run, tag, step)
        try:
            header, codes = self._load(request, datum)
        except DamagedMapError as error:
            not_found(
                f"Map {shown(tag)} of run {shown(run)} at step {step} cannot be shown: {error}."
            )
        if sample >= header.shape[0]:
            not_found(
                f"There is no sample {sample}; this map has {header.shape[0]}, counted from 0."
            )
        about = json.dumps(_for_page(header, sample, datum)).encode("ascii")
        content = struct.pack("<I", len(about)) + about + codes[sample].tobytes()
        return respond(request, content, "application/octet-stream")

    def scores(self, request: Request) -> Response:
        """Every map's head scores at a step, or at the last one before it that the map has."""
        run = text(request.args, "run")
        step = whole_number(request.args, "step", low=0, high=LARGEST_STEP)
        asker = _asker(request)
        series = self._series.steps(asker, run)
        if not any(step in steps for steps in series.values()):
            series = self._series.steps(asker, run, now=True)
        if not series:
            not_found(f"There is no run {shown(run)} with attention maps.")
        latest = {
            tag: series[tag][max(reached)]
            for tag in sorted(series, key=_natural)
            if (reached := [one for one in series[tag] if one <= step])
        }
        headers = self._series.blobs(asker, [(datum, 0) for datum in latest.values()])
        maps = []
        for (tag, datum), blob in zip(latest.items(), headers, strict=True):
            with contextlib.suppress(DamagedMapError):  # one must not hide the others
                header = _header(blob)
                about = {"tag": tag, "step": datum.step, "largest": header.coding.scale}
                maps.append(about | _about_heads(header))
        return _json(request, {"run": run, "step": step, "maps": maps})

    def _find(self, request: Request, run: str, tag: str, step: int) -> Datum:
        """The place of one map; what is not remembered may be new, so that is looked up."""
        asker = _asker(request)
        series = self._series.steps(asker, run)
        if step not in series.get(tag, {}):
            series = self._series.steps(asker, run, now=True)
        if tag not in series:
            not_found(f"There is no map {shown(tag)} in run {shown(run)}.")
        if step not in series[tag]:
            not_found(f"Map {shown(tag)} of run {shown(run)} has no step {step}.")
        return series[tag][step]

    def _load(self, request: Request, datum: Datum) -> tuple[Header, NDArray[np.unsignedinteger]]:
        first, second = self._series.blobs(_asker(request), [(datum, 0), (datum, 1)])
        header = _header(first)
        return header, unpack_codes(header, _whole(second))


def respond(request: Request, content: bytes | str, kind: str, **options: Any) -> Response:
    """TensorBoard's own response: compression, no caching, its content security policy."""
    response: Response = http_util.Respond(request, content, kind, **options)
    return response


def _json(request: Request, content: dict[str, Any]) -> Response:
    return respond(request, json.dumps(content), "application/json")


def _asker(request: Request) -> Asker:
    return Asker(plugin_util.context(request.environ), plugin_util.experiment_id(request.environ))


def _header(blob: bytes | DamagedMapError) -> Header:
    return Header.from_json(_whole(blob))


def _whole(blob: bytes | DamagedMapError) -> bytes:
    if isinstance(blob, DamagedMapError):
        raise blob
    return blob


def _for_page(header: Header, sample: int, datum: Datum) -> dict[str, Any]:
    """What the page needs to draw one sample."""

    def of_sample(tokens: list[list[str]] | None) -> list[str] | None:
        return None if tokens is None else tokens[sample]

    coding = header.coding
    return _about_heads(header) | {
        "step": datum.step,
        "wall_time": datum.wall_time,
        "shape": header.shape[1:],
        "size": header.size,
        "coding": {
            "bits": coding.bits,
            "zero": coding.zero,
            "levels": coding.levels,
            "scale": coding.scale,
        },
        "query_tokens": of_sample(header.query_tokens),
        "key_tokens": of_sample(header.key_tokens),
        "pool": header.pool,
        "image": header.images[sample] if header.images else None,
        "measure": header.measure,
    }


def _about_heads(header: Header) -> dict[str, Any]:
    """Kind, samples, heads and scores; every score as (N, H)."""
    n, heads = header.shape[:2]
    return {
        "kind": header.kind,
        "samples": header.samples or list(range(n)),
        "heads": header.heads,
        "head_count": heads,
        "key_heads": header.key_heads,
        "scores": {
            name: values if np.ndim(values) == 2 else [values] * n
            for name, values in header.scores.items()
        },
    }


def _about_map(content: bytes, tag: str) -> tuple[str, int]:
    """The map's name and its place in the model, from the series' metadata."""
    try:
        about = json.loads(content)
        return str(about["name"]), int(about["place"])
    except (ValueError, KeyError, TypeError):
        return tag, 0  # damaged: the tag has to do


def _natural(tag: str) -> list[tuple[int, str]]:
    """A sort key by which layers.2 comes before layers.10."""
    parts = enumerate(_NUMBER.split(tag))
    return [(int(part), "") if i % 2 else (-1, part) for i, part in parts]
