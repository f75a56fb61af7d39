"""predict: several sequences, files in and out, figures of each."""

import csv
import json
from pathlib import Path

import pytest

from mha_lab.evaluation.predictor import Predictor

SOURCES = ["3 1 2", "7", "9 9 1 4 2", "312", "5 6 7"]


def alone(lab, trained: Path) -> list[str]:
    """Each sequence's output, asked for by itself."""
    return [lab("predict", f"run={trained}", one)[1].strip() for one in SOURCES]


def test_each_word_is_a_sequence(lab, trained: Path):
    code, out, err = lab("predict", f"run={trained}", *SOURCES)
    assert code == 0, err
    assert out.splitlines() == alone(lab, trained)
    assert err == ""


def test_words_without_quotes_are_several_and_that_is_said(lab, trained: Path):
    code, out, err = lab("predict", f"run={trained}", "3", "1", "2")
    assert (code, len(out.splitlines())) == (0, 3)
    assert '3 sequences; a single one is written in quotes, as in "3 1 2"' in err


def test_a_sequence_longer_than_any_in_training_is_told_of(lab, trained: Path):
    code, out, err = lab("predict", f"run={trained}", "1 2", "1 2 3 4 5 6 7 8 9 0 1")
    assert (code, len(out.splitlines())) == (0, 2)
    assert "lengths above 10 are longer than any in training" in err
    assert lab("predict", f"run={trained}", "1 2 3 4 5 6 7 8 9 0")[2] == ""


def test_many_are_answered_as_each_alone(trained: Path):
    """Batches of one length, whatever stands beside it."""
    predictor = Predictor.load(trained)
    rows = [
        predictor.read(" ".join(str((i * k) % 10) for k in range(1, 1 + i % 7 + 1)))
        for i in range(613)
    ]
    together = predictor.outputs(rows)
    for i in range(0, 613, 29):
        assert together[i] == predictor.predict(rows[i]).output


@pytest.mark.parametrize("ending", ["txt", "jsonl", "csv"])
@pytest.mark.parametrize("into", ["txt", "jsonl", "csv"])
def test_files_of_every_kind_in_and_out(lab, trained: Path, tmp_path: Path, ending, into):
    given, found = tmp_path / f"in.{ending}", tmp_path / f"out.{into}"
    if ending == "txt":
        given.write_text("\ufeff" + "\r\n".join(SOURCES), encoding="utf-8")
    elif ending == "jsonl":
        rows = [{"n": i, "source": text} for i, text in enumerate(SOURCES)]
        given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = "".join(f"{i},{text}\n" for i, text in enumerate(SOURCES))
        given.write_text(f"n,source\n{lines}")
    code, out, err = lab("predict", f"run={trained}", f"input={given}", f"output={found}")
    assert code == 0, err
    assert out.splitlines() == ["5 sequences answered", str(found)]
    expected = alone(lab, trained)
    if into == "txt":
        assert found.read_text().splitlines() == expected
        return
    if into == "jsonl":
        rows = [json.loads(line) for line in found.read_text().splitlines()]
    else:
        rows = list(csv.DictReader(found.open(encoding="utf-8")))
    assert [row["output"] for row in rows] == expected
    assert [row["source"] for row in rows] == SOURCES
    if ending != "txt":
        assert [int(row["n"]) for row in rows] == [0, 1, 2, 3, 4]
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_tokens_in_a_list_are_answered_by_a_list(lab, trained: Path, tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"source": ["3", "1"]}\n')
    lab("predict", f"run={trained}", f"input={tmp_path}/in.jsonl", f"output={tmp_path}/o.jsonl")
    row = json.loads((tmp_path / "o.jsonl").read_text())
    assert row["output"] == lab("predict", f"run={trained}", "3 1")[1].split()


