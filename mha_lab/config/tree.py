"""The config tree: where it lies, and which groups, options and keys it has.

The folder ``configs/`` is the registry: one folder a group, one YAML an option. Everything that
needs the list of variants, models or tasks walks that folder.
"""

import os
import re
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from mha_lab.errors import UserError

OWN_FOLDERS = "MHA_LAB_CONFIG_DIR"
"""The environment variable that names folders of the user's own options."""

WITH_PARTS = "composed"
"""The option whose parts are groups of their own."""


def config_folder() -> Path:
    """The config tree: in the package where installed, beside the package in a checkout."""
    package = Path(__file__).parents[1]
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / "train.yaml").is_file():
            return folder
    raise UserError(
        f"the config tree is missing: neither {package / 'configs'} nor "
        f"{package.parent / 'configs'} holds train.yaml; install mha_lab again "
        f"(site-packages: {sysconfig.get_path('purelib')})"
    )


def own_folders() -> list[Path]:
    """Folders of the user's own options, which lie beside the project's: ``--config-dir``.

    They stand in the environment, so that processes that are started find them too.
    """
    named = os.environ.get(OWN_FOLDERS, "")
    return [Path(part) for part in named.split(os.pathsep) if part]


@contextmanager
def with_folder(folder: Path) -> Iterator[None]:
    """Meanwhile, let the options of a folder count among the others.

    Args:
        folder: of config groups, as ``configs/`` is.

    Raises:
        UserError: there is no such folder, or an option has the name of one of this project's.
    """
    if not folder.is_dir():
        raise UserError(f"--config-dir {folder}: there is no such folder")
    _refuse_names_taken(folder)
    before = os.environ.get(OWN_FOLDERS)
    os.environ[OWN_FOLDERS] = os.pathsep.join(map(str, [folder.resolve(), *own_folders()]))
    try:
        yield
    finally:
        if before is None:
            del os.environ[OWN_FOLDERS]
        else:
            os.environ[OWN_FOLDERS] = before


def _refuse_names_taken(folder: Path) -> None:
    """Hydra would take the project's option of that name, and not say so."""
    for group in groups():
        for file in sorted((folder / group).glob("*.yaml")):
            ours = config_folder() / group / file.name
            if ours.is_file() and ours.read_bytes() != file.read_bytes():
                raise UserError(
                    f"--config-dir {folder}: {group}={file.stem} is an option of this project, "
                    f"which would be taken in place of {str(file)!r}: give yours another name"
                )


def groups() -> list[str]:
    """The config groups: ``attention``, ``attention/weighting``, ``model``, ``task``, ..."""
    tree = config_folder()
    return sorted(
        folder.relative_to(tree).as_posix()
        for folder in tree.rglob("*")
        if folder.is_dir() and any(folder.glob("*.yaml"))
    )


def complete(overrides: Sequence[str]) -> list[str]:
    """Choose attention that has parts where a part of it is chosen and nothing else is said.

    Args:
        overrides: Hydra overrides, or the words of a command line.

    Returns:
        The same; with ``attention/weighting=sigmoid`` alone, ``attention=composed`` before it.
    """
    names = [word.partition("=")[0].lstrip("+") for word in overrides]
    parts = (name for name in names if name.count("/") == 1 and name in groups())
    wholes = {part.split("/")[0]: None for part in parts}
    chosen = (w for w in wholes if w not in names and WITH_PARTS in options(w))
    return [*(f"{whole}={WITH_PARTS}" for whole in chosen), *overrides]


def usual_run_dir() -> str:
    """The name that a run's folder is given, with what it is filled in from."""
    tree = OmegaConf.to_container(OmegaConf.load(config_folder() / "train.yaml"))
    return str(tree["hydra"]["run"]["dir"])  # type: ignore[call-overload,index]


def chosen_parts(cfg: DictConfig) -> list[str]:
    """What a run's attention has instead of what its option says: parts, another class."""
    choices = cfg.choices
    name = choices.get("attention")
    file = option_files("attention").get(name)
    option: Any = OmegaConf.load(file) if file else {}
    usual = option.get("defaults", []) if name == WITH_PARTS else []
    kept = {f"attention/{group}": part for one in usual for group, part in one.items()}
    parts = [choices[key] for key, part in kept.items() if choices.get(key, part) != part]
    target = OmegaConf.select(cfg, "attention._target_")
    if option.get("_target_") not in (None, target):
        parts.append(str(target).rpartition(".")[2])
    return parts


def options(group: str) -> dict[str, str]:
    """The options of a group and the one line that describes each (its first comment)."""
    return {name: comments[0] if comments else "" for name, comments in _comments(group).items()}


def costs(group: str) -> dict[str, str]:
    """What the options of a group cost in time and memory, where a comment ``# Cost: ...`` says."""
    return _told(group, "Cost: ")


def own_positions(group: str) -> dict[str, str]:
    """What tells the options of a group order by themselves: a comment ``# Position: ...`` says."""
    return _told(group, "Position: ")


def without_attention() -> list[str]:
    """The models that have no attention: a comment ``# Attention: none`` says so."""
    return list(_told("model", "Attention: none"))


def _told(group: str, start: str) -> dict[str, str]:
    return {
        name: comment.removeprefix(start)
        for name, comments in _comments(group).items()
        for comment in comments
        if comment.startswith(start)
    }


def _comments(group: str) -> dict[str, list[str]]:
    return {
        name: re.findall(r"^# (?!@)(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        for name, file in sorted(option_files(group).items())
    }


def option_files(group: str) -> dict[str, Path]:
    """The YAML of each option of a group; where two have one name, the project's counts."""
    trees = (*own_folders(), config_folder())
    return {file.stem: file for tree in trees for file in (tree / group).glob("*.yaml")}


def search_path() -> list[str]:
    """The override by which Hydra finds the user's own options."""
    places = ",".join(f'"file://{folder}"' for folder in own_folders())
    return [f"hydra.searchpath=[{places}]"] if places else []


def known_keys() -> list[str]:
    """The keys of every option of every group, and the groups themselves."""
    keys = set(groups())
    root = OmegaConf.to_container(OmegaConf.load(config_folder() / "train.yaml"))
    keys |= set(flat_keys(root))
    for group in groups():
        for file in option_files(group).values():
            tree = OmegaConf.to_container(OmegaConf.load(file))
            keys |= set(flat_keys(tree, f"{group.replace('/', '.')}."))
    hidden = ("defaults", "hydra", "_target_", "_partial_")
    return sorted(key for key in keys if not any(word in key.split(".") for word in hidden))


def flat_keys(tree: Any, prefix: str = "") -> list[str]:
    """Every dotted key of a nested dict, inner nodes too."""
    keys = []
    for key, value in tree.items() if isinstance(tree, dict) else ():
        keys += [prefix + str(key), *flat_keys(value, f"{prefix}{key}.")]
    return keys
