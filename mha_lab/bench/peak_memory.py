"""The most memory that a call has allocated at one time, beyond what there was before."""

import os
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile


def peak_bytes(call: Callable[[], object], device: torch.device) -> int:
    """Run a call and follow what it allocates.

    Args:
        call: What to run. Run it once before, so that what stays for good is not counted.
        device: Where its tensors lie.

    Returns:
        Bytes; on a CPU as PyTorch's allocator is asked for them, so the same in every run.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        call()
        return torch.cuda.max_memory_allocated(device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else each run prints when it began and ended
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    total = peak = 0
    assert profiler.profiler is not None
    events = profiler.profiler.kineto_results.events()
    for event in sorted(events, key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            total += event.nbytes()
            peak = max(peak, total)
    return peak
