"""What is read is checked on reading: sizes, characters and nesting of any kind."""

import json
from pathlib import Path

import pytest

from mha_lab.errors import UserError
from mha_lab.tasks.errors import DataFileError
from mha_lab.tasks.pair_file import read_pairs
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training.metrics_file import MetricsFile


def test_a_cell_of_any_size_is_read(tmp_path: Path):
    file = tmp_path / "long.csv"
    file.write_text(f"source,target\n{'a ' * 70_000},b\n")
    ((source, target),) = read_pairs(file, cache_dir=tmp_path)
    assert (len(source), target) == (140_000, "b")


@pytest.mark.parametrize("value", ["\ud83d", ["a", "\udc00"], "a b\ud83dc"])
def test_half_a_character_is_told_by_its_line(value: object, tmp_path: Path):
    file = tmp_path / "half.jsonl"
    rows = [{"source": "a", "target": "b"}, {"source": value, "target": "b"}]
    file.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataFileError, match=r"half\.jsonl, line 2: 'source' holds half a char"):
        read_pairs(file, cache_dir=tmp_path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"symbols": ["\\ud83d"]}', '{"symbols": 3}', ""])
def test_a_damaged_vocabulary_is_a_sentence(text: str, tmp_path: Path):
    (tmp_path / "vocabulary.json").write_text(text)
    with pytest.raises(ValueError, match=r"vocabulary\.json"):
        Vocabulary.load(tmp_path / "vocabulary.json")


@pytest.mark.parametrize("content", [b"step,val\n1,\xff\n", b"step,val\nx,1\n", b"\xdfstep\n1\n"])
def test_damaged_metrics_are_a_sentence(content: bytes, tmp_path: Path):
    (tmp_path / "metrics.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"metrics\.csv' is damaged"):
        MetricsFile(tmp_path).go_on(step=3)
