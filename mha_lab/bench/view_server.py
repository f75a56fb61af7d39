"""A TensorBoard server for a moment, with maps in its Attention tab."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mha_lab.errors import UserError
from mha_lab.maps.attention_map import AttentionMap
from mha_lab.tensorboard.event_files import PLUGIN_NAME

_PATIENCE = 60.0


@contextmanager
def tab(maps: Sequence[AttentionMap], folder: Path, *, steps: int = 1) -> Iterator[str]:
    """Write maps as a run of so many steps, serve them, and yield the address of the tab alone."""
    from torch.utils.tensorboard import SummaryWriter

    from mha_lab.tensorboard.writer import write_attention

    with SummaryWriter(str(folder)) as writer:
        scores = {one.name: one.scores() for one in maps}
        for step in range(steps):  # each a little sharper than the one before
            sharper = [
                replace(one, weights=one.weights.pow(1 + step / steps).nan_to_num()) for one in maps
            ]
            write_attention(writer, sharper, step, scores=scores)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = f"http://127.0.0.1:{port}/data"
    try:
        _wait(f"{base}/plugin/{PLUGIN_NAME}/runs")
        yield f"{base}/plugin_entry.html?name={PLUGIN_NAME}"
    finally:
        server.terminate()
        server.wait(20)


def _wait(address: str) -> None:
    """Until the server has read the maps."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                if json.load(answer)["runs"]:
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise UserError(f"TensorBoard did not show its runs within {_PATIENCE:.0f} seconds")
