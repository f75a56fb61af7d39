"""What is written, and what is refused."""

import json
import math
from types import SimpleNamespace

import pytest
import torch
from stored_maps import H, L, N, S, make_map, write_run
from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_BLOB_SEQUENCE
from torch.utils.tensorboard import SummaryWriter

from mha_lab import ImageTokens
from mha_lab.maps.attention_map import AttentionMap
from mha_lab.tensorboard.event_files import read_events
from mha_lab.tensorboard.reader import read_attention
from mha_lab.tensorboard.writer import write_attention


class Collector:
    """A file writer that keeps what it is given."""

    def __init__(self):
        self.added = []

    def add_summary(self, summary, global_step=None):
        self.added.append((summary, global_step))


def test_one_summary_with_a_tag_a_map():
    collector = Collector()
    write_attention(collector, [make_map("b"), make_map("a")], 11, prefix="val")
    [(summary, step)] = collector.added
    assert step == 11
    assert [value.tag for value in summary.value] == ["val/b", "val/a"]
    second = summary.value[1]
    assert second.metadata.plugin_data.plugin_name == "mha_lab_attention"
    assert second.metadata.data_class == DATA_CLASS_BLOB_SEQUENCE
    about = json.loads(second.metadata.plugin_data.content)
    assert about == {"version": 1, "name": "a", "place": 1}
    header = json.loads(second.tensor.string_val[0])
    assert header["shape"] == [N, H, L, S]


def test_the_root_module_has_the_bare_prefix_as_tag():
    collector = Collector()
    write_attention(collector, [make_map("")], 0)
    assert collector.added[0][0].value[0].tag == "attention"


def test_tags_hold_nothing_that_tensorboards_fast_loader_stumbles_over():
    collector = Collector()
    write_attention(collector, [make_map('a"b\\c\n')], 0)
    [value] = collector.added[0][0].value
    assert value.tag == "attention/a_b_c_"
    assert json.loads(value.metadata.plugin_data.content)["name"] == 'a"b\\c\n'


def test_no_maps_write_nothing():
    collector = Collector()
    write_attention(collector, [], 0)
    assert collector.added == []


def test_scores_are_the_maps_own_or_those_given(tmp_path):
    one = make_map(kind="masked", shape=(N, H, L, L))
    write_run(tmp_path / "own", {0: [one]})
    own = read_attention(tmp_path / "own")[0].scores
    for name, values in one.scores().items():
        torch.testing.assert_close(torch.tensor(own[name]), values, rtol=1e-5, atol=1e-6)
    known = {one.name: {"entropy": torch.tensor([1.0, 2.0, math.nan])}}
    write_run(tmp_path / "given", {0: [one]}, scores=known)
    given = read_attention(tmp_path / "given")[0].scores
    assert list(given) == ["entropy"]
    assert given["entropy"].tolist()[:2] == [1, 2]
    assert math.isnan(given["entropy"][2])


def test_all_that_a_map_knows_of_itself_is_written(tmp_path):
    image = ImageTokens(torch.rand(3, 4, 4), grid=(2, 2), first=1)
    one = AttentionMap(
        "a",
        torch.rand(1, 4, L, 5),
        "cross",
        size=(2 * L, 5),
        key_heads=(0, 0, 1, 1),
        pool="max",
        images=(image,),
        measure="value-weighted",
        whole_scores={},
    )
    write_run(tmp_path, {0: [one]})
    header = read_attention(tmp_path)[0].header
    assert (header.pool, header.key_heads) == ("max", [0, 0, 1, 1])
    assert (header.measure, header.images) == ("value-weighted", [image.about()])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_any_floating_type(tmp_path, dtype):
    one = make_map()
    given = SimpleNamespace(**vars(one) | {"weights": one.weights.to(dtype).requires_grad_()})
    write_run(tmp_path, {0: [given]})
    back = torch.tensor(read_attention(tmp_path)[0].weights)
    torch.testing.assert_close(back, one.weights.to(dtype).float(), atol=5e-5, rtol=0)


def test_a_diverged_model_can_be_written(tmp_path):
    one = make_map()
    one.weights[0, 1] = math.nan
    write_run(tmp_path, {0: [one]})
    back = torch.tensor(read_attention(tmp_path)[0].weights)
    assert torch.equal(back.isnan(), one.weights.isnan())


def test_size_at_the_defaults_of_the_callback(tmp_path):
    """Six layers, eight heads, 64 tokens: 200 steps below 100 MB, an event below 256 KiB."""
    maps = [
        make_map(f"layers.{i}.attn", shape=(1, 8, 64, 64), kind="self", seed=i) for i in range(6)
    ]
    file = write_run(tmp_path, {0: maps})
    assert max(event.ByteSize() for event in read_events(file)) < 256 * 1024
    assert 200 * file.stat().st_size < 60e6


def test_maps_that_do_not_fit_are_refused():
    writer = Collector()
    one = make_map("layer")
    with pytest.raises(ValueError, match=r"maps holds 'layer' twice"):
        write_attention(writer, [one, one], 0)
    flat = SimpleNamespace(**vars(one) | {"weights": one.weights[0]})
    with pytest.raises(ValueError, match=r"shape \(3, 5, 7\); they must be \(N, H, L, S\)"):
        write_attention(writer, [flat], 0)
    odd = SimpleNamespace(**vars(one) | {"kind": "sideways"})
    with pytest.raises(ValueError, match="kind 'sideways'; it must be one of"):
        write_attention(writer, [odd], 0)
    short = SimpleNamespace(**vars(one) | {"key_tokens": [["a"] * S, ["a"]]})
    with pytest.raises(ValueError, match=r"key_tokens of lengths \[7, 1\].* need 2 lists of 7"):
        write_attention(writer, [short], 0)
    assert writer.added == []


def test_a_writer_that_cannot_write_is_refused():
    with pytest.raises(TypeError, match=r"writer must be a SummaryWriter.*not a dict"):
        write_attention({}, [make_map()], 0)


def test_a_step_that_is_no_whole_number_is_refused(tmp_path):
    with SummaryWriter(str(tmp_path)) as writer, pytest.raises(TypeError):
        write_attention(writer, [make_map()], 1.5)


def test_tensorboard_x(tmp_path):
    library = pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    one = make_map()
    with library.SummaryWriter(str(tmp_path)) as writer:
        write_attention(writer, [one], 3)
    [back] = read_attention(tmp_path)
    torch.testing.assert_close(torch.tensor(back.weights), one.weights, atol=5e-5, rtol=0)
