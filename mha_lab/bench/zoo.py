"""Every mechanism and encoding against our MultiheadAttention, alternating in one process.

Usage:
  python -m mha_lab bench zoo [seconds=1] [shapes=64x20x64x4,8x256x256x8,2x1024x256x8]
      [lengths=2048,4096,8192,16384] [only=entmax,rotary] [device=cpu] [clock=wall|cpu]
      [csv=FILE] [table=markdown]

Forward + backward of one self-attention without weights, as a ratio to attention=custom in the same
call (below 1: faster), and the ratio of the additional peak memory. A mechanism that looks back
only is timed causal, and so is custom beside it; encodings are timed in custom, or in composed
where they act inside attention. The row of custom itself shows how much the ratios shake. The last
table has the mechanisms whose time is linear in the length, causal, at long lengths; growth is how
many times as long one took as at the length before.
seconds= is the time for each case and shape; lengths= and shapes= may be none. clock=cpu counts
what one thread computes, which other programs on the machine disturb less.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mha_lab.arguments import no_more, split, whole_number
from mha_lab.bench.shapes import Shape, read_shapes
from mha_lab.bench.tables import cell, find_device, machine, show, writable
from mha_lab.errors import UserError

if TYPE_CHECKING:
    import torch


_SETTINGS = ("seconds", "shapes", "lengths", "only", "device", "clock", "csv", "table")
SHAPES: tuple[Shape, ...] = ((64, 20, 64, 4), (8, 256, 256, 8), (2, 1024, 256, 8))
LENGTHS = (2048, 4096, 8192, 16384)
_CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def main(arguments: Sequence[str]) -> int:
    """Time, print the tables, and write the CSV if asked."""
    settings, rest = split(arguments, _SETTINGS)
    no_more(rest, _SETTINGS)
    seconds = whole_number("seconds", settings.get("seconds", "1"), low=1, high=600)
    shapes = _read_shapes(settings["shapes"]) if "shapes" in settings else SHAPES
    lengths = _read_lengths(settings["lengths"]) if "lengths" in settings else LENGTHS
    if settings.get("table", "markdown") != "markdown":
        raise UserError(f"table must be markdown, got {settings['table']!r}")
    clock = settings.get("clock", "wall")
    if clock not in _CLOCKS:
        raise UserError(f"clock must be wall or cpu, got {clock!r}")

    from rich.progress import track

    from mha_lab.bench.zoo_cases import LINEAR, cases
    from mha_lab.bench.zoo_timing import time_case, time_long

    chosen = cases(settings.get("only"))
    device = find_device(settings.get("device"))
    if clock == "cpu":
        _use_one_thread(device)
    csv = writable(settings["csv"]) if "csv" in settings else None
    rows = [
        time_case(case, shape, seconds=seconds, device=device, clock=_CLOCKS[clock])
        for case in track(chosen, "timing", transient=True)
        for shape in shapes
    ]
    long = [case.name for case in chosen if case.name in LINEAR]
    long_rows = [
        row
        for length in track(lengths if long else (), "timing long ones", transient=True)
        for row in time_long(long, length, seconds=seconds, device=device, clock=_CLOCKS[clock])
    ]
    print(machine(device))
    if rows:
        _show_cases(rows, shapes, settings)
    if long_rows:
        _show_long(long_rows, settings)
    if csv is not None:
        from mha_lab.training.run_folder import write_rows

        write_rows(csv, rows + long_rows)
    return 0


def _show_cases(
    rows: Sequence[dict[str, Any]], shapes: Sequence[Shape], settings: dict[str, str]
) -> None:
    named = [", ".join(map(str, shape)) for shape in shapes]
    columns = ["option", "call", "note"]
    columns += [f"{what} at {shape}" for shape in named for what in ("time", "memory")]
    show(_wide(rows), columns, numeric=2 * len(shapes), **settings)


def _show_long(rows: Sequence[dict[str, Any]], settings: dict[str, str]) -> None:
    columns = ["mechanism", "N, L, E, H", "custom, ms", "its, ms", "time", "memory", "growth"]
    keys = ("option", "shape", "custom_ms", "ms", "time", "memory")
    cells, before = [], dict[str, float]()
    for row in sorted(rows, key=lambda row: row["option"]):
        shorter = before.get(row["option"])
        growth = "" if shorter is None else cell(row["ms"] / shorter)
        cells.append([*(cell(row[key]) for key in keys), growth])
        before[row["option"]] = row["ms"]
    show(cells, columns, numeric=5, **settings)


def _use_one_thread(device: "torch.device") -> None:
    """Make the time of the processor that of a program that has it to itself."""
    import torch

    if device.type != "cpu":
        raise UserError("clock=cpu tells nothing of a GPU; leave it out, or choose device=cpu")
    torch.set_num_threads(1)


def _wide(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A row for each option, with the ratios at each shape beside one another."""
    wide: dict[str, list[str]] = {}
    for row in rows:
        cells = wide.setdefault(row["option"], [row["option"], row["call"], row["note"]])
        cells += [cell(row["time"]), cell(row["memory"])]
    return list(wide.values())


def _read_shapes(text: str) -> tuple[Shape, ...]:
    return () if text == "none" else tuple(read_shapes(text))


def _read_lengths(text: str) -> tuple[int, ...]:
    if text == "none":
        return ()
    lengths = tuple(int(word) if word.isdecimal() else 0 for word in text.split(","))
    if min(lengths) < 2:
        raise UserError(
            f"lengths must be whole numbers from 2 on, like 2048,4096, or none; got {text!r}"
        )
    return lengths
