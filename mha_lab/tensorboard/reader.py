"""Read the attention maps of a run, or of a whole folder of runs, back as arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from mha_lab.tensorboard.event_files import PLUGIN_NAME, find_event_files, read_events
from mha_lab.tensorboard.restarts import abandon, restart_in
from mha_lab.tensorboard.stored_map import StoredMap
from mha_lab.view.gallery import Gallery
from mha_lab.view.header import DamagedMapError, Header


def read_attention(
    logdir: str | os.PathLike[str],
    *,
    run: str = "*",
    name: str = "*",
    step: int | None = None,
) -> Gallery[StoredMap]:
    """Read attention maps that ``AttentionMapLogger`` or ``write_attention`` wrote.

    Example:
        >>> for one in read_attention("outputs"):
        ...     print(one.run, one.step, one.name, one.weights.shape)

    Args:
        logdir: The folder of a run, a folder with runs anywhere below it, or one event file.
        run: Which runs; "*", "?" and "[...]" match as in file names.
        name: Which maps, by name; the same wildcards.
        step: Only this step; every step by default.

    Returns:
        The maps, sorted by run and step; those of one step in the order in which they were
        written. What a run that was restarted left behind is not among them: steps from the
        restart's ``purge_step`` on, and, as in the tab, steps of a map from one that was then
        written again or before them. Weights stay packed until they are asked for. A
        file that is still being written is read as far as it is whole.

    Raises:
        TypeError: ``run`` or ``name`` is no text.
        FileNotFoundError: There is no such folder, or there are no event files in it.
        ValueError: The event files hold no attention map, or none that was asked for.
    """
    for argument, glob in (("run", run), ("name", name)):
        if not isinstance(glob, str):
            raise TypeError(f"{argument}={glob!r} must be a str with wildcards")
    root = Path(logdir).expanduser()
    if not root.exists():
        raise FileNotFoundError(f"logdir {str(root)!r} does not exist; give the folder of a run")
    files = find_event_files(root)
    if not files:
        raise FileNotFoundError(
            f"logdir {str(root)!r} holds no TensorBoard event files (*tfevents*), nor do the "
            "folders below it; give the folder of a run"
        )
    latest: dict[tuple[str, str, int], StoredMap] = {}
    for of_run in _by_run(files):
        latest.update(_read_run(of_run))
    if not latest:
        raise ValueError(
            f"the event files below {str(root)!r} hold no attention maps; train with "
            "AttentionMapLogger, or write them with mha_lab.tensorboard.writer.write_attention"
        )
    chosen = [
        one
        for one in latest.values()
        if fnmatchcase(one.run, run)
        and fnmatchcase(one.name, name)
        and (step is None or one.step == step)
    ]
    if not chosen:
        runs = sorted({one.run for one in latest.values()})
        names = list(dict.fromkeys(one.name for one in latest.values()))
        raise ValueError(
            f"no attention map has run={run!r}, name={name!r}, step={step!r}; there are the runs "
            f"{runs}, the names {names} and the steps {_span(latest)}"
        )
    title = root.resolve().name if {one.run for one in chosen} == {"."} else None
    return Gallery(sorted(chosen, key=lambda one: (one.run, one.step)), title=title)


def _by_run(files: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, list[Path]]]:
    """The files of each run, oldest first."""
    for run, group in groupby(files, key=itemgetter(0)):
        yield run, [path for _, path in group]


def _read_run(of_run: tuple[str, list[Path]]) -> dict[tuple[str, str, int], StoredMap]:
    """The maps of one run that no restart abandoned, by run, tag and step."""
    run, paths = of_run
    kept: dict[str, dict[int, tuple[int, StoredMap]]] = {}
    found = (one for path in paths for one in _maps_of(run, path))
    for place, one in enumerate(found):
        if isinstance(one, int):  # a restart
            for steps in kept.values():
                abandon(steps, one)
        else:
            steps = kept.setdefault(one.tag, {})
            abandon(steps, one.step)
            steps[one.step] = (place, one)
    written = sorted(
        (pair for steps in kept.values() for pair in steps.values()), key=itemgetter(0)
    )
    return {(run, one.tag, one.step): one for _, one in written}


def _maps_of(run: str, path: Path) -> Iterator[StoredMap | int]:
    """Yield the maps of one event file, and where it says so, the step of a restart.

    Maps with an unreadable header are passed over. The metadata that names the plugin need only
    come with a tag's first value.
    """
    ours: set[str] = set()
    for event in read_events(path):
        if restart := restart_in(event):
            yield restart.step
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == PLUGIN_NAME:
                ours.add(value.tag)
            if value.tag not in ours or len(value.tensor.string_val) != 2:
                continue
            text, packed = value.tensor.string_val
            try:
                header = Header.from_json(text)
            except DamagedMapError:
                continue
            yield StoredMap(run, value.tag, event.step, event.wall_time, header, packed)


def _span(maps: dict[tuple[str, str, int], StoredMap]) -> str:
    steps = sorted({step for _, _, step in maps})
    return str(steps) if len(steps) <= 8 else f"{steps[0]} to {steps[-1]} ({len(steps)} of them)"
