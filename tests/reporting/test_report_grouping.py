import json
from dataclasses import replace

import pytest
from synthetic_runs import write_failed, write_run

from mha_lab.errors import UserError
from mha_lab.reporting.cautions import warnings
from mha_lab.reporting.comparison import Comparison
from mha_lab.reporting.differences import differing_between, find_holes
from mha_lab.reporting.grouping import check_by, default_by, group_runs
from mha_lab.reporting.reading import read_runs
from mha_lab.reporting.sections import main_table


def make(tmp_path, *choices):
    return read_runs([write_run(tmp_path / str(i), **one) for i, one in enumerate(choices)])


def test_groups_are_sorted_by_value_numbers_before_words(tmp_path):
    runs = make(tmp_path, *({"lr": lr, "seed": s} for lr in (0.01, 0.002, 0.1) for s in (0, 1)))
    groups = group_runs(runs, ["optimizer.lr"])
    assert [group.label for group in groups] == ["lr 0.002", "lr 0.01", "lr 0.1"]
    assert [len(group.runs) for group in groups] == [2, 2, 2]


def test_labels_can_be_read_without_their_keys(tmp_path):
    runs = make(tmp_path, {"attention": "builtin", "position": "none", "lr": 0.1})
    (group,) = group_runs(runs, ["attention", "position", "optimizer.lr"])
    assert group.label == "builtin · no position · lr 0.1"
    assert group.key == ("builtin", "none", "0.1")


