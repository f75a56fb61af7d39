"""What benchmarks print, and what they find out before they begin."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mha_lab.errors import UserError
from mha_lab.terminal import show_table

if TYPE_CHECKING:
    import torch


def writable(name: str) -> Path:
    """A file that can be written, found out before anything is timed."""
    file = Path(name)
    if file.is_dir() or not os.access(file.parent, os.W_OK):
        raise UserError(f"csv={name} cannot be written: give a file in a folder that exists")
    return file


def find_device(name: str | None) -> "torch.device":
    """The device of this name; None means a GPU where there is one."""
    import torch

    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise UserError(f"device must be cpu or cuda, got {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device=cuda needs a CUDA GPU, and PyTorch sees none; use device=cpu")
    return torch.device(name)


def machine(device: "torch.device") -> str:
    """The processor, PyTorch and its threads, and how busy the machine is, in a line."""
    import torch

    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, PyTorch {torch.__version__}"
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")  # Linux tells no name otherwise
    for line in cpuinfo.read_text().splitlines() if cpuinfo.exists() else ():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    of_torch = f"{torch.get_num_threads()} threads, PyTorch {torch.__version__}"
    if not hasattr(os, "getloadavg"):  # as on Windows
        return f"{processor}, {of_torch}"
    return f"{processor}, {of_torch}, load {os.getloadavg()[1]:.1f} in the last five minutes"


def cell(value: str | float) -> str:
    """How a value is written."""
    return f"{value:.2f}" if isinstance(value, float) else value


def show(
    rows: Sequence[Sequence[str]], columns: Sequence[str], *, numeric: int, **settings: str
) -> None:
    """Print a table, in Markdown if ``table`` is among the settings."""
    if "table" in settings:
        from mha_lab.reporting.document import Table as Document
        from mha_lab.reporting.markdown import markdown_table

        print(f"\n{markdown_table(Document(columns, rows, '', numeric))}")
        return
    show_table(columns, rows, numeric=numeric)
