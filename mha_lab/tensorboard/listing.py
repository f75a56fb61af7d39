"""What runs and maps there are, and what is known of their heads, as the tab's page is told."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mha_lab.tensorboard.page_data import about_heads, about_map, natural
from mha_lab.tensorboard.series import Blob, Datum, Steps
from mha_lab.tensorboard.strings import header_of
from mha_lab.view.header import DamagedMapError


def runs_of(listed: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every run that has maps, with what tells the page that it has changed."""
    return [
        {
            "run": run,
            "maps": len(tags),
            "last_step": max(series.max_step for series in tags.values()),
            "last_wall_time": max(series.max_wall_time for series in tags.values()),
        }
        for run, tags in sorted(listed.items(), key=lambda pair: natural(pair[0]))
    ]


def maps_of(listed: Mapping[str, Any], series: Mapping[str, Steps]) -> list[dict[str, Any]]:
    """The maps of a run in the model's order: tag, name, and the step and time of each writing."""
    about = {tag: about_map(listed[tag].plugin_content, tag) for tag in listed}
    tags = sorted(listed.keys() & series.keys(), key=lambda tag: (about[tag][1], natural(tag)))
    return [
        {
            "tag": tag,
            "name": about[tag][0],
            "steps": list(series[tag]),
            "wall_times": [datum.wall_time for datum in series[tag].values()],
        }
        for tag in tags
    ]


def reached(series: Mapping[str, Steps], step: int) -> list[tuple[str, Datum]]:
    """Each map as last written at a step or before; those that were written later are left out."""
    return [
        (tag, steps[max(before)])
        for tag, steps in sorted(series.items(), key=lambda pair: natural(pair[0]))
        if (before := [one for one in steps if one <= step])
    ]


def scores_of(at: Iterable[tuple[str, Datum]], blobs: Sequence[Blob]) -> list[dict[str, Any]]:
    """The head scores in the headers of maps; a damaged one must not hide the others."""
    found = []
    for (tag, datum), blob in zip(at, blobs, strict=True):
        with contextlib.suppress(DamagedMapError):
            header = header_of(blob)
            about = {"tag": tag, "step": datum.step, "largest": header.coding.scale}
            found.append(about | about_heads(header))
    return found