def test_by_an_unknown_key_names_the_nearest(tmp_path):
    runs = make(tmp_path, {})
    check_by(["attention", "model.embed_dim", "seed"], runs)
    for key, nearest in (
        ("atention", "attention"), ("lr", "optimizer.lr"), ("model.embd_dim", "model.embed_dim"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=f"did you mean '{nearest}'"):
            check_by([key], runs)
    with pytest.raises(UserError, match="twice"):
        check_by(["attention", "attention"], runs)


@pytest.mark.parametrize(
    ("choices", "by"),
    [
        ([{"attention": a, "seed": s} for a in ("builtin", "custom") for s in (0, 1)],
         ("attention",)),
        ([{"attention": "custom"}, {"attention": "masked_decoder", "model": "decoder"}],
         ("attention",)),  # the model follows from the attention
        ([{"task": t, "position": p} for t in ("copy", "sort") for p in ("none", "learned")],
         ("task", "position")),
        ([{"lr": lr, "seed": s} for lr in (0.1, 0.2) for s in (0, 1)], ("optimizer.lr",)),
        ([{"seed": 0}, {"seed": 1}], ("attention",)),
        ([{"lr": i, "model__embed_dim": i, "model__dropout": i} for i in (1, 2, 3)],
         ("attention",)),  # a search, not a grid
    ],
)  # fmt: skip
def test_without_by_what_differs_is_compared(tmp_path, choices, by):
    assert default_by(make(tmp_path, *choices)) == by


def test_what_differs_inside_a_group_is_noticed(tmp_path):
    runs = make(tmp_path, {"lr": 0.1, "seed": 0}, {"lr": 0.02, "seed": 1}, {"lr": 0.1, "seed": 2})
    (group,) = group_runs(runs, ["attention"])
    assert group.mixed == {"optimizer.lr": ["0.02", "0.1"]}


def test_what_differs_between_groups(tmp_path):
    runs = make(
        tmp_path,
        {"attention": "custom", "lr": 0.1},
        {"attention": "masked_decoder", "model": "decoder", "lr": 0.1},
    )
    found = differing_between(group_runs(runs, ["attention"]))
    assert found == {"model": ["encoder_decoder", "decoder"], "model.num_layers": ["1", "2"]}


def test_holes_in_the_grid(tmp_path):
    runs = make(
        tmp_path,
        *({"attention": "builtin", "position": "none", "seed": seed} for seed in (0, 1, 2)),
        *({"attention": "custom", "position": "learned", "seed": seed} for seed in (0, 2, 2)),
    )
    holes = find_holes(group_runs(runs, ["attention", "position"]))
    assert [(group.key, seeds) for group, seeds in holes.seeds] == [(("custom", "learned"), [1])]
    assert holes.combinations == [("builtin", "learned"), ("custom", "none")]
    assert [(group.key, seeds) for group, seeds in holes.repeated] == [(("custom", "learned"), [2])]


def test_a_failed_run_is_no_hole_and_does_not_count(tmp_path):
    folders = [write_run(tmp_path / "0", seed=0), write_failed(tmp_path / "1", seed=1)]
    (group,) = group_runs(read_runs(folders), ["attention"])
    assert (len(group.runs), len(group.complete)) == (2, 1)
    assert find_holes([group]).seeds == []


def test_a_failed_run_of_which_too_little_is_known_is_in_no_group(tmp_path):
    folder = tmp_path / "0"
    folder.mkdir()
    (folder / "summary.json").write_text('{"status": "failed", "overrides": ["seed=3"]}')
    assert group_runs(read_runs([folder]), ["attention"]) == []


def test_a_number_that_was_drawn_is_shown_with_four_digits(tmp_path):
    runs = make(tmp_path, {"lr": 0.024180549877059015}, {"lr": 0.003}, {"lr": 123456})
    groups = group_runs(runs, ["optimizer.lr"])
    assert [group.shown for group in groups] == [["0.003"], ["0.02418"], ["123456"]]
    assert groups[1].label == "lr 0.02418"
    assert groups[1].key == ("0.024180549877059015",), "what is computed with keeps all digits"


def test_attentions_of_several_models_say_which(tmp_path):
    runs = make(
        tmp_path,
        {"attention": "custom"},
        {"attention": "masked_decoder", "model": "decoder"},
    )
    comparison = Comparison(runs, ("attention",), "test/sequence_accuracy", tmp_path)
    table = main_table(comparison)
    assert table.columns[:3] == ["attention", "model", "n"]
    assert [row[:3] for row in table.rows] == [
        ["custom", "encoder_decoder", "1"],
        ["masked_decoder", "decoder", "1"],
    ]
    (sentence,) = [s for s in warnings(comparison) if "model" in s]
    assert "a difference may be the model's" in sentence
    for by in (("attention", "model"), ("position",)):  # said already; not about attention
        told = Comparison(runs, by, "test/sequence_accuracy", tmp_path)
        assert not told.mixes_models
    alone = Comparison(runs[:1], ("attention",), "test/sequence_accuracy", tmp_path)
    assert main_table(alone).columns[:2] == ["attention", "n"]


def test_what_an_attention_brings_is_told_beside_its_name(tmp_path):
    folder = write_run(tmp_path / "0", attention="composed", position="none")
    summary = json.loads((folder / "summary.json").read_text())
    summary |= {"attention_parts": "entmax15, window", "position_of_attention": "a window"}
    (folder / "summary.json").write_text(json.dumps(summary))
    (group,) = group_runs(read_runs([folder]), ["attention", "position"])

    assert group.shown == ["composed (entmax15, window)", "none (own: a window)"]
    assert group.label == "composed (entmax15, window) · own: a window"
    assert group.key == ("composed", "none")


def test_attentions_of_other_parts_are_told_apart_by_themselves(tmp_path):
    runs = make(tmp_path, {"attention": "composed", "seed": 3}, {"attention": "custom", "seed": 5})
    other = replace(runs[0], values=runs[0].values | {"attention/weighting": "sigmoid"})
    runs = [replace(runs[0], values=runs[0].values | {"attention/weighting": "softmax"}), other,
            replace(runs[1], status="failed")]  # fmt: skip

    assert default_by(runs) == ("attention", "attention/weighting")
    groups = group_runs(runs, default_by(runs))
    assert [group.label for group in groups] == [
        "composed · sigmoid",
        "composed · softmax",
        "custom",
    ]
