"""Run the numeric tests as processors of other kinds would compute them.

Usage:
  python tests/processors.py [words for pytest]

PyTorch and its libraries choose their code by what the processor can do, and sum in another order
with other vectors and with more threads. `make test` is the pass of this processor as it is, with
one thread; here it plays the older kinds, and has two threads. Tests that compare no rounded
numbers are left out. `make test-processors` does this.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

NUMERIC = ("attention", "positions", "models", "recording")
NOT_ROUNDED = (  # words in names of tests
    "gradcheck", "second_derivative", "several_gradients",  # float64, against finite differences
    "draw", "plot", "picture",
    "traced", "export", "matrix_of_the_length", "never_made", "kept_alive",  # graphs and memory
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of processor: what PyTorch, MKL and oneDNN call it, and whether this one can play it.

    Without oneDNN PyTorch multiplies by MKL or by its own loops, as on a processor that it
    does not know.
    """

    pytorch: str
    mkl: str
    onednn: str
    is_here: bool = True
    uses_onednn: bool = True


OLD = Kind("default", "SSE4_2", "SSE41", uses_onednn=False)
AVX2 = Kind("avx2", "AVX2", "AVX2", torch.cpu._is_avx2_supported())
AVX512 = Kind("avx512", "AVX512", "AVX512_CORE", torch.cpu._is_avx512_supported())
PASSES = ((OLD, 1), (AVX2, 1), (AVX512 if AVX512.is_here else AVX2, 2))


def environment(kind: Kind, threads: int) -> dict[str, str]:
    """What makes the libraries compute as this kind of processor."""
    return {
        **os.environ,
        "ATEN_CPU_CAPABILITY": kind.pytorch,
        "MKL_ENABLE_INSTRUCTIONS": kind.mkl,
        "ONEDNN_MAX_CPU_ISA": kind.onednn,
        "MHA_LAB_TEST_ONEDNN": str(int(kind.uses_onednn)),
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "passive",  # others want the core that a waiting thread would spin on
    }


def main(words: list[str]) -> int:
    """Run every pass; the exit code of the first that fails."""
    here = Path(__file__).parent
    folders = [str(here / name) for name in NUMERIC]
    chosen = ["-k", " and ".join(f"not {word}" for word in NOT_ROUNDED), *folders, *words]
    for kind, threads in PASSES:
        if not kind.is_here:
            print(f"{kind.pytorch}, {threads} threads: skipped, this processor has no such vectors")
            continue
        started = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-n", "logical", *chosen]
        done = subprocess.run(command, env=environment(kind, threads), check=False)
        took = f"{time.monotonic() - started:.0f} s"
        print(f"{kind.pytorch}, {threads} threads: exit code {done.returncode}, {took}", flush=True)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
