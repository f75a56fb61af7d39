"""All that the tab's first picture needs, in one answer: asking in turn waits for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mha_lab.tensorboard.listing import maps_of, reached, runs_of, scores_of
from mha_lab.tensorboard.page_data import frame
from mha_lab.tensorboard.parameters import BadRequestError
from mha_lab.tensorboard.series import Asker, AttentionSeries, Datum, Steps
from mha_lab.tensorboard.strings import sample_frame
from mha_lab.view.header import DamagedMapError


class Wanted(NamedTuple):
    """What the page will show: of a run, or else of the latest, a layer, or else the first.

    Attributes:
        run: The run.
        layer: A map's tag.
        step: The step; the last of the layer's by default.
        sample: Which sample.
        maps: How many maps will be in sight, from the model's first on, beside the layer.
    """

    run: str | None
    layer: str | None
    step: int | None
    sample: int
    maps: int


def first_answer(series: AttentionSeries, asker: Asker, wanted: Wanted) -> bytes:
    """A frame without codes, of ``runs``, ``run``, ``maps``, ``step`` and ``scores``, then maps.

    Where the run has vanished there are the runs alone. What cannot be shown is passed over.
    """
    listed = series.runs(asker)
    runs = runs_of(listed)
    run = wanted.run
    if run is None and runs:
        run = max(runs, key=lambda one: one["last_wall_time"])["run"]
    steps = series.steps(asker, run, now=True) if run is not None and run in listed else {}
    maps = maps_of(listed[run], steps) if run is not None and steps else []
    if not maps:
        return frame({"runs": runs, "run": None})
    tags = [one["tag"] for one in maps]
    layer = wanted.layer if wanted.layer in steps else tags[0]
    step = _nearest(steps[layer], wanted.step)
    at = reached(steps, step)
    shown = _shown(steps, dict.fromkeys([layer, *tags[: wanted.maps]]), step)
    read = [(datum, 0) for _, datum in at]
    read += [(datum, which) for datum in shown.values() for which in (0, 1)]
    blobs = series.blobs(asker, read)
    scores, strings = blobs[: len(at)], blobs[len(at) :]
    about = {"runs": runs, "run": run, "maps": maps, "step": step, "scores": scores_of(at, scores)}
    frames = [frame(about)]
    for (tag, datum), pair in zip(
        shown.items(), zip(strings[::2], strings[1::2], strict=True), strict=True
    ):
        try:
            frames.append(sample_frame(pair, wanted.sample, datum, tag=tag))
        except (DamagedMapError, BadRequestError):
            continue  # the page asks for it alone, and is told why
    return b"".join(frames)


def _shown(series: Mapping[str, Steps], tags: Mapping[str, Any], step: int) -> dict[str, Datum]:
    return {tag: series[tag][_nearest(series[tag], step)] for tag in tags}


def _nearest(steps: Steps, step: int | None) -> int:
    """The last step that is not after the wanted one; the first where all are."""
    if step is None:
        return max(steps)
    return max((one for one in steps if one <= step), default=min(steps))
