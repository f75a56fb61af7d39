"""Which steps of a series a restarted training left behind.

A writer that takes up a run at an earlier step says so at the head of its new file
(``SummaryWriter(purge_step=...)``): what the run had from that step on is void. TensorBoard's fast
loader does not know of it, and the Python one passes the first such word over. Of a series that
goes back without a word, the fast loader forgets what it went back behind, and the Python one shows
both, of a step written twice the older. The tab and ``read_attention`` show one thing whichever
loads: what was said to be void is, and so is what a series went back behind.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from tensorboard.compat.proto.event_pb2 import Event, SessionLog

from mha_lab.tensorboard.event_files import files_of, read_events

_HEAD = 3  # events in which a writer says that it restarts: its version, then the restart


class Dated(Protocol):
    """Something that was written at a time, for a step."""

    @property
    def step(self) -> int:
        """The training step."""

    @property
    def wall_time(self) -> float:
        """Seconds since 1970."""


class Restart(NamedTuple):
    """From ``step`` on, what was written before ``wall_time`` is void."""

    step: int
    wall_time: float


D = TypeVar("D", bound=Dated)


def restart_in(event: Event) -> Restart | None:
    """The restart that an event tells of. A start at step 0 is a run's first and voids nothing."""
    if event.session_log.status == SessionLog.START and event.step > 0:
        return Restart(event.step, event.wall_time)
    return None


def restarts_of(run: Path) -> list[Restart]:
    """What the heads of a run's event files say; only they are read.

    Args:
        run: A run's folder, or one event file. What cannot be read has no restarts.
    """
    heads = (event for path in files_of(run) for event in islice(read_events(path), _HEAD))
    return [found for event in heads if (found := restart_in(event))]


def abandon(steps: MutableMapping[int, Any], first: int) -> None:
    """Forget steps from ``first`` on."""
    for step in [step for step in steps if step >= first]:
        del steps[step]


def still_valid(data: Iterable[D], restarts: Sequence[Restart]) -> dict[int, D]:
    """A series without what was left behind.

    Args:
        data: One series, in the order in which it was written.
        restarts: Those of its run.

    Returns:
        Step to datum, ascending.
    """
    kept: dict[int, D] = {}
    for datum in data:
        abandon(kept, datum.step)
        if not any(
            datum.step >= restart.step and datum.wall_time < restart.wall_time
            for restart in restarts
        ):
            kept[datum.step] = datum
    return kept
