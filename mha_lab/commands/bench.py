"""Time this project against torch, alternating in one process, as ratios.

Usage:
  python -m mha_lab bench attention   our MultiheadAttention against torch's
  python -m mha_lab bench zoo         every mechanism and encoding against our MultiheadAttention
  python -m mha_lab bench loop        the training harness against a bare PyTorch loop
  python -m mha_lab bench recording   training with attention maps against training without
  python -m mha_lab bench sweep       eight trials as one sweep against eight runs
  python -m mha_lab bench pruning     what pruning saves of a search, and what it misses
  python -m mha_lab bench solve       minGPT's sort demo against ours, until all is right
  python -m mha_lab bench tasks       how fast each task makes its sequences
  python -m mha_lab bench decode      greedy decoding with a key-value cache against without
  python -m mha_lab bench view        how fast maps are seen, beside bertviz and Inspectus

`python -m mha_lab bench attention --help` tells each one's settings.
"""

import importlib
from collections.abc import Sequence
from types import ModuleType

from mha_lab.errors import UserError, nearest

_BENCHES = (
    "attention",
    "zoo",
    "loop",
    "recording",
    "sweep",
    "pruning",
    "solve",
    "tasks",
    "decode",
    "view",
)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that is named first."""
    if not arguments:
        raise UserError(f"bench needs to know which: {', '.join(_BENCHES)}")
    which, *rest = arguments
    return int(_load(which).main(rest))


def help_text(arguments: Sequence[str]) -> str:
    """What ``--help`` says: of the benchmark that is named, or of all."""
    named = [word for word in arguments if not word.startswith("-")]
    return str((_load(named[0]).__doc__ if named else __doc__) or "")


def _load(which: str) -> ModuleType:
    if which not in _BENCHES:
        raise UserError(
            f"unknown benchmark {which!r}{nearest(which, _BENCHES)} "
            f"(there are: {', '.join(_BENCHES)})"
        )
    return importlib.import_module(f"mha_lab.bench.{which}")
