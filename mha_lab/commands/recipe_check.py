"""``--config-dir FOLDER --config-name NAME``: a whole recipe of a folder is read, not typed.

A sweep's ``best.yaml`` is one. Hydra imports and calls what stands below ``hydra`` before any code
of ours runs, so the recipe and the options beside it are looked through before Hydra sees them.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mha_lab.config import config_folder, groups, read_yaml
from mha_lab.errors import UserError

_FOLDER, _NAME = ("-cd", "--config-dir"), ("-cn", "--config-name")


def check_recipe(arguments: Sequence[str], trusted: Sequence[str]) -> None:
    """Look through the recipe that a command line names, if it names one.

    Args:
        arguments: the words after ``train``.
        trusted: modules that it may name besides this project's own options.

    Raises:
        UserError: it cannot be read, sets Hydra itself, or names what is not trusted.
    """
    name, folder = _value(arguments, _NAME), _value(arguments, _FOLDER)
    if name is None or folder is None:
        return
    file = name if name.endswith(".yaml") else f"{name}.yaml"
    if (config_folder() / file).is_file():
        return  # the project's own comes first
    recipe = Path(folder) / file
    if not recipe.is_file():
        raise UserError(f"no recipe at {str(recipe)!r}: {_NAME[1]} names a YAML of {_FOLDER[1]}")
    options = [found for group in groups() for found in Path(folder, group).rglob("*.yaml")]
    for found in (recipe, *options):
        tree = OmegaConf.to_container(read_yaml(found, trusted), resolve=False)
        if _sets_hydra(tree, found.read_text(encoding="utf-8")):
            raise UserError(
                f"{str(found)!r} sets hydra, which can run code before anything is checked: "
                "give hydra.KEY=VALUE on the command line, and take it out of the file"
            )


def _value(arguments: Sequence[str], option: tuple[str, ...]) -> str | None:
    """What an option is given, in either spelling; the last one counts, as it does to Hydra."""
    value = None
    for place, word in enumerate(arguments):
        name, is_pair, text = word.partition("=")
        if name in option:
            value = text if is_pair else "".join(arguments[place + 1 : place + 2])
    return value


def _sets_hydra(tree: Any, text: str) -> bool:
    if not isinstance(tree, dict):
        return False
    places = re.findall(r"^\s*#\s*@package\s+(\S+)", text, re.MULTILINE)
    names = [*places, *(str(key) for key in tree), *_words(tree.get("defaults"))]
    return any("hydra" in name.lower() for name in names)


def _words(defaults: Any) -> list[str]:
    """The groups of a defaults list, as they are spelled."""
    words: list[str] = []
    for entry in defaults if isinstance(defaults, list) else []:
        words += map(str, entry) if isinstance(entry, dict) else [str(entry)]
    return words
