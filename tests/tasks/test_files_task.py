"""The files task: how text is cut, whose vocabulary it is, what is warned of."""

import json
import warnings
from pathlib import Path

import pytest
import torch

from mha_lab.tasks.files import FilesTask
from mha_lab.tasks.vocabulary import Vocabulary


@pytest.fixture
def make(tmp_path: Path):
    """Make a task from rows of (source, target); validation and test differ from training."""

    def from_rows(train, validation=(("b", "b"),), test=(("b b", "b"),), **options) -> FilesTask:
        files = {}
        for split, rows in {"train": train, "validation": validation, "test": test}.items():
            file = tmp_path / f"{split}.jsonl"
            file.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in rows))
            files[split] = str(file)
        return FilesTask(**files, cache_dir=str(tmp_path / "cache"), **options)

    return from_rows


def test_rows_by_hand(make) -> None:
    task = make([("a b", "b"), ("b", "c b a")])
    assert task.vocabulary == Vocabulary(["a", "b", "c"])
    source, target = task.fixed_split("train", 2)
    assert source.tolist() == [[5, 6, 2], [6, 2, 0]]
    assert target.tolist() == [[6, 2, 0, 0], [7, 6, 5, 2]]
    assert (task.max_source_length, task.max_target_length, task.training_size) == (3, 4, 2)


def test_longest_counts_every_file(make) -> None:
    task = make([("a b", "b")], validation=[("b b b", "a")], test=[("b", "a a b b")])
    assert (task.max_source_length, task.max_target_length) == (4, 5)


def test_a_space_anywhere_in_training_makes_words(make) -> None:
    task = make([("cat", "dog"), ("cat dog", "ox")], validation=[("ox", "cat")])
    assert task.vocabulary == Vocabulary(["cat", "dog", "ox"])
    assert task.fixed_split("validation", 1).source.tolist() == [[7, 2]]


def test_no_space_in_training_makes_characters(make) -> None:
    task = make([("cat", "tac")], validation=[("act", "a c")], test=[(" tt ", "t")])
    assert task.vocabulary == Vocabulary(["a", "c", "t"])
    assert task.fixed_split("validation", 1).target.tolist() == [[5, 6, 2]]
    assert task.fixed_split("test", 1).source.tolist() == [[7, 7, 2]]


def test_lists_are_tokens_as_they_are(make) -> None:
    task = make([(["new york", "x"], "ab")], validation=[(["x"], "b")], test=[("a", ["new york"])])
    assert task.vocabulary == Vocabulary(["a", "b", "new york", "x"])
    assert task.fixed_split("test", 1).target.tolist() == [[7, 2]]


def test_unknown_tokens_are_counted_once_a_file(make) -> None:
    rows = [("a x", "y"), ("x x", "a"), ("y b", "b z")]
    with pytest.warns(UserWarning, match="<unk>") as caught:
        task = make([("a b", "b a")], validation=rows, test=[("b b", "a a")])
    (warning,) = caught
    said = str(warning.message)
    assert "validation.jsonl: not in the vocabulary" in said
    assert "'x', 'y', 'z' (6 times in all)" in said
    assert task.fixed_split("validation", 3).source.tolist() == [[5, 4, 2], [4, 4, 2], [4, 6, 2]]


def test_sources_known_from_training_are_counted(make) -> None:
    with pytest.warns(UserWarning, match=r"test.jsonl: 2 of 3 sources are in the training file"):
        make([("a b", "b"), ("b", "a")], test=[("b", "b"), ("a b", "a"), ("b b", "b")],
             validation=[("a a", "a")])  # fmt: skip


def test_no_warning_without_a_reason(make) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make([("a b", "b")])


def test_vocabulary_of_an_earlier_run(make) -> None:
    known = Vocabulary(["z", "b", "a"])
    with pytest.warns(UserWarning, match=r"<unk>: 'c' \(1 times in all\)"):
        task = make([("a b c", "b")], vocabulary=known)
    assert task.vocabulary is known
    assert task.fixed_split("train", 1).source.tolist() == [[7, 6, 4, 2]]


def test_files_of_validation_and_test_are_used_whole(make) -> None:
    rows = [(f"b {'b ' * n}", "b") for n in range(13)]
    task = make([("a b", "b"), ("b a", "a"), ("a a", "a")], validation=rows, test=rows)
    assert len(task.fixed_split("validation", 5).source) == 13
    assert len(task.fixed_split("train", 2).source) == 2


def test_draw_takes_rows_with_their_targets(make) -> None:
    task = make([("a b", "b"), ("c c", "a"), ("c b", "c")])
    source, target = task.draw(101, torch.Generator().manual_seed(0))
    train = task.fixed_split("train", 3)
    wanted = dict(zip(map(tuple, train.source.tolist()), train.target.tolist(), strict=True))
    assert {tuple(row) for row in source.tolist()} == set(wanted)
    assert all(wanted[tuple(s)] == t for s, t in zip(source.tolist(), target.tolist(), strict=True))


@pytest.mark.parametrize("missing", ["train", "validation", "test"])
def test_a_file_that_is_not_named(missing: str) -> None:
    files = {"train": "a.jsonl", "validation": "b.jsonl", "test": "c.jsonl"}
    del files[missing]
    with pytest.raises(ValueError, match=rf"^{missing} is missing: .* task\.test=FILE"):
        FilesTask(**files)
