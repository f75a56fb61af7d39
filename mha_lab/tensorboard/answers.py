"""What the Attention tab's page may ask: runs, the maps of a run, one map, head scores."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

from tensorboard import plugin_util
from tensorboard.backend import http_util
from werkzeug import Request, Response

from mha_lab.tensorboard.page_data import about_heads, about_map, for_page, frame, natural
from mha_lab.tensorboard.parameters import (
    BadRequestError,
    not_found,
    refuse,
    shown,
    text,
    texts,
    whole_number,
    whole_numbers,
)
from mha_lab.tensorboard.series import Asker, AttentionSeries, Datum
from mha_lab.view.header import DamagedMapError, Header
from mha_lab.view.packed import unpack_codes

LARGEST_STEP = 2**63 - 1
LARGEST_SAMPLE = 2**31 - 1
MOST_STEPS = 64
MOST_MAPS = 1024


_BINARY = "application/octet-stream"
_Found = tuple[bytes | DamagedMapError, bytes | DamagedMapError]


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
        about = {tag: about_map(listed[tag].plugin_content, tag) for tag in listed}
        tags = sorted(listed.keys() & series.keys(), key=lambda tag: (about[tag][1], natural(tag)))
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
        """One map at one step for one sample, every head; see :func:`frame` for its form."""
        run = text(request.args, "run")
        tag = text(request.args, "tag")
        step = whole_number(request.args, "step", low=0, high=LARGEST_STEP)
        sample = whole_number(request.args, "sample", low=0, high=LARGEST_SAMPLE)
        datum = self._find(request, run, tag, step)
        try:
            [found] = self._load(request, [datum])
            content = _frame(found, sample, datum)
        except DamagedMapError as error:
            not_found(
                f"Map {shown(tag)} of run {shown(run)} at step {step} cannot be shown: {error}."
            )
        return respond(request, content, _BINARY)

    def several(self, request: Request) -> Response:
        """Maps at some steps, one after another in the order of steps, then of tags.

        What cannot be shown is passed over: the page asks for it alone, and is told why.
        """
        run = text(request.args, "run")
        tags = texts(request.args, "tag")
        steps = self._steps(request)
        sample = whole_number(request.args, "sample", low=0, high=LARGEST_SAMPLE)
        if len(tags) * len(steps) > MOST_MAPS:
            refuse(f"{len(tags)} maps at {len(steps)} steps are too many; {MOST_MAPS} at once.")
        series = self._series.steps(_asker(request), run)
        wanted = [
            (tag, series[tag][step])
            for step in steps
            for tag in tags
            if tag in series and step in series[tag]
        ]
        frames = []
        loaded = self._load(request, [datum for _, datum in wanted])
        for (tag, datum), found in zip(wanted, loaded, strict=True):
            try:
                frames.append(_frame(found, sample, datum, tag=tag))
            except (DamagedMapError, BadRequestError):
                continue
        return respond(request, b"".join(frames), _BINARY)

    def scores(self, request: Request) -> Response:
        """Every map's head scores at some steps, or at the last one before each that it has."""
        run = text(request.args, "run")
        steps = self._steps(request)
        asker = _asker(request)
        series = self._series.steps(asker, run)
        known = {step for of_map in series.values() for step in of_map}
        if not known.issuperset(steps):
            series = self._series.steps(asker, run, now=True)
        if not series:
            not_found(f"There is no run {shown(run)} with attention maps.")
        at = [
            (step, tag, of_map[max(reached)])
            for step in steps
            for tag, of_map in sorted(series.items(), key=lambda pair: natural(pair[0]))
            if (reached := [one for one in of_map if one <= step])
        ]
        blobs = self._series.blobs(asker, [(datum, 0) for _, _, datum in at])
        answer: dict[int, list[dict[str, Any]]] = {step: [] for step in steps}
        for (step, tag, datum), blob in zip(at, blobs, strict=True):
            with contextlib.suppress(DamagedMapError):  # one must not hide the others
                header = _header(blob)
                about = {"tag": tag, "step": datum.step, "largest": header.coding.scale}
                answer[step].append(about | about_heads(header))
        found = [{"step": step, "maps": maps} for step, maps in answer.items()]
        return _json(request, {"run": run, "steps": found})

    def _steps(self, request: Request) -> list[int]:
        return whole_numbers(request.args, "step", low=0, high=LARGEST_STEP, most=MOST_STEPS)

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

    def _load(self, request: Request, data: Sequence[Datum]) -> list[_Found]:
        """The header and the codes of some maps, read side by side."""
        wanted = [(datum, which) for datum in data for which in (0, 1)]
        blobs = self._series.blobs(_asker(request), wanted)
        return list(zip(blobs[::2], blobs[1::2], strict=True))


def respond(request: Request, content: bytes | str, kind: str, **options: Any) -> Response:
    """TensorBoard's own response: compression, no caching, its content security policy."""
    response: Response = http_util.Respond(request, content, kind, **options)
    return response


def _json(request: Request, content: dict[str, Any]) -> Response:
    return respond(request, json.dumps(content), "application/json")


def _asker(request: Request) -> Asker:
    return Asker(plugin_util.context(request.environ), plugin_util.experiment_id(request.environ))


def _frame(found: _Found, sample: int, datum: Datum, **more: Any) -> bytes:
    """One sample of a map.

    Raises:
        DamagedMapError: It cannot be read.
        BadRequestError: It has no such sample.
    """
    header = _header(found[0])
    codes = unpack_codes(header, _whole(found[1]))
    if sample >= header.shape[0]:
        not_found(f"There is no sample {sample}; this map has {header.shape[0]}, counted from 0.")
    return frame(for_page(header, sample, datum) | more, codes[sample])


def _header(blob: bytes | DamagedMapError) -> Header:
    return Header.from_json(_whole(blob))


def _whole(blob: bytes | DamagedMapError) -> bytes:
    if isinstance(blob, DamagedMapError):
        raise blob
    return blob
