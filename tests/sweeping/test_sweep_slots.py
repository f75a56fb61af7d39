"""Claims, lost trials and liveness, with every kind of storage."""

from pathlib import Path

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

from mha_lab.sweeping import liveness
from mha_lab.sweeping.liveness import Worker
from mha_lab.sweeping.slots import DIED, INTERRUPTED, MOST_DEATHS, SLOT, Slots
from mha_lab.sweeping.storage import open_storage

SIZE = 3
States = list[tuple[int, str]]


@pytest.fixture(params=["journal", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    return None if request.param == "journal" else f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def processes(url: str | None, tmp_path: Path) -> list[Slots]:
    """The same study through two connections, as two processes have it."""

    def connect() -> Slots:
        storage = open_storage(url, tmp_path)
        study = optuna.create_study(study_name="s", storage=storage, load_if_exists=True)
        return Slots(study, storage, SIZE)

    return [connect(), connect()]


def nothing(slot: int) -> dict[str, float]:
    return {}


def states(slots: Slots) -> States:
    return [(trial.user_attrs[SLOT], trial.state.name) for trial in slots.trials()]


def claim(slots: Slots) -> FrozenTrial:
    trial = slots.claim()
    assert trial is not None
    return trial


def test_each_trial_is_claimed_once(processes: list[Slots]):
    one, other = processes
    one.fill(nothing)
    other.fill(nothing)
    claimed = [claim(one), claim(other), claim(one)]
    assert [trial.user_attrs[SLOT] for trial in claimed] == [0, 1, 2]
    assert one.claim() is None
    assert other.claim() is None
    assert not one.are_finished()
    for trial in claimed:
        other.study.tell(trial.number, 0.5)
    assert one.are_finished()


def test_a_claim_seen_too_late_fails(processes: list[Slots]):
    one, other = processes
    one.fill(nothing)
    seen = other.trials()[0]
    claim(one)
    assert not other._is_ours(seen)
    one.study.tell(seen.number, 0.5)
    assert not other._is_ours(seen)


def test_attempts_made_at_once_count_once(processes: list[Slots]):
    one, other = processes
    # What happens when both look before either has written.
    for slots in (one, other):
        for slot in range(SIZE):
            slots.study.enqueue_trial({}, user_attrs={SLOT: slot})
    assert len(one.study.get_trials()) == 2 * SIZE
    assert states(one) == states(other) == [(slot, "WAITING") for slot in range(SIZE)]
    for slots in (one, other, one):
        slots.study.tell(claim(slots).number, 0.5)
    assert one.claim() is None
    assert one.are_finished()
    assert other.are_finished()


def test_more_trials_are_a_larger_size(processes: list[Slots]):
    one, other = processes
    one.fill(nothing)
    other.size = 5
    other.fill(nothing)
    assert [slot for slot, _ in states(other)] == [0, 1, 2, 3, 4]
    assert [slot for slot, _ in states(one)] == [0, 1, 2]


def test_an_interrupted_trial_is_free_again_and_again(processes: list[Slots]):
    one, other = processes
    for _ in range(MOST_DEATHS + 2):
        one.fill(nothing)
        trial = claim(one)
        assert trial.user_attrs[SLOT] == 0
        one.give_up(trial, INTERRUPTED)
    other.fill(nothing)
    assert states(other) == [(slot, "WAITING") for slot in range(SIZE)]


def test_a_trial_that_kills_its_process_is_given_up(processes: list[Slots]):
    one, other = processes
    for _ in range(MOST_DEATHS):
        one.fill(nothing)
        one.give_up(claim(one), DIED)
    one.fill(nothing)
    assert states(other) == [(0, "FAIL"), (1, "WAITING"), (2, "WAITING")]
    assert other.trials()[0].user_attrs["reason"] == "its process died"


def test_a_finished_trial_cannot_be_lost(processes: list[Slots]):
    one, other = processes
    one.fill(nothing)
    trial = claim(one)
    one.study.tell(trial.number, 0.5)
    other.give_up(trial, DIED)
    assert states(other)[0] == (0, "COMPLETE")


def test_a_point_is_prescribed_by_its_slot(processes: list[Slots]):
    one, _ = processes
    one.fill(lambda slot: {"x": 10 * slot})
    for expected in (0, 10, 20):
        trial = optuna.Trial(one.study, claim(one)._trial_id)
        assert trial.suggest_int("x", 0, 100) == expected


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(liveness.time, "monotonic", lambda: now[0])
    return now


def test_without_a_beat_for_a_lease_a_trial_is_lost(
    processes: list[Slots], tmp_path: Path, clock: list[float]
):
    one, other = processes
    one.fill(nothing)
    trial = claim(one)
    # A worker of another machine: no lock file tells of it here.
    one.storage.set_trial_user_attr(trial._trial_id, "worker", "elsewhere-1")
    watcher = Worker(other.storage, tmp_path / "workers", lease=60)
    other.release_lost(watcher)
    clock[0] += 50
    one.storage.set_trial_user_attr(trial._trial_id, "beat", 1)
    other.release_lost(watcher)
    clock[0] += 59
    other.release_lost(watcher)
    assert states(other)[0] == (0, "RUNNING")
    clock[0] += 2
    other.release_lost(watcher)
    other.fill(nothing)
    assert states(other)[0] == (0, "WAITING")
    assert one.study.get_trials()[trial.number].state == TrialState.FAIL


def test_on_the_same_machine_a_lock_file_tells_at_once(processes: list[Slots], tmp_path: Path):
    one, other = processes
    one.fill(nothing)
    trial = claim(one)
    owner, watcher = (
        Worker(slots.storage, tmp_path / "workers", lease=60) for slots in (one, other)
    )
    with owner.present():
        with owner.beating(trial._trial_id):
            other.release_lost(watcher)
            one.release_lost(owner)
        assert states(other)[0] == (0, "RUNNING")
        left_behind = owner._lock_file(owner.name)
    left_behind.touch()  # as a killed process leaves it: there, but not locked
    other.release_lost(watcher)
    assert one.study.get_trials()[trial.number].user_attrs["lost"] == DIED


def test_a_running_trial_beats(processes: list[Slots], tmp_path: Path):
    one, other = processes
    one.fill(nothing)
    trial = claim(one)
    worker = Worker(one.storage, tmp_path / "workers", lease=0.06)
    with worker.beating(trial._trial_id):
        for _ in range(500):
            if other.trials()[0].user_attrs.get("beat", 0) >= 2:
                break
            liveness.time.sleep(0.02)
    assert other.trials()[0].user_attrs["beat"] >= 2
