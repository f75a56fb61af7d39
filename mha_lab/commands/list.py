"""All variants, models, tasks, encodings and experiments, a line each.

Usage:
  python -m mha_lab list            every group
  python -m mha_lab list attention  one group, or several
"""

from collections.abc import Sequence

from mha_lab.errors import UserError, nearest

_LEADS = ("attention", "model", "task", "position", "experiment", "sweep")


def main(arguments: Sequence[str]) -> int:
    """Print the groups and their options."""
    from mha_lab.config import groups, options

    known = groups()
    for word in arguments:
        if word not in known:
            raise UserError(
                f"unknown group {word!r}{nearest(word, known)} (there are: {', '.join(known)})"
            )
    chosen = arguments or [
        *(g for g in _LEADS if g in known),
        *(g for g in known if g not in _LEADS),
    ]
    for group in chosen:
        prefix = "+" if group == "experiment" else ""
        print(f"{prefix}{group}=")
        for name, line in options(group).items():
            print(f"  {name:<16} {line}")
    return 0
