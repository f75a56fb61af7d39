"""``--config-dir FOLDER --config-name NAME``: a whole recipe of a folder is read, not typed.

A sweep's ``best.yaml`` is one. Hydra imports and calls what stands below ``hydra`` before any code
of ours runs, so the recipe and the options beside it are looked through before Hydra sees them: in
every folder that Hydra would search, those of ``MHA_LAB_CONFIG_DIR`` too.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mha_lab.config import OWN_FOLDERS, config_folder, groups, own_folders, read_yaml
from mha_lab.errors import UserError

_FOLDER, _NAME = ("-cd", "--config-dir"), ("-cn", "--config-name")
_SEARCH_PATH = "hydra.searchpath"


def check_recipe(arguments: Sequence[str], trusted: Sequence[str]) -> None:
    """Look through the recipe that a command line names, if it names one.

    Args:
        arguments: the words after ``train``.
        trusted: modules that it may name besides this project's own options.

    Raises:
        UserError: it cannot be read, sets Hydra itself, or names what is not trusted.
    """
    if any(word.lstrip("+~").partition("=")[0] == _SEARCH_PATH for word in arguments):
        raise UserError(f"{_SEARCH_PATH} cannot be set: name a folder of options by {_FOLDER[1]}")
    name, folder = _value(arguments, _NAME), _value(arguments, _FOLDER)
    if name is None:
        return
    file = name if name.endswith(".yaml") else f"{name}.yaml"
    if (config_folder() / file).is_file():
        return  # the project's own comes first
    if "/" in name:  # its defaults would be those of that folder
        raise UserError(f"{_NAME[1]} {name}: name a YAML in {_FOLDER[1]} itself, not below it")
    folders = list(dict.fromkeys([*([Path(folder)] if folder else []), *own_folders()]))
    recipes = [place / file for place in folders if (place / file).is_file()]
    if not recipes:
        places = ", ".join(repr(str(place / file)) for place in folders) or "any folder"
        raise UserError(
            f"no recipe at {places}: {_NAME[1]} names a YAML of {_FOLDER[1]} or {OWN_FOLDERS}"
        )
    for found in [*recipes, *(option for place in folders for option in _options(place))]:
        tree = OmegaConf.to_container(read_yaml(found, trusted), resolve=False)
        if _sets_hydra(tree, found.read_text(encoding="utf-8")):
            raise UserError(
                f"{str(found)!r} sets hydra, which can run code before anything is checked: "
                "give hydra.KEY=VALUE on the command line, and take it out of the file"
            )
        for word in _strange(tree, is_recipe=found in recipes):
            raise UserError(
                f"{str(found)!r} asks for {word!r} in its defaults, which is no config group: "
                f"only options of groups are looked through (there are: {', '.join(groups())})"
            )


def _options(folder: Path) -> Iterator[Path]:
    """What a recipe may choose from its folder."""
    for group in groups():
        if "/" not in group:  # those below it are found with it
            yield from sorted((folder / group).rglob("*.yaml"))


def _strange(tree: Any, *, is_recipe: bool) -> Iterator[str]:
    """What a defaults list would read from elsewhere than the groups' folders."""
    for word in _words(tree.get("defaults") if isinstance(tree, dict) else None):
        path = word.rpartition(" ")[2].partition("@")[0]
        first, *_ = path.lstrip("/").split("/")
        is_absolute = is_recipe or path.startswith("/")
        known = first in (*groups(), "_self_", "train") or not is_absolute
        if not known or ".." in word or "$" in word:
            yield word


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
    """The groups and options of a defaults list, as they are spelled."""
    words: list[str] = []
    for entry in defaults if isinstance(defaults, list) else []:
        if not isinstance(entry, dict):
            words.append(str(entry))
            continue
        for group, chosen in entry.items():
            options = chosen if isinstance(chosen, list) else [chosen]
            words += [str(group), *(f"{group}/{option}" for option in options)]
    return words
