"""bench decode: a row for each mechanism and length; what cannot be is said at once."""

import csv
from pathlib import Path

import pytest

from mha_lab.bench import decode
from mha_lab.errors import UserError


def test_rows_are_written_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "decode.csv"
    words = ["lengths=3", "only=latent,retention", "batch=1", "seconds=1", f"csv={file}"]
    assert decode.main([*words, "table=markdown"]) == 0
    assert "| latent    |      3 |" in capsys.readouterr().out
    rows = list(csv.DictReader(file.open()))
    assert [(row["mechanism"], row["tokens"]) for row in rows] == [
        ("latent", "3"),
        ("retention", "3"),
    ]
    assert all(float(row["gain"]) > 0 for row in rows)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("only=latnt", "did you mean 'latent'"),
        ("model=encoder", "model must be decoder or encoder_decoder, got 'encoder'"),
        ("lengths=0", "lengths"),
        ("only=retention", "choose model=decoder"),
    ],
)
def test_what_cannot_be_is_said(word: str, said: str) -> None:
    more = ["model=encoder_decoder"] if word == "only=retention" else []
    with pytest.raises(UserError, match=said):
        decode.main([word, *more])
