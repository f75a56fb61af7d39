"""Reading pairs: what is right is read to the letter, what is wrong is named by file and line."""

import os
from pathlib import Path

import pytest

from mha_lab.tasks.errors import DataFileError
from mha_lab.tasks.pair_file import Pair, read_pairs

ROW = '{"source": "a b", "target": "b a"}\n'


@pytest.fixture
def read(tmp_path: Path):
    """Write a file and read its pairs."""

    def write_and_read(name: str, content: str | bytes) -> list[Pair]:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_pairs(file, cache_dir=tmp_path / "cache")

    return write_and_read


def test_jsonl_with_text_lists_other_keys_and_blank_lines(read) -> None:
    pairs = read(
        "x.jsonl",
        '{"id": 1, "source": "a  b", "target": ["new york", "b"]}\n\n'
        '{"target": "é", "source": ["\\u6f22"], "id": {"deep": null}}',
    )
    assert pairs == [("a  b", ["new york", "b"]), (["漢"], "é")]


def test_csv_with_quotes_other_columns_and_blank_lines(read) -> None:
    pairs = read(
        "x.csv", 'id,target, source\n1,"b, ""a""",a\n\n2,"two\nlines",c\n'.replace("\n", "\r\n")
    )
    assert pairs == [("a", 'b, "a"'), ("c", "two\nlines")]


def test_text_is_kept_to_the_letter(read) -> None:
    """What other readers of JSON and CSV take for dates, numbers or missing values."""
    values = ["2020-05-01", "NA", "null", "007", "1e5", "True", "nan", "-0"]
    jsonl = "".join(f'{{"source": "{v}", "target": "{v}"}}\n' for v in values)
    csv = "source,target\n" + "".join(f"{v},{v}\n" for v in values)
    expected = [(v, v) for v in values]
    assert read("x.jsonl", jsonl) == expected
    assert read("x.csv", csv) == expected
    assert read("dates.jsonl", '{"source": "May 1", "target": "2020-05-01"}\n') == [
        ("May 1", "2020-05-01")
    ]


def test_odd_line_separators_inside_text_are_no_line_breaks(read) -> None:
    assert read("x.jsonl", '{"source": "a\u2028b", "target": "\x85c"}\n') == [("a\u2028b", "\x85c")]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_byte_order_mark_is_ignored(read, name: str) -> None:
    content = ROW if name == "x.jsonl" else "source,target\na b,b a\n"
    assert read(name, "\ufeff" + content) == [("a b", "b a")]


def test_upper_case_ending_and_magic_characters_in_the_name(read) -> None:
    assert read("a[1]*?.JSONL", ROW) == [("a b", "b a")]


def test_a_changed_file_is_read_afresh(read) -> None:
    assert read("x.jsonl", ROW) == [("a b", "b a")]
    assert read("x.jsonl", ROW.replace("a b", "c d")) == [("c d", "b a")]


def test_content_decides_and_not_the_time_of_a_file(read, tmp_path: Path) -> None:
    first = read("x.jsonl", ROW)
    times = (tmp_path / "x.jsonl").stat()
    file = tmp_path / "x.jsonl"
    file.write_text(
        ROW.replace('"a b"', '"c b"').replace('"b a"', '"b c"')
    )  # as long, and as old, as an archive would make it
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert read_pairs(file, cache_dir=tmp_path / "cache") == [("c b", "b c")] != first


