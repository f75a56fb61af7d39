"""One case of torch's attention module and ours, timed in turn."""

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mha_lab.bench.shapes import Shape

if TYPE_CHECKING:
    import torch
    from torch import nn

WEIGHTS: dict[str, dict[str, bool]] = {
    "off": {"need_weights": False},
    "averaged": {"need_weights": True, "average_attn_weights": True},
    "per head": {"need_weights": True, "average_attn_weights": False},
}
MODES = ("train", "eval")


def time_case(
    weights: str,
    mode: str,
    is_padded: bool,
    shape: Shape,
    *,
    seconds: float,
    device: "torch.device | None" = None,
) -> dict[str, Any]:
    """Compare torch's module and ours on one case.

    Args:
        weights: A key of ``WEIGHTS``.
        mode: "train" (forward and backward) or "eval" (forward alone).
        is_padded: Whether keys beyond a sample's length are blocked; lengths are spread evenly
            from L / 2 to L.
        shape: N, L, E, H of a self-attention.
        seconds: How long the two take turns.
        device: Where; None means the CPU.

    Returns:
        The case, the medians in milliseconds, and the ratios of time and additional peak memory.
    """
    import torch
    from torch import nn

    from mha_lab.attention.multihead.module import MultiheadAttention
    from mha_lab.bench.peak_memory import peak_bytes

    device = device or torch.device("cpu")
    N, L, E, H = shape
    theirs = nn.MultiheadAttention(E, H, batch_first=True, device=device)
    ours = MultiheadAttention(E, H, device=device)
    ours.load_state_dict(theirs.state_dict())
    call: dict[str, Any] = dict(WEIGHTS[weights])
    if is_padded:
        lengths = torch.linspace(L / 2, L, N, device=device).round()
        call["key_padding_mask"] = torch.arange(L, device=device) >= lengths[:, None]
    their_step, our_step = (_step(one, call, shape, mode, device) for one in (theirs, ours))
    torch_ms, our_ms = alternate(their_step, our_step, seconds=seconds, device=device)
    torch_bytes, our_bytes = peak_bytes(their_step, device), peak_bytes(our_step, device)
    return {
        "weights": weights, "mode": mode, "padding": "yes" if is_padded else "no",
        "shape": ", ".join(map(str, shape)),
        "torch_ms": torch_ms, "ours_ms": our_ms, "ratio": our_ms / torch_ms,
        "memory_ratio": our_bytes / torch_bytes,
    }  # fmt: skip


def time_kernels(
    mode: str, shape: Shape, *, seconds: float, device: "torch.device"
) -> dict[str, Any]:
    """Compare torch's module, without weights and padding, with its kernels alone.

    Args:
        mode: "train" (forward and backward) or "eval" (forward alone).
        shape: N, L, E, H of a self-attention.
        seconds: How long the two take turns.
        device: Where.

    Returns:
        The case, the medians in milliseconds, and their ratio.
    """
    from torch import nn

    from mha_lab.bench.kernels import kernels_step

    module = nn.MultiheadAttention(shape[2], shape[3], batch_first=True, device=device)
    whole = _step(module, dict(WEIGHTS["off"]), shape, mode, device)
    torch_ms, kernels_ms = alternate(
        whole, kernels_step(shape, mode, device), seconds=seconds, device=device
    )
    return {
        "mode": mode, "shape": ", ".join(map(str, shape)),
        "torch_ms": torch_ms, "kernels_ms": kernels_ms, "ratio": kernels_ms / torch_ms,
    }  # fmt: skip


def _step(
    module: "nn.Module", call: dict[str, Any], shape: Shape, mode: str, device: "torch.device"
) -> Callable[[], None]:
    """One forward, and in training one backward with a gradient such as a next layer gives."""
    import torch

    is_training = mode == "train"
    x = torch.randn(shape[:3], device=device, requires_grad=is_training)
    gradient = torch.randn_like(x)
    module.train(is_training)

    def run() -> None:
        with torch.set_grad_enabled(is_training):
            output = module(x, x, x, **call)[0]
        if is_training:
            output.backward(gradient)
            module.zero_grad()
            x.grad = None

    return run


def alternate(
    *calls: Callable[[], None],
    seconds: float,
    device: "torch.device",
    least: int = 5,
    warm_up: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, ...]:
    """Time calls that take turns.

    Args:
        calls: What to run.
        seconds: For how long.
        device: Where they run.
        least: How many rounds at least.
        warm_up: How many rounds before those that count.
        clock: What tells how long a call took, in seconds.

    Returns:
        The median of each, in milliseconds.
    """
    import torch

    def run(call: Callable[[], None]) -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        since = clock()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return 1000 * (clock() - since)

    for _ in range(warm_up):
        for call in calls:
            run(call)
    rounds: list[list[float]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(rounds) < least:
        rounds.append([run(call) for call in calls])
    return tuple(statistics.median(times) for times in zip(*rounds, strict=True))
