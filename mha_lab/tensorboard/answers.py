"""What the Attention tab's page may ask: runs, the maps of a run, maps, head scores, or a start."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tensorboard import plugin_util
from tensorboard.backend import http_util
from werkzeug import Request, Response

from mha_lab.tensorboard.first_answer import Wanted, first_answer
from mha_lab.tensorboard.listing import maps_of, reached, runs_of, scores_of
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
from mha_lab.tensorboard.series import Asker, AttentionSeries, Blob, Datum
from mha_lab.tensorboard.strings import sample_frame
from mha_lab.view.header import DamagedMapError

LARGEST_STEP = 2**63 - 1
LARGEST_SAMPLE = 2**31 - 1
MOST_STEPS = 64
MOST_MAPS = 1024
_BINARY = "application/octet-stream"


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
        return _json(request, {"runs": runs_of(self._series.runs(_asker(request)))})

    def start(self, request: Request) -> Response:
        """All that the first picture needs; see :func:`first_answer`."""
        args = request.args
        step = {"low": 0, "high": LARGEST_STEP}
        wanted = Wanted(
            run=text(args, "run") if "run" in args else None,
            layer=text(args, "layer") if "layer" in args else None,
            step=whole_number(args, "step", **step) if "step" in args else None,
            sample=whole_number(args, "sample", low=0, high=LARGEST_SAMPLE),
            maps=whole_number(args, "maps", low=0, high=MOST_STEPS),
        )
        return respond(request, first_answer(self._series, _asker(request), wanted), _BINARY)

    def maps(self, request: Request) -> Response:
        """The maps of one run: tag, name, and the step and time of each writing."""
        run = text(request.args, "run")
        listed, series = self._series.tags_and_steps(_asker(request), run)
        maps = maps_of(listed, series)
        if not maps:
            not_found(f"There is no run {shown(run)} with attention maps.")
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
            content = sample_frame(found, sample, datum)
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
                frames.append(sample_frame(found, sample, datum, tag=tag))
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
        at = {step: reached(series, step) for step in steps}
        read = [(datum, 0) for maps in at.values() for _, datum in maps]
        blobs = iter(self._series.blobs(asker, read))
        found = [
            {"step": step, "maps": scores_of(maps, [next(blobs) for _ in maps])}
            for step, maps in at.items()
        ]
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

    def _load(self, request: Request, data: Sequence[Datum]) -> list[tuple[Blob, Blob]]:
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
