"""What later evaluations say of a run: ``evaluate``'s files, or the callback's metrics."""

import json
import re
from pathlib import Path

from mha_lab.reporting.damage import UnreadableError, check_metric
from mha_lab.reporting.run_files import METRICS, SUMMARY, read_csv, read_lengths, read_number

EVALUATIONS = "evaluations"
_OF_THE_SAME_TASK = ("task.min_length=", "task.max_length=", "data.")
_LOGGED = re.compile(r"length/(\d+)-(\d+)/sequence_accuracy")


def read_evaluated(folder: Path) -> dict[int, float]:
    """The share of sequences wholly right, by length, as measured beside or after the test.

    Of several evaluations the latest counts, for each length; those on another task, or with
    another setting of it than its lengths, do not. A run that was never evaluated has what
    ``callbacks/length_generalization=on`` logged last, each range at its middle.
    """
    found: dict[int, float] = {}
    kept = folder / EVALUATIONS
    for one in sorted(kept.iterdir()) if kept.is_dir() else ():
        if _is_of_the_same_task(one):
            found |= read_lengths(one)
    return found or _read_logged(folder)


def _is_of_the_same_task(evaluation: Path) -> bool:
    file = evaluation / SUMMARY
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
        words = [str(word).lstrip("+") for word in summary["overrides"]]
    except (OSError, ValueError, KeyError, TypeError):
        return False  # broken off before it was written whole: nothing in it counts
    return all(word.startswith(_OF_THE_SAME_TASK) for word in words)


def _read_logged(folder: Path) -> dict[int, float]:
    file = folder / METRICS
    if not file.is_file() or "length/" not in _first_line(file):  # most runs: no second reading
        return {}
    found: dict[int, float] = {}
    for row in read_csv(file, "step"):
        for key, text in row.items():
            match = _LOGGED.fullmatch(key)
            if match and text:
                middle = (int(match[1]) + int(match[2])) // 2
                found[middle] = read_number(METRICS, key, text)
                check_metric(METRICS, key, found[middle])
    return found


def _first_line(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as stream:
            return stream.readline()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{file.name} cannot be read") from error
