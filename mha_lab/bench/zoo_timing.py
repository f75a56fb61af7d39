"""One mechanism or encoding, or those for long sequences, timed in turn with custom."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from mha_lab.bench.peak_memory import peak_bytes
from mha_lab.bench.shapes import Shape
from mha_lab.bench.timing import alternate
from mha_lab.bench.zoo_cases import Case, base_step, made, step
from mha_lab.config import costs

LONG = (1, 256, 8)
"""N, E and H at long lengths."""


def time_case(
    case: Case,
    shape: Shape,
    *,
    seconds: float,
    device: torch.device,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Compare one option with custom.

    Args:
        case: The option.
        shape: N, L, E, H.
        seconds: How long the two take turns.
        device: Where.
        clock: What tells how long a call took, in seconds.

    Returns:
        The option, the call, the medians in milliseconds, and the ratios of time and memory.
    """
    module = made(case, shape, device)
    own, base = step(module, shape, device), base_step(shape, device, is_causal=module.is_causal)
    base_ms, own_ms = alternate(
        base, own, seconds=seconds, device=device, least=3, warm_up=2, clock=clock
    )
    return {
        "option": f"{case.group}={case.name}",
        "call": "causal" if module.is_causal else "both ways",
        "shape": ", ".join(map(str, shape)), "custom_ms": base_ms, "ms": own_ms,
        "time": own_ms / base_ms, "memory": peak_bytes(own, device) / peak_bytes(base, device),
        "note": costs(case.group).get(case.name, ""),
    }  # fmt: skip


def time_long(
    names: Sequence[str],
    length: int,
    *,
    seconds: float,
    device: torch.device,
    clock: Callable[[], float] = time.perf_counter,
) -> list[dict[str, Any]]:
    """Compare mechanisms with custom at one length, all of them in turn, causal.

    Args:
        names: Options of ``attention``.
        length: L.
        seconds: How long each has.
        device: Where.
        clock: What tells how long a call took, in seconds.

    Returns:
        A row for each, as ``time_case`` gives.
    """
    N, E, H = LONG
    shape = (N, length, E, H)
    steps = [base_step(shape, device, is_causal=True)]
    for name in names:
        module = made(Case("attention", name), shape, device)
        module.is_causal = True
        steps.append(step(module, shape, device))
    times = alternate(
        *steps,
        seconds=seconds * len(steps),
        device=device,
        least=2,
        warm_up=1,
        clock=clock,
    )
    peaks = [peak_bytes(one, device) for one in steps]
    return [
        {
            "option": f"attention={name}", "call": "causal", "shape": ", ".join(map(str, shape)),
            "custom_ms": times[0], "ms": ms, "time": ms / times[0], "memory": peak / peaks[0],
            "note": "",
        }
        for name, ms, peak in zip(names, times[1:], peaks[1:], strict=True)
    ]  # fmt: skip
