"""Where the config tree lies, how a run's config is composed, changed, saved and read again.

The folder ``configs/`` is the registry: one folder a group, one YAML an option. Everything that
needs the list of variants, models or tasks walks that folder.
"""

import os
import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mha_lab import trust
from mha_lab.errors import UserError, nearest
from mha_lab.lightning_ranges import TrainerKeys
from mha_lab.plain_yaml import check_size
from mha_lab.training.run_folder import write_atomically

CONFIG_FILE = "config.yaml"
OWN_FOLDERS = "MHA_LAB_CONFIG_DIR"
"""The environment variable that names folders of the user's own options."""

_STEPS = "a run is counted in steps, trainer.max_steps=N: with data.train_size=M sequences, an "
_STEPS += "epoch is M / data.batch_size of them"
COUNTED_IN_STEPS = {"trainer.max_epochs": _STEPS, "trainer.min_epochs": _STEPS}
"""Keys of Lightning that have no meaning here, and what does instead."""

WITH_PARTS = "composed"
"""The option whose parts are groups of their own."""


def config_folder() -> Path:
    """The config tree: in the package where installed, beside the package in a checkout."""
    package = Path(__file__).parent
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
        UserError: there is no such folder.
    """
    if not folder.is_dir():
        raise UserError(f"--config-dir {folder}: there is no such folder")
    before = os.environ.get(OWN_FOLDERS)
    os.environ[OWN_FOLDERS] = os.pathsep.join(map(str, [folder.resolve(), *own_folders()]))
    try:
        yield
    finally:
        if before is None:
            del os.environ[OWN_FOLDERS]
        else:
            os.environ[OWN_FOLDERS] = before


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


def chosen_parts(choices: Mapping[str, Any]) -> list[str]:
    """The parts of a run's attention that are others than attention has where nothing is said."""
    if choices.get("attention") != WITH_PARTS:
        return []
    usual = OmegaConf.load(config_folder() / "attention" / f"{WITH_PARTS}.yaml").defaults
    kept = {f"attention/{group}": option for one in usual for group, option in one.items()}
    return [
        choices[group] for group, option in kept.items() if choices.get(group, option) != option
    ]


def options(group: str) -> dict[str, str]:
    """The options of a group and the one line that describes each (its first comment)."""
    return {name: comments[0] if comments else "" for name, comments in _comments(group).items()}


def costs(group: str) -> dict[str, str]:
    """What the options of a group cost in time and memory, where a comment ``# Cost: ...`` says."""
    return _told(group, "Cost: ")


def own_positions(group: str) -> dict[str, str]:
    """What tells the options of a group order by themselves: a comment ``# Position: ...`` says."""
    return _told(group, "Position: ")


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


def compose(overrides: Sequence[str], *, run_dir: Path | str) -> DictConfig:
    """Compose a training config as ``train`` does, without Hydra's command line.

    Args:
        overrides: Hydra overrides, e.g. ``["+experiment=copy", "seed=3"]``.
        run_dir: the run's folder.

    Returns:
        The resolved config, without Hydra's own node.

    Raises:
        UserError: an override names an unknown key or option, or cannot be read.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig
    from hydra.errors import HydraException

    from mha_lab.words import check_choices, parse_word

    check_choices([parse_word(word) for word in overrides], groups())
    # Inside a Hydra job another composition is under way; it must find its state as it left it.
    outer_hydra, outer_config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(config_folder()), version_base="1.3"):
            words = [*search_path(), *complete(overrides)]
            cfg = hydra_compose("train", words, return_hydra_config=True)
            OmegaConf.set_struct(cfg, False)
            cfg.hydra.runtime.output_dir = str(run_dir)
            HydraConfig.instance().set_config(cfg)
            return finish(cfg)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(error, overrides)) from error
    finally:
        GlobalHydra.instance().hydra = outer_hydra
        HydraConfig.instance().cfg = outer_config


def search_path() -> list[str]:
    """The override by which Hydra finds the user's own options."""
    places = ",".join(f'"file://{folder}"' for folder in own_folders())
    return [f"hydra.searchpath=[{places}]"] if places else []


