"""``metrics.csv``: every logged metric, one row a step, kept across interruptions.

Lightning's own CSVLogger deletes the file when a run is resumed, and rewrites it in place; this
one keeps the rows up to the checkpoint and only ever replaces the file by a whole one.
"""

import csv
import time
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities import rank_zero_only
from torch import Tensor

from mha_lab.errors import UserError
from mha_lab.training.run_folder import METRICS, write_rows

SECONDS_BETWEEN_WRITES = 2.0


class MetricsFile(Logger):
    """Writes ``metrics.csv`` in the run's folder.

    Args:
        folder: the run's folder.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._rows: dict[int, dict[str, Any]] = {}
        self._written = time.monotonic()

    def go_on(self, *, step: int) -> None:
        """Keep the rows that the file has of the steps before one, and forget later ones."""
        self._rows = {row["step"]: row for row in _read(self._folder / METRICS, before=step)}

    @property
    def name(self) -> str:
        """Lightning asks for a name; the folder's serves."""
        return self._folder.name

    @property
    def version(self) -> str:
        """A run's folder is its only version."""
        return ""

    @property
    def experiment(self) -> None:
        """Callbacks look here for a writer of pictures or text; a table has none."""

    @property
    def save_dir(self) -> str:
        """Where callbacks may keep their files."""
        return str(self._folder)

    @property
    def log_dir(self) -> str:
        """The run's folder."""
        return str(self._folder)

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        """Add metrics to the row of a step."""
        step = len(self._rows) if step is None else step
        row = self._rows.setdefault(step, {"step": step})
        row.update({k: v.item() if isinstance(v, Tensor) else v for k, v in metrics.items()})

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing to do: the run's config.yaml holds them."""

    @rank_zero_only
    def save(self) -> None:
        """Write the file, unless it was written a moment ago."""
        if time.monotonic() - self._written >= SECONDS_BETWEEN_WRITES:
            self.flush()

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Write the file."""
        self.flush()

    @rank_zero_only
    def flush(self) -> None:
        """Write the file now."""
        if self._rows:
            write_rows(self._folder / METRICS, [self._rows[step] for step in sorted(self._rows)])
        self._written = time.monotonic()


def _read(file: Path, *, before: int) -> list[dict[str, Any]]:
    """The rows of the steps before one; none where there is no file."""
    if not file.is_file():
        return []
    rows = []
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            for text in csv.DictReader(stream):
                row: dict[str, Any] = {k: v for k, v in text.items() if k and v not in ("", None)}
                row["step"] = int(row.get("step", before))
                if row["step"] < before:
                    rows.append(row)
    except (ValueError, csv.Error) as error:  # bytes that are not UTF-8, a step that is no number
        reason = " ".join(str(error).split())
        raise UserError(
            f"{str(file)!r} is damaged ({reason}): move it away to go on without its rows"
        ) from error
    return rows
