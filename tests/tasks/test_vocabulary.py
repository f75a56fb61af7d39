import json

import pytest

from mha_lab.tasks.vocabulary import Vocabulary


def test_special_tokens_come_first_and_symbols_from_5() -> None:
    vocabulary = Vocabulary(["b", "a"])
    assert len(vocabulary) == 7
    assert vocabulary.tokens == ("<pad>", "<bos>", "<eos>", "<sep>", "<unk>", "b", "a")
    ids = [Vocabulary.PAD, Vocabulary.BOS, Vocabulary.EOS, Vocabulary.SEP, Vocabulary.UNK]
    assert ids == [0, 1, 2, 3, 4]


def test_encode_and_decode() -> None:
    vocabulary = Vocabulary(["b", "a"])
    assert vocabulary.encode(["a", "b", "x", "<eos>"]) == [6, 5, 4, 2]
    assert vocabulary.decode([6, 5, 4, 2, 0]) == ["a", "b", "<unk>", "<eos>", "<pad>"]
    assert "a" in vocabulary
    assert "x" not in vocabulary


@pytest.mark.parametrize("id_", [-1, 7])
def test_decode_refuses_ids_outside(id_: int) -> None:
    with pytest.raises(ValueError, match=f"between 0 and 6, got {id_}"):
        Vocabulary(["b", "a"]).decode([id_])


def test_text_ends_at_eos_and_shows_no_padding() -> None:
    assert Vocabulary(["b", "a"]).text([0, 5, 6, 2, 5, 0]) == "b a"


@pytest.mark.parametrize(
    ("symbols", "text", "tokens"),
    [
        (["1", "2", "3"], "3 1 2", ["3", "1", "2"]),
        (["1", "2", "3"], "312", ["3", "1", "2"]),
        (["1", "2", "3"], " 3 ", ["3"]),
        (["1", "2", "12"], "12", ["12"]),
        (["1", "2", "12"], "21", ["21"]),
        (["1", "2", "12"], "1 12", ["1", "12"]),
        (["1"], "1\t1\n1", ["1", "1", "1"]),
        (["1"], "<eos>", ["<eos>"]),
        (["1"], "  ", []),
    ],
)
def test_parse(symbols: list[str], text: str, tokens: list[str]) -> None:
    assert Vocabulary(symbols).parse(text) == tokens


def test_parse_undoes_text() -> None:
    vocabulary = Vocabulary([str(n) for n in range(13)])
    ids = [17, 5, 6, 17]
    assert vocabulary.encode(vocabulary.parse(vocabulary.text(ids))) == ids


def test_save_and_load(tmp_path) -> None:
    vocabulary = Vocabulary(["é", '"', "漢"])
    vocabulary.save(tmp_path / "vocabulary.json")
    assert Vocabulary.load(tmp_path / "vocabulary.json") == vocabulary
    assert Vocabulary(["a"]) != vocabulary


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[]", r'must be \{"symbols"'),
        (b'{"symbols": "abc"}', r'must be \{"symbols"'),
        (b'{"symbols": [1]}', "symbols must be text, got 1"),
        (b'{"symbols": ["a", "a"]}', "'a' more than once"),
        (b'{"symbols": ["<pad>"]}', "got '<pad>'"),
    ],
)
def test_load_says_what_is_wrong(tmp_path, content: bytes, said: str) -> None:
    file = tmp_path / "vocabulary.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=said) as raised:
        Vocabulary.load(file)
    assert str(file) in str(raised.value)


def test_load_of_no_file(tmp_path) -> None:
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        Vocabulary.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("symbols", "error", "said"),
    [
        ("abc", TypeError, "one string 'abc'"),
        ([1, 2], TypeError, "got 1"),
        ([], ValueError, "must not be empty"),
        ([""], ValueError, "got ''"),
        (["<sep>"], ValueError, "got '<sep>'"),
        (["x", "y", "x"], ValueError, "'x' more than once"),
    ],
)
def test_symbols_are_checked(symbols, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        Vocabulary(symbols)


def test_file_is_readable_json(tmp_path) -> None:
    Vocabulary(["a"]).save(tmp_path / "v.json")
    assert json.loads((tmp_path / "v.json").read_text()) == {"symbols": ["a"]}
