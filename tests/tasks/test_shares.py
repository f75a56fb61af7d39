"""One file in several parts."""

import json
import random
from pathlib import Path

import pytest

from mha_lab.tasks.files import FilesTask
from mha_lab.tasks.shares import keep_apart

ROWS = [([str(i), str(i % 7)], [str(i % 7)]) for i in range(101)]


def test_parts_have_their_shares_and_no_source_in_common():
    parts = keep_apart(ROWS, {"validation": 0.1, "test": 0.2})
    assert [len(parts[split]) for split in ("train", "validation", "test")] == [71, 10, 20]
    sources = [{tuple(source) for source, _ in rows} for rows in parts.values()]
    assert len(set.union(*sources)) == 101
    assert sum(map(len, sources)) == 101


def test_all_pairs_of_one_source_fall_to_one_part():
    rows = [([str(i % 11)], [str(i)]) for i in range(110)]
    parts = keep_apart(rows, {"test": 0.3})
    assert sorted(len(rows) for rows in parts.values()) == [30, 80]
    assert len({tuple(source) for source, _ in parts["test"]}) == 3


def test_the_order_of_the_lines_does_not_matter():
    shuffled = random.Random(0).sample(ROWS, len(ROWS))
    first, second = (keep_apart(rows, {"test": 0.1}) for rows in (ROWS, shuffled))
    assert sorted(first["test"]) == sorted(second["test"])


def test_the_smallest_file_has_a_row_for_each_part():
    parts = keep_apart(ROWS[:3], {"validation": 0.01, "test": 0.01})
    assert [len(rows) for rows in parts.values()] == [1, 1, 1]


@pytest.mark.parametrize(
    ("rows", "shares", "said"),
    [
        (ROWS, {"test": 0.0}, "between 0 and 1, got 0.0"),
        (ROWS, {"test": 1.5}, "between 0 and 1, got 1.5"),
        (ROWS, {"validation": 0.5, "test": 0.5}, "nothing to train on"),
        (ROWS[:2], {"validation": 0.1, "test": 0.1}, "2 different sources, too few"),
        (ROWS[:4], {"validation": 0.4, "test": 0.5}, "none to train on"),
    ],
)
def test_what_leaves_nothing_is_refused(rows, shares, said):
    with pytest.raises(ValueError, match=said):
        keep_apart(rows, shares)


def test_a_task_of_one_file(tmp_path: Path):
    file = tmp_path / "pairs.jsonl"
    rows = [{"source": source, "target": target} for source, target in ROWS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = FilesTask(str(file), 0.1, 0.2, cache_dir=str(tmp_path / "cache"))
    sizes = [len(task.fixed_split(split, 1000).source) for split in ("train", "validation", "test")]
    assert sizes == [71, 10, 20]
    assert task.training_size == 71
    assert len(task.vocabulary.symbols) == 101, "of the whole file: no token of it is unknown"
