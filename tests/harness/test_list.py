"""``list``: mechanisms, parts and encodings in their groups, those of a folder of one's own too."""

from pathlib import Path

import pytest

from mha_lab import cli
from mha_lab.commands import list as command
from mha_lab.config import groups, options, own_positions


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert command.main(words) == 0
    return capsys.readouterr().out.splitlines()


def test_every_option_of_every_group_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys)
    for group in groups():
        heading = next(
            i for i, line in enumerate(lines) if line.lstrip("+").startswith(f"{group}=")
        )
        own = own_positions(group)
        for name, said in options(group).items():
            said += f"; position of its own: {own[name]}" if name in own else ""
            assert any(line.split() == [name, *said.split()] for line in lines[heading:])


def test_parts_follow_their_mechanisms_then_come_encodings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    headings = [line for line in printed(capsys) if not line.startswith(" ")]
    assert headings[:5] == [
        "attention=  (mechanisms)",
        "attention/mixing=  (parts of attention=composed)",
        "attention/pattern=  (parts of attention=composed)",
        "attention/weighting=  (parts of attention=composed)",
        "position=  (encodings)",
    ]


def test_a_folder_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "attention" / "weighting"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("# A weighting of my own\n_target_: mine.Mine\n")
    assert cli.run(["list", "attention/weighting", "--config-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"  {'mine':<18}A weighting of my own" in lines  # two beyond the longest name
    assert any(line.startswith("  softmax ") for line in lines)
