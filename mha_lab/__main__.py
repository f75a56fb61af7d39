"""``python -m mha_lab``, and the console script ``mha_lab``."""

import sys

from mha_lab.cli import run
from mha_lab.interrupts import keep_interrupts


def main() -> None:
    """Run the command line and exit with its code."""
    keep_interrupts()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
