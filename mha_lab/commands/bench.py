"""Time this project against torch, alternating in one process, as ratios.

Usage:
  python -m mha_lab bench attention   our MultiheadAttention against torch's
  python -m mha_lab bench loop        the training harness against a bare PyTorch loop
  python -m mha_lab bench recording   training with attention maps against training without
  python -m mha_lab bench sweep       eight trials as one sweep against eight runs
  python -m mha_lab bench pruning     what pruning saves of a search, and what it misses

`python -m mha_lab bench attention --help` tells each one's settings.
"""

import importlib
from collections.abc import Sequence

from mha_lab.errors import UserError, nearest

_BENCHES = ("attention", "loop", "recording", "sweep", "pruning")


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that is named first."""
    if not arguments:
        raise UserError(f"bench needs to know which: {', '.join(_BENCHES)}")
    which, *rest = arguments
    if which not in _BENCHES:
        raise UserError(
            f"unknown benchmark {which!r}{nearest(which, _BENCHES)} "
            f"(there are: {', '.join(_BENCHES)})"
        )
    module = importlib.import_module(f"mha_lab.bench.{which}")
    return int(module.main(rest))
