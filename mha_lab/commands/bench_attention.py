"""Time our MultiheadAttention against torch's, alternating in one process.

Usage:
  python -m mha_lab bench attention [seconds=1] [csv=FILE]

For each shape (N, L, E, H), weights off, averaged and per head, with and without a padding mask,
forward in evaluation and forward + backward in training: the medians of both, and their ratio
(below 1: ours is faster). seconds= is the time for each of these.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mha_lab.commands.arguments import no_more, split, whole_number

_SETTINGS = ("seconds", "csv")
SHAPES = ((64, 20, 64, 4), (4, 100, 512, 8), (8, 256, 256, 8), (2, 1024, 256, 8))
WEIGHTS: dict[str, dict[str, bool]] = {
    "off": {"need_weights": False},
    "averaged": {"need_weights": True, "average_attn_weights": True},
    "per head": {"need_weights": True, "average_attn_weights": False},
}


def main(arguments: Sequence[str]) -> int:
    """Time, print the table and its geometric means, and write the CSV if asked."""
    settings, rest = split(arguments, _SETTINGS)
    no_more(rest, _SETTINGS)
    seconds = whole_number("seconds", settings.get("seconds", "1"), low=1, high=600)

    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    cases = [
        (weights, mode, is_padded, shape)
        for weights in WEIGHTS
        for mode in ("train", "eval")
        for is_padded in (False, True)
        for shape in SHAPES
    ]
    rows = [time_case(*case, seconds=seconds) for case in track(cases, "timing", transient=True)]
    table = Table("weights", "mode", "padding", "N, L, E, H", "torch, ms", "ours, ms", "ratio")
    for row in rows:
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()))
    console = Console()
    console.print(table)
    for weights in WEIGHTS:
        for mode in ("train", "eval"):
            ratios = [r["ratio"] for r in rows if (r["weights"], r["mode"]) == (weights, mode)]
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"{weights:<9} {mode:<6} geometric mean {mean:.2f}, largest {max(ratios):.2f}")
    if "csv" in settings:
        from mha_lab.training.run_folder import write_rows

        write_rows(Path(settings["csv"]), rows)
    return 0


def time_case(
    weights: str, mode: str, is_padded: bool, shape: tuple[int, int, int, int], *, seconds: float
) -> dict[str, Any]:
    """Time torch's module and ours in turn on one case; medians in milliseconds."""
    import torch
    from torch import nn

    from mha_lab.attention.multihead import MultiheadAttention

    N, L, E, H = shape
    theirs = nn.MultiheadAttention(E, H, batch_first=True)
    ours = MultiheadAttention(E, H)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(N, L, E, requires_grad=mode == "train")
    gradient = torch.randn_like(x)
    call: dict[str, Any] = dict(WEIGHTS[weights])
    if is_padded:
        call["key_padding_mask"] = torch.arange(L) >= torch.randint(L // 2, L + 1, (N, 1))

    def step(module: nn.Module) -> Callable[[], None]:
        module.train(mode == "train")

        def run() -> None:
            with torch.set_grad_enabled(mode == "train"):
                output = module(x, x, x, **call)[0]
            if mode == "train":
                output.backward(gradient)
                module.zero_grad()
                x.grad = None

        return run

    torch_ms, our_ms = _alternate(step(theirs), step(ours), seconds)
    return {
        "weights": weights, "mode": mode, "padding": "yes" if is_padded else "no",
        "shape": ", ".join(map(str, shape)),
        "torch_ms": torch_ms, "ours_ms": our_ms, "ratio": our_ms / torch_ms,
    }  # fmt: skip


def _alternate(
    first: Callable[[], None], second: Callable[[], None], seconds: float
) -> tuple[float, float]:
    """Median milliseconds of two calls that take turns for a time, after two rounds of warm-up."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(2):
        first()
        second()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[0]) < 5:
        for call, times in zip((first, second), taken, strict=True):
            since = time.perf_counter()
            call()
            times.append(1000 * (time.perf_counter() - since))
    return statistics.median(taken[0]), statistics.median(taken[1])
