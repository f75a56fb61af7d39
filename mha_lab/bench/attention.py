"""Our MultiheadAttention against torch's, alternating in one process.

Usage:
  python -m mha_lab bench attention [seconds=2] [shapes=64x20x64x4,2x1024x256x8] [device=cpu]
      [csv=FILE] [table=markdown]

For each shape (batch, length, width, heads), weights off, averaged and per head, with and without
a padding mask, forward in evaluation and forward + backward in training: the medians of both in
milliseconds, their ratio (below 1: ours is faster), and the ratio of the additional peak memory.
Last, what torch's matrix products and its fused kernel take alone, weights off: no module that
calls them can take less.
seconds= is the time for each of these cases; device= is a GPU where there is one.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from mha_lab.arguments import no_more, split, whole_number
from mha_lab.bench.shapes import Shape, read_shapes
from mha_lab.bench.tables import cell, find_device, machine, show, writable
from mha_lab.bench.timing import MODES, WEIGHTS, time_case, time_kernels
from mha_lab.errors import UserError

_SETTINGS = ("seconds", "shapes", "device", "csv", "table")
SHAPES: tuple[Shape, ...] = ((64, 20, 64, 4), (4, 100, 512, 8), (8, 256, 256, 8), (2, 1024, 256, 8))
_COLUMNS = ("weights", "mode", "padding", "N, L, E, H", "torch, ms", "ours, ms", "time", "memory")
_KERNEL_COLUMNS = ("mode", "N, L, E, H", "torch, ms", "its kernels, ms", "time")


def main(arguments: Sequence[str]) -> int:
    """Time, print the table and its geometric means, and write the CSV if asked."""
    settings, rest = split(arguments, _SETTINGS)
    no_more(rest, _SETTINGS)
    seconds = whole_number("seconds", settings.get("seconds", "2"), low=1, high=600)
    shapes = read_shapes(settings["shapes"]) if "shapes" in settings else SHAPES
    if settings.get("table", "markdown") != "markdown":
        raise UserError(f"table must be markdown, got {settings['table']!r}")

    from rich.progress import track

    device = find_device(settings.get("device"))
    csv = writable(settings["csv"]) if "csv" in settings else None
    cases = [
        (weights, mode, is_padded, shape)
        for weights in WEIGHTS
        for mode in MODES
        for is_padded in (False, True)
        for shape in shapes
    ]
    try:
        rows = [
            time_case(*case, seconds=seconds, device=device)
            for case in track(cases, "timing", transient=True)
        ]
        least = [
            time_kernels(mode, shape, seconds=seconds, device=device)
            for mode in MODES
            for shape in track(shapes, f"timing kernels, {mode}", transient=True)
        ]
    except RuntimeError as error:  # PyTorch has no class of its own for want of memory on a CPU
        if "memory" not in str(error):
            raise
        raise UserError(f"a shape is too large for the memory of {device}") from error
    print(machine(device))
    show([list(map(cell, row.values())) for row in rows], _COLUMNS, numeric=4, **settings)
    show(_means(rows), ("weights", "mode", "geometric mean", "largest"), numeric=2, **settings)
    show([list(map(cell, row.values())) for row in least], _KERNEL_COLUMNS, numeric=3, **settings)
    if csv is not None:
        from mha_lab.training.run_folder import write_rows

        write_rows(csv, rows)
    return 0


def _means(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    means = []
    for weights in WEIGHTS:
        for mode in MODES:
            ratios = [r["ratio"] for r in rows if (r["weights"], r["mode"]) == (weights, mode)]
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            means.append([weights, mode, f"{mean:.2f}", f"{max(ratios):.2f}"])
    return means
