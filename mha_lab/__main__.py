"""``python -m mha_lab``, and the console script ``mha_lab``."""

import contextlib
import os
import sys

from mha_lab.cli import run
from mha_lab.interrupts import keep_interrupts
from mha_lab.plain_text import write_plainly

STOPPED_BY_SIGNAL = 128  # and the signal's number, as a shell counts


def main() -> None:
    """Run the command line and exit with its code."""
    write_plainly()
    see_working_folder()
    keep_interrupts()
    code = run(sys.argv[1:])
    if code > STOPPED_BY_SIGNAL:
        # Python would first free what was being made, object by object: that can take a minute.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def see_working_folder() -> None:
    """Let the console script find modules of the working folder too, as ``python -m`` does."""
    if sys.flags.safe_path or "" in sys.path:
        return
    with contextlib.suppress(OSError):  # the working folder may be gone
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())


if __name__ == "__main__":
    main()
