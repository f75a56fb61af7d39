"""Open TensorBoard on the runs, with the flags that keep every attention map.

Usage:
  python -m mha_lab dashboard [logdir=outputs] [port=6006] [host=localhost]

logdir= may be a folder of runs or a single run, or `latest`: the newest below outputs/.
Stop it with Ctrl-C.
"""

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from mha_lab.arguments import no_more, split, whole_number
from mha_lab.commands.which_run import LATEST, OUTPUTS, which_run
from mha_lab.errors import UserError
from mha_lab.terminal import relative

_SETTINGS = ("logdir", "port", "host")
# TensorBoard keeps 10 events a tag of a plugin unless told otherwise; 0 means all of them.
KEEP_ALL = "mha_lab_attention=0,images=0,text=0"


def main(arguments: Sequence[str]) -> int:
    """Replace this process by TensorBoard."""
    settings, rest = split(arguments, _SETTINGS)
    no_more(rest, _SETTINGS)
    logdir = Path(settings.get("logdir", OUTPUTS))
    if logdir == Path(LATEST) and not logdir.exists():
        logdir = which_run("logdir", LATEST, with_weights=False)
    if not logdir.is_dir():
        raise UserError(
            f"no runs at {str(logdir)!r}: the folder does not exist; train one first "
            "(python -m mha_lab train +experiment=copy), or give logdir=FOLDER"
        )
    port = whole_number("port", settings.get("port", "6006"), low=0, high=65535)
    host = settings.get("host", "localhost")
    try:
        socket.getaddrinfo(host, port)
    except (OSError, UnicodeError):
        raise UserError(
            f"host must be a name or an address of this machine, got {host!r}"
        ) from None
    command = [
        *(sys.executable, "-m", "tensorboard.main"),
        *("--logdir", str(logdir), "--port", str(port)),
        *("--host", host),
        *("--samples_per_plugin", KEEP_ALL, "--reload_interval", "5"),
    ]
    print(f"runs of {relative(logdir)}; their maps are in TensorBoard's tab Attention")
    sys.stdout.flush()
    os.execv(sys.executable, command)
