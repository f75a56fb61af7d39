"""Ctrl-C that comes where Python ignores it."""

import subprocess
import sys

import pytest

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


def test_other_exceptions_are_told_as_before(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    keep_interrupts()

    class Deleted:
        def __del__(self) -> None:
            raise ValueError("told")

    Deleted()
    assert [str(one.exc_value) for one in seen] == ["told"]
