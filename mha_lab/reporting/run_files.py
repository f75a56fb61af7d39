"""The files of a run's folder as plain data, read without torch; damage is told by file."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from mha_lab.config import CONFIG_FILE, first_line
from mha_lab.config.plain_yaml import check_size
from mha_lab.reporting.damage import UnreadableError, check_choices, check_metric, check_summary

SUMMARY = "summary.json"
METRICS = "metrics.csv"
LENGTHS = "accuracy_by_length.csv"
HYDRA = ".hydra"

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where it is there


def read_values(folder: Path) -> dict[str, Any]:
    """A run's config, flat: choices by their group, values by their dotted key.

    Of a job that failed before it wrote its config, it is what Hydra had composed for it; empty
    where that is missing too.
    """
    if (folder / CONFIG_FILE).is_file():
        config = _read_yaml(folder / CONFIG_FILE)
        choices = config.pop("choices", None)
        if not isinstance(choices, dict):
            raise UnreadableError(f"{CONFIG_FILE} is not the config of a run: it has no 'choices'")
    elif (folder / HYDRA / "config.yaml").is_file():
        config = _read_yaml(folder / HYDRA / "config.yaml")
        choices = _choices(_read_yaml(folder / HYDRA / "hydra.yaml"))
    else:
        return {}
    check_choices(CONFIG_FILE, choices)
    run_dir = str(config.pop("run_dir", None) or folder)
    flat = _flatten(config)
    values = {key: _settle(value, flat, run_dir) for key, value in flat.items()}
    return values | {str(group): option for group, option in choices.items()}


def read_summary(folder: Path) -> dict[str, Any]:
    """A run's ``summary.json``; empty where there is none."""
    file = folder / SUMMARY
    if not file.is_file():
        return {}
    try:
        content = json.loads(_read_text(file))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{SUMMARY} is not JSON: {first_line(error)}") from error
    if not isinstance(content, dict) or "status" not in content:
        raise UnreadableError(f"{SUMMARY} is not the summary of a run: it has no 'status'")
    check_summary(SUMMARY, content)
    return content


def read_overrides(summary: dict[str, Any]) -> dict[str, Any]:
    """What a run was asked for, where its summary is all that it left."""
    overrides = summary.get("overrides")
    words = [str(word) for word in overrides] if isinstance(overrides, list) else []
    pairs = [word.lstrip("+").partition("=") for word in words]
    return {key: _scalar(value) for key, sign, value in pairs if sign}


def _scalar(text: str) -> Any:
    """A value as Hydra reads it, where that is a number, a truth value or null."""
    try:
        value = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, int | float | None) else text


def read_curves(folder: Path) -> dict[str, Curve]:
    """Steps and values of each validation metric; the others are passed over for speed."""
    points: dict[str, list[tuple[float, float]]] = {}
    rows = read_csv(folder / METRICS, "step")
    for row in rows:
        step = float(_whole_number(METRICS, "step", row["step"]))
        for key, text in row.items():
            if text and key.startswith("val/"):
                value = read_number(METRICS, key, text)
                check_metric(METRICS, key, value)
                points.setdefault(key, []).append((step, value))
    tables = {key: np.array(sorted(pairs)) for key, pairs in points.items()}
    return {key: (table[:, 0], table[:, 1]) for key, table in tables.items()}


def read_lengths(folder: Path) -> dict[int, float]:
    """The share of test sequences wholly right, by length."""
    found = {}
    for row in read_csv(folder / LENGTHS, "length", "sequence_accuracy"):
        accuracy = read_number(LENGTHS, "sequence_accuracy", row["sequence_accuracy"])
        check_metric(LENGTHS, "sequence_accuracy", accuracy)
        found[_whole_number(LENGTHS, "length", row["length"])] = accuracy
    return found


def _choices(hydra: dict[Any, Any]) -> dict[str, Any]:
    try:
        chosen = hydra["hydra"]["runtime"]["choices"].items()
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableError(f"{HYDRA}/hydra.yaml names no choices") from error
    return {str(group): option for group, option in chosen if re.fullmatch(r"\w+", str(group))}


def _settle(value: Any, flat: dict[str, Any], run_dir: str) -> Any:
    """Resolve ``${another.key}``; and say ``<run>`` for the folder, which no two runs share."""
    if not isinstance(value, str):
        return value
    reference = re.fullmatch(r"\$\{([\w.]+)\}", value)
    if reference:
        return flat.get(reference[1], value)
    value = value.replace("${run_dir}", "<run>")
    return value if run_dir == "." else value.replace(run_dir, "<run>")


def _flatten(tree: dict[Any, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            is_list = isinstance(value, list)
            flat[f"{prefix}{key}"] = json.dumps(value, default=str) if is_list else value
    return flat


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{file.name} cannot be read: {first_line(error)}") from error


def _read_yaml(file: Path) -> dict[Any, Any]:
    try:
        text = _read_text(file)
        check_size(text)
        content = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UnreadableError(f"{file.name} is not YAML: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise UnreadableError(f"{file.name} is not the config of a run: it holds no keys")
    return content


def read_csv(file: Path, *columns: str) -> list[dict[str, str]]:
    """The rows of a CSV file, none where there is no file.

    Args:
        file: the file.
        columns: those that it must have.

    Raises:
        UnreadableError: it is damaged.
    """
    if not file.is_file():
        return []
    try:
        header, *rows = list(csv.reader(_read_text(file).splitlines())) or [[]]
    except csv.Error as error:
        raise UnreadableError(f"{file.name} is not CSV: {first_line(error)}") from error
    for column in columns:
        if column not in header:
            raise UnreadableError(f"{file.name} is damaged: it has no column {column!r}")
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise UnreadableError(
                f"{file.name} is damaged: line {line} has {len(row)} fields, "
                f"the header {len(header)}"
            )
    return [dict(zip(header, row, strict=True)) for row in rows]


def read_number(file: str, column: str, text: str) -> float:
    """A number of a CSV file.

    Raises:
        UnreadableError: it is none.
    """
    try:
        return float(text)
    except ValueError as error:
        raise UnreadableError(f"{file} is damaged: {column} is {text!r}, not a number") from error


def _whole_number(file: str, column: str, text: str) -> int:
    number = read_number(file, column, text)
    if not number.is_integer():  # NaN and infinity are none either
        raise UnreadableError(f"{file} is damaged: {column} is {text!r}, not a whole number")
    return int(number)
