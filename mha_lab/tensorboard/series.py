"""What the Attention tab's backend asks of TensorBoard's data, in as few round trips as it can.

TensorBoard's fast loader is another process, and an answer of it can take 45 ms however small it
is (its packets wait for acknowledgements). So independent questions are asked side by side, and
which steps a run has is remembered: a map then takes one wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tensorboard import errors
from tensorboard.context import RequestContext
from tensorboard.data import provider

from mha_lab.tensorboard.event_files import PLUGIN_NAME
from mha_lab.tensorboard.restarts import restarts_of, still_valid
from mha_lab.view.header import DamagedMapError

ALL_STEPS = 1_000_000  # the provider wants a limit
RUNS_REMEMBERED = 8


class Direct(NamedTuple):
    """A map as TensorBoard's Python loader holds it, where its provider hides it."""

    step: int
    wall_time: float
    values: Sequence[bytes]


Datum: TypeAlias = provider.BlobSequenceDatum | Direct
Steps = dict[int, Datum]
Blob: TypeAlias = bytes | DamagedMapError


class Asker(NamedTuple):
    """On whose behalf data is read; TensorBoard wants both with every question."""

    context: RequestContext
    experiment: str


class AttentionSeries:
    """The attention maps that TensorBoard has loaded.

    Args:
        data: TensorBoard's data provider; None where there is no data.
        logdir: The folder that it loads, in which event files tell of restarts; None where there
            is none, or several.
        multiplexer: Where TensorBoard's Python loader has what it loaded; None with the fast one.
    """

    def __init__(
        self,
        data: provider.DataProvider | None,
        logdir: Path | None = None,
        multiplexer: Any = None,
    ) -> None:
        self._data = data
        self._logdir = logdir
        self._multiplexer = multiplexer
        self._pool = ThreadPoolExecutor(max_workers=16, thread_name_prefix="mha_lab_attention")
        self._remembered: dict[tuple[str, str], dict[str, Steps]] = {}

    def runs(self, asker: Asker, run: str | None = None) -> Mapping[str, Mapping[str, Any]]:
        """Run to tag to TensorBoard's ``BlobSequenceTimeSeries``, for one run or for all."""
        if self._data is None:
            return {}
        listed: Mapping[str, Mapping[str, Any]] = self._data.list_blob_sequences(
            asker.context,
            experiment_id=asker.experiment,
            plugin_name=PLUGIN_NAME,
            run_tag_filter=provider.RunTagFilter(runs=None if run is None else [run]),
        )
        return {name: tags for name, tags in listed.items() if tags}

    def tags_and_steps(self, asker: Asker, run: str) -> tuple[Mapping[str, Any], dict[str, Steps]]:
        """Both what ``runs`` and what ``steps`` know of one run, and both of now."""
        listed = self._pool.submit(self.runs, asker, run)
        steps = self.steps(asker, run, now=True)
        return listed.result().get(run, {}), steps

    def steps(self, asker: Asker, run: str, *, now: bool = False) -> dict[str, Steps]:
        """Tag to step to datum, ascending; as remembered, unless it must be as of ``now``."""
        key = (asker.experiment, run)
        remembered = self._remembered.get(key)
        if remembered is not None and not now:
            return remembered
        if self._data is None:
            return {}
        read = self._data.read_blob_sequences(
            asker.context,
            experiment_id=asker.experiment,
            plugin_name=PLUGIN_NAME,
            downsample=ALL_STEPS,
            run_tag_filter=provider.RunTagFilter(runs=[run]),
        )
        found = {tag: data for tag, data in read.get(run, {}).items() if data}
        # A run that TensorBoard knows is a folder below its own; nothing else is looked for there.
        restarts = restarts_of(self._logdir / run) if found and self._logdir else []
        valid = {
            tag: still_valid(self._in_order(run, tag, data), restarts)
            for tag, data in found.items()
        }
        series = {tag: steps for tag, steps in valid.items() if steps}
        self._remember(key, series)
        return series

    def _in_order(
        self, run: str, tag: str, data: Sequence[provider.BlobSequenceDatum]
    ) -> Sequence[Datum]:
        """A series as it was written; the Python loader hands on a step's first writing alone."""
        if self._multiplexer is None:
            return data
        known = {(datum.step, datum.wall_time): datum for datum in data}
        try:
            written = self._multiplexer.Tensors(run, tag)
        except KeyError:  # vanished meanwhile
            return data
        return [
            known.get((event.step, event.wall_time))
            or Direct(event.step, event.wall_time, event.tensor_proto.string_val)
            for event in written
        ]

    def blobs(self, asker: Asker, wanted: Sequence[tuple[Datum, int]]) -> list[Blob]:
        """The strings (datum, 0 or 1), read side by side; an error in place of a missing one."""
        return list(self._pool.map(lambda pair: self._blob(asker, *pair), wanted))

    def _blob(self, asker: Asker, datum: Datum, index: int) -> Blob:
        if self._data is None or len(datum.values) != 2:
            return DamagedMapError(f"it has {len(datum.values)} parts instead of 2")
        if isinstance(datum, Direct):
            return datum.values[index]
        try:
            blob: bytes = self._data.read_blob(asker.context, blob_key=datum.values[index].blob_key)
        except (errors.NotFoundError, KeyError):
            return DamagedMapError("it has vanished since it was listed")
        except errors.InvalidArgumentError:
            return DamagedMapError(
                "TensorBoard's fast loader cannot read names with quotes or backslashes; "
                "start TensorBoard with --load_fast=false, or rename the run"
            )
        return blob

    def _remember(self, key: tuple[str, str], series: dict[str, Steps]) -> None:
        """Keep the latest few runs; a run without maps is not worth remembering."""
        self._remembered.pop(key, None)
        if series:
            self._remembered[key] = series
        for oldest in list(self._remembered)[:-RUNS_REMEMBERED]:
            self._remembered.pop(oldest, None)