def finish(cfg: DictConfig) -> DictConfig:
    """Resolve a composed config, note which options were chosen, and refuse unknown root keys."""
    from hydra.core.hydra_config import HydraConfig

    chosen = dict(HydraConfig.get().runtime.choices)
    typed = {word.partition("=")[0].lstrip("+") for word in HydraConfig.get().overrides.task}
    run = OmegaConf.create({str(k): v for k, v in cfg.items_ex(resolve=False) if k != "hydra"})
    OmegaConf.resolve(run)
    known = set(OmegaConf.load(config_folder() / "train.yaml")) - {"defaults", "hydra"}
    known |= set(groups())
    for key in run:
        if str(key) not in known:
            raise UserError(f"unknown key or group {str(key)!r}{nearest(str(key), known)}")
    run["choices"] = {
        group: chosen[group]
        for group in groups()
        if chosen.get(group) not in (None, "null")
        # A mechanism with a name has said by it what its parts are.
        and ("/" not in group or group in typed or chosen[group.split("/")[0]] == WITH_PARTS)
    } | {
        # An option inside another: position@position.encoding.
        key: option
        for key, option in chosen.items()
        if "@" in key and key.split("@")[0] in groups()
    }
    return run


def save(cfg: DictConfig, folder: Path) -> None:
    """Write the resolved config into the run's folder; it does not say where that lies."""
    kept = cfg.copy()
    kept.run_dir = "."
    write_atomically(folder / CONFIG_FILE, OmegaConf.to_yaml(kept))