@pytest.mark.parametrize(
    "content", [ROW, ROW.strip(), ROW.replace("\n", "\r\n") * 3, "\ufeff" + ROW]
)
def test_a_copy_in_the_cache_is_used(read, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    modes, load = [], datasets.load_dataset
    monkeypatch.setattr(
        datasets, "load_dataset", lambda *a, **k: modes.append(k["download_mode"]) or load(*a, **k)
    )
    assert read("x.jsonl", content)
    assert modes == [datasets.DownloadMode.REUSE_DATASET_IF_EXISTS]


def test_a_damaged_copy_in_the_cache_is_made_again(read, tmp_path: Path) -> None:
    read("x.jsonl", ROW)
    copies = list((tmp_path / "cache").rglob("*.arrow"))
    assert copies
    for copy in copies:
        copy.write_bytes(b"noise")
    assert read_pairs(tmp_path / "x.jsonl", cache_dir=tmp_path / "cache") == [("a b", "b a")]


def test_many_rows_keep_their_order(read) -> None:
    rows = [(f"{i} x", f"{i}") for i in range(20_011)]
    content = "".join(f'{{"source": "{s}", "target": "{t}"}}\n' for s, t in rows)
    assert read("x.jsonl", content) == rows


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"source": "a"}', "has no 'target'"),
        ('{"target": "a"}', "has no 'source'"),
        ('{"source": "a", "target": null}', "'target' must be text or a list of tokens, got null"),
        ('{"source": 3, "target": "a"}', "'source' must be text or a list of tokens, got 3"),
        ('{"source": {"a": 1}, "target": "a"}', 'got {"a": 1}'),
        ('{"source": "", "target": "a"}', "'source' is empty"),
        ('{"source": "a", "target": " \\t"}', "'target' is empty"),
        ('{"source": [], "target": "a"}', "'source' is empty"),
        ('{"source": [1, 2], "target": "a"}', 'list tokens as text, like ["3", "1"], got 1 in it'),
        ('{"source": ["a", null], "target": "a"}', "got null in it"),
        ('{"source": ["a", ""], "target": "a"}', "lists an empty token"),
        ('{"source": "a <eos>", "target": "a"}', "uses '<eos>', which is a special token"),
        ('{"source": "a", "target": ["<pad>"]}', "uses '<pad>'"),
        ('{"source": "a", "target": "b"', "is not valid JSON"),
        ("a b,b a", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ('["a", "b"]', 'must be an object like {"source"'),
        ("null", "got null"),
        ('"' + "x" * 99 + '"', 'got "' + "x" * 39 + "..."),
    ],
)
def test_bad_jsonl_row(read, line: str, said: str) -> None:
    with pytest.raises(DataFileError) as raised:
        read("pairs.jsonl", ROW + "\n" + line + "\n" + ROW)
    assert f"pairs.jsonl, line 3: {''}" in str(raised.value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ("source,goal\na,b\n", 1, "must name the column 'target' once, got source, goal"),
        ("source;target\na;b\n", 1, "the column 'source' once, got source;target"),
        ("source,target,source\na,b,c\n", 1, "the column 'source' once"),
        ("source,target\na,b\na\n", 3, "has 1 values where the header names 2 columns"),
        ("source,target\na,b,c\n", 2, "has 3 values where the header names 2 columns"),
        ('source,target\n"a\nb",c\nd\n', 4, "has 1 values"),
        ("source,target\na,\n", 2, "'target' is empty"),
        ('source,target\na,"b\nc\n', 2, "is not valid CSV"),
        ('source,target\na,"b"c\n', 2, "is not valid CSV"),
        ("source,target\na,<unk>\n", 2, "uses '<unk>'"),
    ],
)
def test_bad_csv_row(read, content: str, line: int, said: str) -> None:
    with pytest.raises(DataFileError) as raised:
        read("pairs.csv", content)
    assert f"pairs.csv, line {line}: " in str(raised.value)
    assert said in str(raised.value)


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.csv"])
def test_not_utf8(read, name: str) -> None:
    header = b"" if name.endswith("jsonl") else b"source,target\n"
    content = header + ROW.encode() * 3 + b'{"source": "\xe9", "target": "a"}\n'
    with pytest.raises(DataFileError, match=rf"{name}, line \d: byte 0xe9 is not UTF-8"):
        read(name, content)


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.jsonl", ""), ("x.csv", ""), ("x.jsonl", "\n\n"), ("x.csv", "source,target\n")],
)
def test_empty_file(read, name: str, content: str) -> None:
    with pytest.raises(DataFileError, match="holds no row"):
        read(name, content)


def test_names_that_cannot_be_read(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "x.txt").write_text("a")
    for name, said in {
        "none.jsonl": "no such file",
        "x.txt": r"must end in .jsonl or .csv",
        "no_ending": r"must end in .jsonl or .csv",
        "folder.jsonl": "is a folder",
    }.items():
        with pytest.raises(DataFileError, match=said) as raised:
            read_pairs(tmp_path / name, cache_dir=cache)
        assert str(tmp_path / name) in str(raised.value)


def test_nothing_is_asked_of_the_network(read, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("the network was asked")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert read("x.jsonl", ROW) == [("a b", "b a")]