def test_a_file_without_output_is_printed(lab, trained: Path, tmp_path: Path):
    (tmp_path / "in.txt").write_text("3 1 2\n7\n")
    code, out, _ = lab("predict", f"run={trained}", f"input={tmp_path}/in.txt")
    assert (code, out.splitlines()) == (0, alone(lab, trained)[:2])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("in.txt", "1 2\n1 x\n", "in.txt, line 2: unknown token 'x'"),
        ("in.txt", "1 2\n\n1\n", "in.txt, line 2: is empty"),
        ("in.txt", "", "in.txt: holds no sequence"),
        ("in.txt", "1 2\n" + "1 " * 300, "in.txt, line 2: "),
        ("in.txt", b"1 2\n\xff\n", "in.txt, line 2: byte 0xff is not UTF-8"),
        ("in.jsonl", '{"source": "1"}\n{"sauce": "1"}\n', "in.jsonl, line 2: has no 'source'"),
        ("in.jsonl", '{"source": "1"}\n{"source"', "in.jsonl, line 2: is not valid JSON"),
        ("in.jsonl", "[1]\n", 'line 1: must be an object like {"source": "3 1 2"}, got [1]'),
        ("in.jsonl", '{"source": 3}\n', "line 1: 'source' must be text or a list of tokens"),
        ("in.csv", "a,b\n1,2\n", "in.csv, line 1: the header must name the column 'source' once"),
        ("in.csv", "source,n\n1,2\n1\n", "in.csv, line 3: has 1 values"),
        ("in.csv", 'source\n1\n"<pad>"\n', "in.csv, line 3: 'source' uses '<pad>'"),
        ("in.tsv", "1\n", "in.tsv: the name must end in one of .txt, .jsonl, .csv"),
        (None, "", "nowhere.txt: no such file"),
    ],
)
def test_a_fault_names_file_and_line_and_leaves_no_output(
    lab, trained: Path, tmp_path: Path, name, content, said
):
    given = tmp_path / (name or "nowhere.txt")
    if name:
        given.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = lab("predict", f"run={trained}", f"input={given}", f"output={tmp_path}/o.txt")
    assert code == 2
    assert said in err
    assert out == ""
    assert len(err.splitlines()) == 1
    assert {file.name for file in tmp_path.iterdir()} <= {given.name}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["1", "input=in.txt"], "sequences and input= do not go together"),
        (["input=in.txt", "figure=o.png"], "figure= and input= do not go together"),
        (["1", "output=nowhere/o.txt"], "has no folder 'nowhere'"),
        (["1", "output=o.xml"], "must end in one of"),
        (["1", "output=folder.csv"], "is a folder"),
        ([], "needs a sequence"),
    ],
)
def test_what_does_not_go_together_is_said(
    lab, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("1\n")
    (tmp_path / "folder.csv").mkdir()
    code, _, err = lab("predict", f"run={trained}", *words)
    assert code == 2
    assert said in err


def test_an_output_that_cannot_be_written_leaves_the_old_one(
    lab, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    old = tmp_path / "o.csv"
    old.write_text("old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
    code, _, err = lab("predict", f"run={trained}", "1 2", f"output={old}")
    assert code == 1
    assert f"output={old} cannot be written: No space" in err
    assert [file.name for file in tmp_path.iterdir()] == ["o.csv"]
    assert old.read_text() == "old"


def test_figures_of_several_sequences_are_numbered(lab, trained: Path, tmp_path: Path):
    code, _, err = lab("predict", f"run={trained}", "1 2", "3", f"figure={tmp_path}/f.png")
    assert code == 0, err
    assert {file.name for file in tmp_path.iterdir()} == {
        "f_1.png", "f_1.html", "f_2.png", "f_2.html"
    }  # fmt: skip


def test_the_input_is_not_written_over(lab, trained: Path, tmp_path: Path):
    file = tmp_path / "in.txt"
    file.write_text("3 1 2\n")
    code, _, err = lab("predict", f"run={trained}", f"input={file}", f"output={file}")
    assert code == 2
    assert "is the input, which would be lost" in err
    assert file.read_text() == "3 1 2\n"


def test_empty_lines_at_the_end_mean_nothing(lab, trained: Path, tmp_path: Path):
    file = tmp_path / "in.txt"
    file.write_bytes(b"\xef\xbb\xbf3 1 2\r\n7\r\n\r\n\n")
    code, out, err = lab("predict", f"run={trained}", f"input={file}")
    assert (code, len(out.splitlines())) == (0, 2), err
    file.write_text("3 1 2\n\n7\n")
    code, _, err = lab("predict", f"run={trained}", f"input={file}")
    assert (code, "line 2: is empty" in err) == (2, True)


def test_a_typed_sequence_that_is_too_long_is_told_without_a_place(lab, trained: Path):
    code, _, err = lab("predict", f"run={trained}", "1 " * 300)
    assert code == 2
    assert err.startswith("mha_lab: a sequence of length 301 is longer than")
