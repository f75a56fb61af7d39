"""All mechanisms, parts, encodings, models, tasks and experiments, a line each.

Usage:
  python -m mha_lab list                     every group
  python -m mha_lab list attention position  one group, or several
  python -m mha_lab list --config-dir DIR    with the options of a folder of your own

What each mechanism and encoding computes, and where it comes from: docs/mechanisms.md and
docs/positions.md.
"""

import sys
from collections.abc import Sequence

from mha_lab.errors import UserError, nearest
from mha_lab.terminal import wrapped

_LEADS = ("attention", "position", "model", "task", "experiment", "sweep")
_TITLES = {"attention": "mechanisms", "position": "encodings", "experiment": "whole recipes"}


def main(arguments: Sequence[str]) -> int:
    """Print the groups and their options."""
    from mha_lab.config import groups, options, own_positions

    known = groups()
    for word in arguments:
        if word not in known:
            raise UserError(
                f"unknown group {word!r}{nearest(word, known)} (there are: {', '.join(known)})"
            )
    for group in arguments or sorted(known, key=_rank):
        found = options(group)
        width = max(15, *(len(name) for name in found))
        print(_heading(group))
        own = own_positions(group)
        for name, line in found.items():
            brings = f"; position of its own: {own[name]}" if name in own else ""
            print(wrapped(f"  {name:<{width}}  {line}{brings}", sys.stdout, indent=width + 4))
    return 0


def _rank(group: str) -> tuple[int, str]:
    """A mechanism's parts follow it; what a run is made of comes before how it is run."""
    first = group.split("/")[0]
    return (_LEADS.index(first) if first in _LEADS else len(_LEADS), group)


def _heading(group: str) -> str:
    from mha_lab.config import WITH_PARTS, options

    whole, _, part = group.partition("/")
    has_parts = bool(part) and WITH_PARTS in options(whole)
    title = f"parts of {whole}={WITH_PARTS}" if has_parts else _TITLES.get(group, "")
    prefix = "+" if group == "experiment" else ""
    return f"{prefix}{group}=" + (f"  ({title})" if title else "")
