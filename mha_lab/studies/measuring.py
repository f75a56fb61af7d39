"""What is measured of a finished run: numbers of its summary, lengths, and the study's own."""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from mha_lab.errors import UserError
from mha_lab.studies.study import Study

Row = dict[str, Any]
"""Columns of text say where something was measured (``lengths``), numbers what was found there."""

MEASURED = "measured.json"


@dataclass(frozen=True)
class Measuring:
    """How a study measures a run; plain, so that it can be sent to where the run is.

    Attributes:
        lengths: ranges of lengths.
        samples: sequences of each.
        code: the study's ``measure.py``; None where it has none.
        trusted: modules that a run's config may name.
    """

    lengths: tuple[str, ...]
    samples: int
    code: Path | None
    trusted: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """Changes when a run has to be measured again."""
        code = self.code.read_text(encoding="utf-8") if self.code else ""
        content = json.dumps([self.lengths, self.samples, code])
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def rows(self, run: Path, summary: dict[str, Any]) -> list[Row]:
        """Measure a run."""
        numbers = {k: v for k, v in summary.items() if _is_number(v) and k != "seed"}
        found: list[Row] = [numbers | {"solved": float(summary["status"] == "solved")}]
        if self.lengths:
            found += self._by_length(run)
        if self.code is not None:
            measure: Callable[[Path], Sequence[Row]] = load(self.code).measure
            found += measure(run)
        return found

    def _by_length(self, run: Path) -> list[Row]:
        from mha_lab.evaluation.by_length import evaluate_lengths

        ranges = [
            (int(low), int(high)) for low, _, high in (t.partition("-") for t in self.lengths)
        ]
        result = evaluate_lengths(run, ranges, samples=self.samples, trusted=self.trusted)
        return [
            {key: value for key, value in row.items() if not isinstance(value, bool)}
            for row in result.ranges
        ]


def measuring_of(study: Study, trusted: Sequence[str] = ()) -> Measuring:
    """How a study measures.

    Raises:
        UserError: a range of lengths that cannot be read.
    """
    for text in study.spec.lengths:
        low, is_range, high = str(text).partition("-")
        if not (is_range and low.isdecimal() and high.isdecimal() and 1 <= int(low) <= int(high)):
            raise UserError(f"study {study.name}: lengths takes ranges such as 11-20, got {text!r}")
    code = study.folder / "measure.py"
    return Measuring(
        tuple(study.spec.lengths),
        study.samples,
        code.resolve() if code.is_file() else None,
        tuple(trusted),
    )


def load(file: Path) -> ModuleType:
    """Run a Python file of a study."""
    spec = importlib.util.spec_from_file_location(f"_study_{file.parent.name}_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_measured(run: Path) -> dict[str, Any]:
    """What was measured of a run; empty where nothing was."""
    try:
        content = json.loads((run / MEASURED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
