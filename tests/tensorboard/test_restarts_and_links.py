"""read_attention against restarts, and linked folders, as TensorBoard shows them."""

import os

import pytest
import torch
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from torch.utils.tensorboard import SummaryWriter

from mha_lab import AttentionMap, read_attention
from mha_lab.tensorboard.event_files import find_event_files
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


def test_a_restart_with_purge_abandons_what_came_after(tmp_path):
    write(tmp_path, 0, 10, 20, 30, suffix=".1")
    write(tmp_path, 25, 40, suffix=".2", purge_step=15)
    assert steps_of(tmp_path) == [0, 10, 25, 40]


def test_a_restart_without_purge_abandons_what_it_writes_before(tmp_path):
    write(tmp_path, 0, 10, 20, 30, suffix=".1")
    write(tmp_path, 25, 40, suffix=".2")
    assert steps_of(tmp_path) == [0, 10, 20, 25, 40]  # TensorBoard's fast loader shows these


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
