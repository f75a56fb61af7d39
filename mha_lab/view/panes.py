"""What stands side by side: each list of maps by what to call it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mha_lab.view.fitting import Showable
from mha_lab.view.header import Header
from mha_lab.view.page import Part

MOST_PANES = 4

Maps = Showable | Iterable[Showable]
"""Several maps, or one."""


def named_maps(
    maps: Maps | Mapping[str, Maps] | None, before: Maps | None, after: Maps | None
) -> dict[str | None, list[Showable]]:
    """Each list of maps by its name; None leaves the name to the maps.

    Raises:
        TypeError: If something is given that is no map.
        ValueError: If a list is empty, or there are more than four.
    """
    named = _named(maps, before, after)
    for name, those in named.items():
        if not those:
            whose = "" if name is None or len(named) == 1 else f" of {name!r}"
            raise ValueError(f"there are no maps{whose} to show: the list is empty")
    if not named:
        raise ValueError("there are no maps to show: the list is empty")
    if len(named) > MOST_PANES:
        raise ValueError(
            f"{len(named)} lists of maps are too many to stand side by side: at most {MOST_PANES}; "
            f"leave out {', '.join(map(repr, list(named)[MOST_PANES:]))}, or show it in a page of "
            "its own"
        )
    return named


def told_apart(parts: Iterable[Part]) -> list[Part]:
    """The same parts, those that have one name at one step of one run with a number behind it.

    Two recordings of one model that were put into one list would else lie over each other.
    """
    found: Counter[tuple[str, str, int]] = Counter()
    apart = []
    for part in parts:
        key = (part.run, part.tag, part.step)
        found[key] += 1
        if found[key] > 1:
            behind = f" ({found[key]})"
            header = Header.from_json(part.header)
            header = replace(header, name=header.name + behind)
            part = part._replace(
                tag=part.tag + behind, name=part.name + behind, header=header.to_json()
            )
        apart.append(part)
    return apart


def _named(
    maps: Maps | Mapping[str, Maps] | None, before: Maps | None, after: Maps | None
) -> dict[str | None, list[Showable]]:
    if isinstance(maps, Mapping):
        if before is not None or after is not None:
            raise ValueError("give maps by name, or before= and after=, not both")
        return {str(name): _listed(f"the maps of {name!r}", those) for name, those in maps.items()}
    if before is None and after is None:
        if maps is None:
            return {}
        return {getattr(maps, "title", None): _listed("maps", maps)}
    named: dict[str | None, list[Showable]] = {}
    if before is not None:
        named["before"] = _listed("before", before)
    are_both_given = before is not None and after is not None
    if maps is not None and not (are_both_given and (maps is before or maps is after)):
        place = "between" if are_both_given else "after" if after is None else "before"
        named[place] = _listed("maps", maps)
    if after is not None:
        named["after"] = _listed("after", after)
    return named


def _listed(argument: str, those: Any) -> list[Showable]:
    """Several maps, or one, as a list."""
    if _is_map(those):
        return [those]
    listed = list(those) if isinstance(those, Iterable) and not hasattr(those, "ndim") else [those]
    for one in listed:
        if not _is_map(one):
            hint = "; join lists with +, or name them: {'a': ..., 'b': ...}" * (
                isinstance(one, Sequence) and not isinstance(one, str)
            )
            raise TypeError(
                f"{argument} holds {type(one).__name__} where a map belongs; show needs those that "
                f"record_attention or read_attention gave{hint}"
            )
    return listed


def _is_map(one: Any) -> bool:
    return hasattr(one, "part") and hasattr(one, "shape")
