import numpy as np
import pytest
import torch
from synthetic_runs import write_run
from torch.utils.tensorboard import SummaryWriter

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.reporting import drawing
from mha_lab.reporting.best_maps import best_maps, clearest_head, read_best
from mha_lab.reporting.grouping import group_runs
from mha_lab.reporting.map_figures import draw_maps
from mha_lab.reporting.measures import of_summary
from mha_lab.reporting.reading import read_runs
from mha_lab.tensorboard.writer import write_attention

ACCURACY = of_summary("test/sequence_accuracy")


def blurred(length, source, sharpness, heads=3, sharp_head=1):
    """One sample (1, H, L, S); one head looks at the diagonal, the more the sharper."""
    scores = torch.zeros(1, heads, length, source)
    scores[:, sharp_head] = sharpness * torch.eye(length, source)
    return scores.softmax(-1)


def write_maps(folder, steps):
    tokens = ["<bos>", "7", "3", "5", "<pad>"]
    source = ["7", "3", "5", "<eos>", "<pad>", "<pad>", "<pad>"]
    writer = SummaryWriter(str(folder))
    for step in steps:
        maps = [
            AttentionMap("encoder.0", blurred(7, 7, 1, sharp_head=0), "self", [source], [source]),
            AttentionMap("encoder.1", blurred(7, 7, step), "self", [source], [source]),
            AttentionMap("cross", blurred(5, 7, step, sharp_head=2), "cross", [tokens], [source]),
        ]
        write_attention(writer, maps, step)
    writer.close()


def test_the_clearest_head_is_that_with_the_largest_weights():
    weights = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]], [[1, 0], [0.5, 0.5]]])
    head, chosen = clearest_head(weights.astype(np.float32))
    assert head == 1
    np.testing.assert_allclose(chosen, weights[1], rtol=1e-6)


def test_the_last_layer_of_each_kind_at_the_nearest_step_without_padding(tmp_path):
    write_maps(tmp_path, (10, 20, 30))
    step, maps = read_best(tmp_path, 22)
    assert step == 20
    assert list(maps) == ["self", "cross"]
    assert (maps["self"].name, maps["self"].head) == ("encoder.1", "head 1")
    assert maps["cross"].head == "head 2"
    assert maps["cross"].query == ["<bos>", "7", "3", "5"]
    assert maps["cross"].key == ["7", "3", "5", "<eos>"]
    assert maps["cross"].weights.shape == (4, 4)
    assert maps["cross"].weights[1, 1] == pytest.approx(1, abs=1e-4)


def test_the_best_run_and_the_step_of_the_lowest_loss_are_shown(tmp_path):
    curve = [(10, 0.9, 0.2), (20, 0.1, 0.9), (30, 0.4, 0.8)]
    folders = [
        write_run(tmp_path / "0", accuracy=0.8, seed=0, curve=curve),
        write_run(tmp_path / "1", accuracy=0.9, seed=1, curve=curve),
        write_run(tmp_path / "2", attention="builtin", curve=curve),
    ]
    write_maps(folders[1], (10, 20, 30))
    with drawing.style():
        found = best_maps(group_runs(read_runs(folders), ["attention"]), ACCURACY)
        (picture,) = draw_maps(found)
    without, shown = found
    assert (without.maps, without.missing) == (None, "their runs kept no TensorBoard events")
    assert (shown.run.folder, shown.step) == (folders[1], 20)
    assert "the weights" not in picture.caption
    assert "(20)" in picture.caption
    assert "head 2" in picture.svg


def test_runs_without_attention_or_with_damaged_events_say_so(tmp_path):
    folders = [write_run(tmp_path / "0"), write_run(tmp_path / "1", attention="builtin")]
    SummaryWriter(str(folders[0])).close()
    write_maps(folders[1], (10,))
    (events,) = folders[1].glob("*tfevents*")
    events.write_bytes(events.read_bytes()[:80])
    found = best_maps(group_runs(read_runs(folders), ["attention"]), ACCURACY)
    assert [one.missing for one in found] == ["no attention was recorded in their runs"] * 2


def test_of_many_groups_the_best_are_shown(tmp_path):
    folders = [write_run(tmp_path / str(i), lr=i, accuracy=0.5 + 0.01 * i) for i in range(14)]
    found = best_maps(group_runs(read_runs(folders), ["optimizer.lr"]), ACCURACY)
    assert [one.group.key[0] for one in found] == [str(i) for i in range(2, 14)]


def test_the_report_links_a_page_with_all_maps(tmp_path, monkeypatch):
    from mha_lab.cli import run

    for attention in ("builtin", "custom"):
        write_maps(write_run(tmp_path / "runs" / attention, attention=attention), (10,))
    monkeypatch.chdir(tmp_path)
    assert run(["report", "runs", "out=report"]) == 0
    assert '<a href="attention_maps.html">' in (tmp_path / "report/index.html").read_text()
    assert "(attention_maps.html)" in (tmp_path / "report/report.md").read_text()
    page = (tmp_path / "report/attention_maps.html").read_text()
    assert '"vs":"custom"' in page
    assert "encoder.1" in page


def test_of_many_groups_the_page_shows_those_that_stand_side_by_side(tmp_path, monkeypatch):
    from mha_lab.cli import run

    for lr in range(5):
        write_maps(write_run(tmp_path / "runs" / str(lr), lr=lr), (10,))
    monkeypatch.chdir(tmp_path)
    assert run(["report", "runs", "by=optimizer.lr", "out=report"]) == 0
    said = "Every layer and head of the first 4 of these runs, to look around in."
    assert said in (tmp_path / "report/report.md").read_text()
