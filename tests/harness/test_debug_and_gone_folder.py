"""The traceback of either kind of error is shown on request; a deleted folder is one sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mha_lab import cli
from mha_lab.errors import MachineError, UserError

Lab = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("error", "code"), [(UserError("mend it"), 2), (MachineError("full"), 1), (OSError(28, "x"), 1)]
)
@pytest.mark.parametrize("debug", ["0", "1"])
def test_the_traceback_is_shown_on_request(
    error: Exception, code: int, debug: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    def fail(words: list[str]) -> tuple[None, list[str]]:
        raise error

    monkeypatch.setattr(cli, "_own_folder", fail)
    monkeypatch.setenv("MHA_LAB_DEBUG", debug)
    got, _, err = lab("list")
    assert got == code
    assert ("Traceback" in err) == (debug == "1")
    assert err.strip().splitlines()[-1].startswith("mha_lab: ")


def test_a_deleted_working_folder(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, _, err = lab("evaluate", "run=x")
    assert (code, len(err.strip().splitlines())) == (1, 1)
    assert "the working folder is gone" in err
