"""read_attention against restarts, and linked folders, as TensorBoard shows them."""

import os

import pytest
import torch
from attention_app import App
from browser_tab import ask, tensorboard
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.data.provider import BlobSequenceDatum
from torch.utils.tensorboard import SummaryWriter

from mha_lab import AttentionMap, read_attention
from mha_lab.tensorboard.event_files import find_event_files
from mha_lab.tensorboard.restarts import Restart, restarts_of, still_valid
from mha_lab.tensorboard.writer import write_attention


def write(folder, *steps, name="a", suffix="", **options):
    writer = SummaryWriter(str(folder), filename_suffix=suffix, **options)
    for step in steps:
        write_attention(writer, [AttentionMap(name, torch.full((1, 1, 2, 2), step / 100))], step)
    writer.close()


def steps_of(folder, **options):
    found = read_attention(folder, **options)
    for one in found:
        assert float(one.weights[0, 0, 0, 0]) == pytest.approx(one.step / 100)
    return [one.step for one in found]


WITH_AND_WITHOUT = pytest.mark.parametrize(
    ("purge", "expected"), [(15, [0, 10, 25, 40]), (None, [0, 10, 20, 25, 40])]
)


def restarted(folder, purge):
    """A run of steps 0 to 30, taken up again at 25; and one that nothing happened to."""
    write(folder / "taken_up", 0, 10, 20, 30, suffix=".1")
    write(folder / "taken_up", 25, 40, suffix=".2", purge_step=purge)
    write(folder / "plain", 0, 10, 20)


@WITH_AND_WITHOUT
def test_what_a_restart_left_behind_is_neither_read_nor_in_the_tab(tmp_path, purge, expected):
    restarted(tmp_path, purge)
    assert steps_of(tmp_path, run="taken_up") == expected
    app = App(tmp_path)
    for run, steps in (("taken_up", expected), ("plain", [0, 10, 20])):
        assert app.get("/maps", run=run).json["maps"][0]["steps"] == steps


def test_of_a_step_written_twice_the_later_map_is_shown(tmp_path):
    write(tmp_path, 10, 20, suffix=".1")
    with SummaryWriter(str(tmp_path), filename_suffix=".2", purge_step=15) as writer:
        write_attention(writer, [AttentionMap("a", torch.full((1, 1, 2, 2), 0.5))], 20)
    app = App(tmp_path)
    assert app.get("/maps", run=".").json["maps"][0]["steps"] == [10, 20]
    answer = app.get("/map", run=".", tag="attention/a", step=20, sample=0)
    assert b'"scale": 0.5' in answer.data
    assert read_attention(tmp_path, step=20)[0].weights.max() == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("loader", ["--load_fast=true", "--load_fast=false"])
@WITH_AND_WITHOUT
def test_both_loaders_of_tensorboard_show_the_same(tmp_path, loader, purge, expected):
    restarted(tmp_path, purge)
    with tensorboard(tmp_path, loader) as address:
        for run, steps in (("taken_up", expected), ("plain", [0, 10, 20])):
            answer = ask(
                address,
                f"maps?run={run}",
                until=lambda found, last=steps[-1]: found["maps"][0]["steps"][-1] == last,
            )
            assert answer["maps"][0]["steps"] == steps


def datum(step, time):
    return BlobSequenceDatum(step=step, wall_time=time, values=())


def test_what_the_fast_loader_keeps_of_a_restart(tmp_path):
    """It hands on 20, which the restart at 15 left behind: only the event files know of it."""
    restarted(tmp_path, 15)
    [restart] = restarts_of(tmp_path / "taken_up")
    assert restart.step == 15
    times = {0: -4, 10: -3, 20: -2, 25: 1, 40: 2}
    data = [datum(step, restart.wall_time + t) for step, t in times.items()]
    assert list(still_valid(data, [restart])) == [0, 10, 25, 40]
    assert list(still_valid(data, [])) == [0, 10, 20, 25, 40]


def test_two_restarts_void_each_what_came_before_it():
    data = [datum(step, time) for time, step in [(1, 0), (2, 9), (4, 5), (6, 6), (8, 7)]]
    assert list(still_valid(data, [Restart(3, 3.0), Restart(6, 7.0)])) == [0, 5, 7]


def test_a_run_without_files_has_no_restarts(tmp_path):
    assert restarts_of(tmp_path / "gone") == []
    write(tmp_path, 0, 1)
    assert restarts_of(tmp_path) == []


def test_a_purge_reaches_every_map_of_its_run_and_no_other_run(tmp_path):
    write(tmp_path / "one", 0, 10, 20, suffix=".1")
    write(tmp_path / "one", 20, name="b", suffix=".2")
    write(tmp_path / "two", 0, 10, 20)
    write(tmp_path / "one", 30, suffix=".3", purge_step=10)
    assert steps_of(tmp_path, run="one") == [0, 30]
    assert steps_of(tmp_path, run="two") == [0, 10, 20]


def test_the_first_start_of_a_run_purges_nothing(tmp_path):
    writer = SummaryWriter(str(tmp_path))
    writer._get_file_writer().add_event(Event(session_log=SessionLog(status=SessionLog.START)))
    writer.close()
    write(tmp_path, 3, 7, suffix=".2")
    assert steps_of(tmp_path) == [3, 7]


def test_links_count_under_their_own_names(tmp_path):
    for name, step in (("runA", 1), ("runB", 2)):
        write(tmp_path / "exp" / name, step)
    for link in ("latest", "a_best"):
        os.symlink("runB", tmp_path / "exp" / link)
    os.symlink("..", tmp_path / "exp" / "loop")
    os.symlink("gone", tmp_path / "exp" / "broken")
    runs = {one.run for one in read_attention(tmp_path)}
    assert runs == {"exp/runA", "exp/runB", "exp/latest", "exp/a_best"}
    assert steps_of(tmp_path, run="exp/runB") == steps_of(tmp_path, run="exp/latest") == [2]
    assert len(find_event_files(tmp_path)) == 4
