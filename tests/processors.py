"""Run the numeric tests as processors of other kinds would compute them.

Usage:
  python tests/processors.py [words for pytest]

PyTorch and its libraries choose their code by what the processor can do, and sum in another order
with other vectors and with more threads. Each kind that this processor can play is tried, with one
thread and with two; the others are named. `make test-processors` does this.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import torch

NUMERIC = ("attention", "positions", "models", "recording")
KINDS = {  # PyTorch's name: that of MKL, that of oneDNN, whether this processor is one
    "default": ("SSE4_2", "SSE41", True),
    "avx2": ("AVX2", "AVX2", torch.cpu._is_avx2_supported()),
    "avx512": ("AVX512", "AVX512_CORE", torch.cpu._is_avx512_supported()),
}
PASSES = (("default", 1), ("avx2", 1), ("avx2", 2), ("avx512", 1), ("avx512", 2))


def environment(kind: str, threads: int) -> dict[str, str]:
    """What makes the libraries compute as this kind of processor."""
    mkl, onednn, _ = KINDS[kind]
    return {
        **os.environ,
        "ATEN_CPU_CAPABILITY": kind,
        "MKL_ENABLE_INSTRUCTIONS": mkl,
        "ONEDNN_MAX_CPU_ISA": onednn,
        "OMP_NUM_THREADS": str(threads),
    }


def main(words: list[str]) -> int:
    """Run every pass; the exit code of the first that fails."""
    here = Path(__file__).parent
    folders = [str(here / name) for name in NUMERIC if (here / name).is_dir()]
    for kind, threads in PASSES:
        if not KINDS[kind][2]:
            print(f"{kind}, {threads} threads: skipped, this processor has no {kind}", flush=True)
            continue
        started = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-n", "logical"]
        done = subprocess.run([*command, *folders, *words], env=environment(kind, threads))
        took = f"{time.monotonic() - started:.0f} s"
        print(f"{kind}, {threads} threads: exit code {done.returncode}, {took}", flush=True)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
