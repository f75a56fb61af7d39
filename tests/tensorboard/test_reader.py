"""The same maps come back, from any folder and from damaged files."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from stored_maps import make_map, write_run

from mha_lab import AttentionMap, read_attention
from mha_lab.tensorboard.event_files import find_event_files, read_events
from mha_lab.view.header import DamagedMapError

ENCODER, DECODER = make_map("encoder", kind="self", shape=(2, 3, 5, 5)), make_map("decoder", seed=1)


def test_the_same_maps_in_order(tmp_path):
    write_run(tmp_path, {0: [ENCODER, DECODER], 50: [DECODER, ENCODER]})
    maps = read_attention(tmp_path)
    assert [(one.step, one.name) for one in maps] == [
        (0, "encoder"),
        (0, "decoder"),
        (50, "decoder"),
        (50, "encoder"),
    ]
    for one in maps:
        original = {"encoder": ENCODER, "decoder": DECODER}[one.name]
        assert (one.kind, one.query_tokens) == (original.kind, original.query_tokens)
        assert one.key_tokens == original.key_tokens
        assert (one.run, one.tag) == (".", f"attention/{one.name}")
        assert one.weights.dtype == np.float32
        assert one.shape == one.weights.shape == original.weights.shape
        torch.testing.assert_close(torch.tensor(one.weights), original.weights, atol=2e-5, rtol=0)


def test_large_maps_within_the_documented_precision(tmp_path):
    large = make_map(shape=(1, 3, 83, 89))
    write_run(tmp_path, {0: [large]})
    back = torch.tensor(read_attention(tmp_path)[0].weights)
    torch.testing.assert_close(back, large.weights, atol=0.004, rtol=0)
    assert (back - large.weights).abs().max() > 1e-4  # one byte a weight, not two


def test_blocked_positions_are_exactly_zero(tmp_path):
    masked = make_map(kind="masked", shape=(2, 3, 7, 7))
    write_run(tmp_path, {0: [masked]})
    back = torch.tensor(read_attention(tmp_path)[0].weights)
    assert torch.equal(back == 0, masked.weights == 0)


def test_a_tree_of_runs_and_the_ways_to_choose(tmp_path):
    write_run(tmp_path / "copy" / "one", {0: [ENCODER], 7: [ENCODER]})
    write_run(tmp_path / "copy" / "two", {0: [ENCODER, DECODER]})
    assert {one.run for one in read_attention(tmp_path)} == {"copy/one", "copy/two"}
    assert len(read_attention(tmp_path, run="*/one")) == 2
    assert len(read_attention(tmp_path, name="dec*")) == 1
    assert len(read_attention(tmp_path, step=7)) == 1
    assert len(read_attention(str(tmp_path / "copy" / "two"))) == 2
    [file] = (tmp_path / "copy" / "two").iterdir()
    assert len(read_attention(file)) == 2


def test_a_resumed_run_counts_the_later_writing(tmp_path):
    write_run(tmp_path, {0: [ENCODER], 5: [ENCODER]}).rename(tmp_path / "events.out.tfevents.1")
    later = make_map("encoder", kind="self", shape=(2, 3, 5, 5), seed=9)
    write_run(tmp_path, {5: [later], 9: [later]}).rename(tmp_path / "events.out.tfevents.2")
    maps = read_attention(tmp_path)
    assert [one.step for one in maps] == [0, 5, 9]
    torch.testing.assert_close(torch.tensor(maps[1].weights), later.weights, atol=2e-5, rtol=0)


def test_a_file_that_was_cut_anywhere_is_read_as_far_as_it_is_whole(tmp_path):
    file = write_run(tmp_path, {step: [ENCODER] for step in range(5)})
    whole = file.read_bytes()
    counts = []
    for length in range(0, len(whole) + 1, 37):
        file.write_bytes(whole[:length])
        try:
            counts.append(len(read_attention(tmp_path)))
        except ValueError:
            counts.append(0)
    assert counts == sorted(counts)
    assert set(counts) == {0, 1, 2, 3, 4, 5} or set(counts) == {0, 1, 2, 3, 4}


def test_a_damaged_record_ends_its_file_and_no_other(tmp_path):
    file = write_run(tmp_path / "bad", {step: [ENCODER] for step in range(5)})
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    file.write_bytes(content)
    write_run(tmp_path / "good", {0: [DECODER]})
    maps = read_attention(tmp_path)
    assert {one.run for one in maps} == {"bad", "good"}
    assert 1 <= sum(one.run == "bad" for one in maps) < 5


def test_damaged_weights_are_noticed_when_they_are_asked_for(tmp_path):
    file = write_run(tmp_path, {0: [ENCODER]})
    packed = read_attention(tmp_path)[0].packed
    file.write_bytes(file.read_bytes().replace(packed[4:20], b"\0" * 16))
    [one] = read_attention(tmp_path)
    assert one.name == "encoder"
    with pytest.raises(DamagedMapError):
        _ = one.weights


def test_other_events_are_passed_over(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 1.0, 0)
        writer.add_text("words", "text", 0)
    write_run(tmp_path, {0: [ENCODER]})
    assert len(read_attention(tmp_path)) == 1


def test_a_link_that_leads_back_up_is_followed_once(tmp_path):
    write_run(tmp_path / "run", {0: [ENCODER]})
    (tmp_path / "run" / "up").symlink_to(tmp_path)
    assert len(find_event_files(tmp_path)) == 1


def test_friendly_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere' does not exist"):
        read_attention(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="holds no TensorBoard event files"):
        read_attention(tmp_path)
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 1.0, 0)
    with pytest.raises(ValueError, match="hold no attention maps; train with AttentionMapLogger"):
        read_attention(tmp_path)
    write_run(tmp_path, {step: [ENCODER] for step in range(12)})
    with pytest.raises(ValueError, match=r"name='nothing'.*'encoder'.* 0 to 11 \(12 of them\)"):
        read_attention(tmp_path, name="nothing")


def test_records_are_those_of_tensorboards_own_reader(tmp_path):
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    file = write_run(tmp_path, {0: [ENCODER], 1: [DECODER]})
    assert list(read_events(file)) == list(LegacyEventFileLoader(str(file)).Load())


@pytest.mark.parametrize("module", ["reader", "plugin"])
def test_torch_is_not_imported(module):
    code = f"import sys, mha_lab.tensorboard.{module}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_stored_map_is_drawn_and_saved_as_one_that_was_recorded(tmp_path):
    weights = torch.rand(2, 3, 5, 7).softmax(-1)
    tokens = ([list("abcde")] * 2, [list("fghijkl")] * 2)
    one = AttentionMap("cross", weights, "cross", samples=(4, 7), heads=(0, 2, 5), pool="max")
    one = replace(one.with_tokens(*tokens), size=(10, 14), whole_scores={"entropy": torch.ones(3)})
    rolled = AttentionMap("x", weights, measure="rollout", heads=None)
    write_run(tmp_path, {3: [one, rolled]})
    back, other = (stored.as_map() for stored in read_attention(tmp_path))
    torch.testing.assert_close(back.weights, weights, rtol=0, atol=2e-5)
    for name in ("name", "kind", "query_tokens", "key_tokens", "samples", "heads", "size", "pool"):
        assert getattr(back, name) == getattr(one, name)
    assert back.scores()["entropy"].tolist() == [1, 1, 1]
    assert back.save(tmp_path / "x.png").exists()
    assert (other.measure, other.heads) == ("rollout", None)
    assert set(other.scores()) == set(rolled.scores())


def test_one_run_is_shown_by_the_name_of_its_folder(tmp_path):
    write_run(tmp_path / "mine", {0: [make_map()]})
    maps = read_attention(tmp_path / "mine")
    assert {part.run for part in maps.show().parts} == {"mine"}
    assert {part.run for part in read_attention(tmp_path).show().parts} == {"mine"}
    with pytest.raises(TypeError, match="run=3 must be a str with wildcards"):
        read_attention(tmp_path, run=3)
