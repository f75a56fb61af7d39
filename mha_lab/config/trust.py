"""What a file may name to be built: the project's own options, and what its user trusts by name.

Building a ``_target_`` imports and calls it, and a run's folder may be a stranger's. So what is
read from a file is looked through before anything of it is imported: the targets that the config
tree itself names are this project's; any other needs ``trust=MODULE`` on the command line. What is
typed there, or chosen by its name from a ``--config-dir``, is the user's own and not asked about.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from mha_lab.errors import UserError, shown

TARGET = "_target_"
SETTING = "trust"
"""The word of the command line: ``trust=MODULE[,MODULE...]``."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_REFERENCE = re.compile(r"\$\{[\w.-]+\}")


@cache
def own_targets(tree: Path) -> frozenset[str]:
    """Every target that a YAML of a config tree names."""
    files = tree.rglob("*.yaml")
    contents = [yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader) for file in files]
    return frozenset(str(target) for content in contents for _, target in targets(content))


def targets(tree: Any) -> Iterator[tuple[str, Any]]:
    """Each target of nested dicts and lists, with the dotted key where it stands."""
    for key, value in entries(tree):
        if key.rpartition(".")[2] == TARGET:
            yield key, value


def entries(tree: Any) -> Iterator[tuple[str, Any]]:
    """Everything in nested dicts and lists, inner nodes too, with its dotted key."""
    waiting = [("", tree)]
    while waiting:
        prefix, node = waiting.pop()
        if isinstance(node, dict):
            items = [(f"{prefix}.{key}".lstrip("."), value) for key, value in node.items()]
        elif isinstance(node, list):
            items = [(f"{prefix}[{index}]", value) for index, value in enumerate(node)]
        else:
            continue
        yield from items
        waiting += items


def modules(text: str | None) -> tuple[str, ...]:
    """Read ``trust=``.

    Raises:
        UserError: not the names of modules.
    """
    names = tuple(text.split(",")) if text else ()
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise UserError(f"{SETTING}= takes names of modules, e.g. my_variants, got {name!r}")
    return names


def check(tree: Any, file: Path, own: frozenset[str], trusted: Sequence[str] = ()) -> None:
    """Look through what was read from a file, before anything that it names is imported.

    Args:
        tree: its content, as nested dicts and lists.
        file: named in a refusal.
        own: the targets that need no trust.
        trusted: modules whose content is trusted as well.

    Raises:
        UserError: a target of neither kind, or a value that would run one of OmegaConf's functions,
            which could make a target, or read the environment.
    """
    for key, value in entries(tree):
        for text in (key, value):
            if isinstance(text, str) and "${" in _REFERENCE.sub("", text):
                raise UserError(
                    f"{str(file)!r}: {key!r} asks for a function in {shown(text)}, and only "
                    "${other.keys} are read from a file: write the value itself"
                )
    for key, target in targets(tree):
        if isinstance(target, str) and (
            target in own or any(target.startswith(f"{name}.") for name in trusted)
        ):
            continue
        module = target.rpartition(".")[0] if isinstance(target, str) else ""
        raise UserError(
            f"{str(file)!r} names {key}={shown(target)}, which is none of this project's own "
            "options, and running what a file names can do anything: if you know who wrote it "
            f"and trust it, add {SETTING}={module or 'MODULE'}"
        )