def load_run(
    folder: Path | str, overrides: Sequence[str] = (), *, trusted: Sequence[str] = ()
) -> DictConfig:
    """Read a run's config, with changes.

    Args:
        folder: a run's folder.
        overrides: ``key=value``, or ``group=option``, which replaces the whole group.
        trusted: modules that the config may name besides this project's own options.

    Raises:
        UserError: not a run's folder, an unreadable config, one that names what is not trusted, or
            an unknown key or option.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"no run folder at {str(folder)!r}: the folder does not exist")
    file = folder / CONFIG_FILE
    if not file.is_file():
        raise UserError(f"{str(folder)!r} is not a run's folder: it holds no {CONFIG_FILE}")
    cfg = read_yaml(file, trusted)
    if not isinstance(cfg, DictConfig) or "choices" not in cfg:
        raise UserError(f"{str(file)!r} is not the config of a run: it has no 'choices'")
    cfg.run_dir = str(folder.resolve())
    _renew_checkpoint(cfg)
    return override(cfg, overrides)


def _renew_checkpoint(cfg: DictConfig) -> None:
    """Let a run of an earlier version keep its checkpoints in its folder, wherever that lies now.

    Lightning's ModelCheckpoint, which such a config names, would write where the run once was.
    """
    node = OmegaConf.select(cfg, "callbacks.checkpoint")
    if isinstance(node, DictConfig) and "dirpath" in node:
        own = OmegaConf.load(config_folder() / "callbacks" / "default.yaml")
        kept = {key: node[key] for key in ("monitor", "mode") if key in node}
        cfg.callbacks.checkpoint = OmegaConf.merge(own.checkpoint, kept)


def read_yaml(file: Path, trusted: Sequence[str] = ()) -> DictConfig | ListConfig:
    """Read a YAML file that may be a stranger's.

    Raises:
        UserError: it cannot be read, or names what is neither this project's nor trusted.
    """
    try:
        check_size(file.read_text(encoding="utf-8"))
        cfg = OmegaConf.load(file)
        tree = OmegaConf.to_container(cfg, resolve=False)
    except Exception as error:  # whatever a damaged file makes the YAML parser raise
        raise UserError(f"cannot read {str(file)!r}: {first_line(error)}") from error
    trust.check(tree, file, trust.own_targets(config_folder()), trusted)
    return cfg


def override(cfg: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """Apply ``key=value`` and ``group=option`` to a resolved config, refusing unknown keys."""
    from mha_lab.words import parse_words

    parsed = parse_words(overrides)
    cfg = cfg.copy()
    OmegaConf.set_struct(cfg, True)
    # Groups first: a value given with its group must land in the new option.
    for item in sorted(parsed, key=lambda item: item.key_or_group not in groups()):
        key, value = item.key_or_group, item.value()
        if key in groups() and isinstance(value, str):
            part = compose([item.input_line or ""], run_dir=cfg.run_dir)
            OmegaConf.set_struct(cfg, False)
            node = key.replace("/", ".")
            OmegaConf.update(cfg, node, OmegaConf.select(part, node), merge=False)
            cfg.choices[key] = part.choices[key]
            OmegaConf.set_struct(cfg, True)
            continue
        try:
            if OmegaConf.select(cfg, key, throw_on_missing=False) is None:
                _require_known(cfg, key)
            OmegaConf.update(cfg, key, value, merge=True)
        except OmegaConfBaseException as error:
            raise UserError(f"cannot set {key!r}: {first_line(error)}") from error
    return cfg


def _require_known(cfg: DictConfig, key: str) -> None:
    keys = flat_keys(OmegaConf.to_container(cfg))
    if key not in keys:
        raise UserError(f"unknown key {key!r}{elsewhere(key) or nearest(key, keys)}")


def flat_keys(tree: Any, prefix: str = "") -> list[str]:
    """Every dotted key of a nested dict, inner nodes too."""
    keys = []
    for key, value in tree.items() if isinstance(tree, dict) else ():
        keys += [prefix + str(key), *flat_keys(value, f"{prefix}{key}.")]
    return keys


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def explain(error: BaseException, overrides: Sequence[str] = ()) -> str:
    """Turn an error of Hydra or OmegaConf into one sentence, with the nearest right word."""
    text = str(error)
    if "override_grammar" in text:
        given = f" in: {' '.join(overrides)}" if overrides else ""
        return f"cannot read an override ({first_line(error)}){given}; write key=value"
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match[1]
        if key in groups() and "/" in key:
            whole = key.split("/")[0]
            return f"{key} is a part of {whole}={WITH_PARTS}, and of what is made from it"
        if key in groups() and "defaults list" in text:
            return f"{key!r} is not chosen by default; add it with +{key}=OPTION"
        other = elsewhere(key) or nearest(key.split("@")[0], _known_keys())
        return f"unknown key or group {key!r}{other}"
    if match := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
        group, option = match[1], match[2]
        known = options(group) if group in groups() else {}
        return (
            f"{group}={option} is not an option{nearest(option, known)}"
            f" (there are: {', '.join(known)})"
        )
    if match := re.search(r"Key '([^']+)' is not in struct", text):
        other = elsewhere(match[1]) or nearest(match[1], _known_keys())
        return f"unknown key {match[1]!r}{other}"
    return " ".join(text.split()) or type(error).__name__


def elsewhere(key: str) -> str:
    """Which option has a key that the chosen one does not: the end of a sentence, or nothing."""
    if key in COUNTED_IN_STEPS:
        return f": {COUNTED_IN_STEPS[key]}"
    if key in {f"trainer.{name}" for name in TrainerKeys.__annotations__}:
        return f"; Lightning's Trainer takes it, but no config names it: add it with +{key}="
    root, name = key.split(".")[0], key.rpartition(".")[2]
    places = [group for group in groups() if group.split("/")[0] == root]
    found = [f"{group}={name}" for group in places if name in option_files(group)]
    for group in places:
        files = sorted(option_files(group).items())
        having = [option for option, file in files if name in OmegaConf.load(file)]
        if having:
            most = having[:6] + ["..."] * (len(having) > 6)
            found.append(f"{group.replace('/', '.')}.{name} with {group}={'|'.join(most)}")
    return f"; there is {', '.join(found)}" if found else ""


def _known_keys() -> list[str]:
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
