"""Ctrl-C that comes where Python ignores it."""

import subprocess
import sys

import pytest

from mha_lab import cli
from mha_lab.interrupts import keep_interrupts

PROGRAM = """
import os, signal, sys, time
from mha_lab.interrupts import keep_interrupts

class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

if sys.argv[1] == "kept":
    keep_interrupts()
try:
    deleted = Deleted()
    del deleted
    print("goes on")
    time.sleep(2)
    print("to its end")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("how", "said"), [("ignored", "goes on\nto its end\n"), ("kept", "goes on\ninterrupted\n")]
)
def test_an_interrupt_while_something_is_deleted(how, said):
    words = [sys.executable, "-c", PROGRAM, how]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == said
    assert ("Exception ignored" in done.stderr) == (how == "ignored")


IMPORTING = """
import os, signal, sys
from mha_lab import cli
from mha_lab import cli
from mha_lab.interrupts import keep_interrupts

def import_numpy(argv):
    try:
        if sys.argv[1] == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        pass
    raise ImportError("cannot load module more than once per process")

keep_interrupts()
cli.importlib.import_module = import_numpy
sys.exit(cli.run(["list"]))
"""


@pytest.mark.parametrize(("how", "code"), [("interrupted", 130), ("not", 1)])
def test_an_interrupt_of_which_a_library_made_another_error(how, code):
    words = [sys.executable, "-c", IMPORTING, how]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert (done.stderr == "mha_lab: interrupted\n") == (how == "interrupted")


def test_other_exceptions_are_told_as_before(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    keep_interrupts()

    class Deleted:
        def __del__(self) -> None:
            raise ValueError("told")

    Deleted()
    assert [str(one.exc_value) for one in seen] == ["told"]


@pytest.mark.parametrize("command", ["study", "sweep"])
def test_a_command_that_goes_on_is_printed_whole(command, monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"mha_lab.commands.{command}.main", interrupted)
    assert cli.run([command, "a name", "x=1,2"]) == 130
    said = capsys.readouterr().err
    assert (
        said == f"mha_lab: interrupted; go on with:\n  python -m mha_lab {command} 'a name' x=1,2\n"
    )
