"""How a run's config is composed, changed, saved and read again.

Where the config tree lies and what is in it: ``config_tree``; what is said of mistakes in it:
``config_errors``. Their names can be had from here as well.
"""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mha_lab import trust
from mha_lab.config_errors import COUNTED_IN_STEPS, elsewhere, explain, first_line
from mha_lab.config_tree import (
    OWN_FOLDERS,
    WITH_PARTS,
    chosen_parts,
    complete,
    config_folder,
    costs,
    flat_keys,
    groups,
    option_files,
    options,
    own_folders,
    own_positions,
    search_path,
    usual_run_dir,
    with_folder,
    without_attention,
)
from mha_lab.errors import UserError, nearest
from mha_lab.plain_yaml import check_size
from mha_lab.training.run_folder import write_atomically

__all__ = [
    "CONFIG_FILE",
    "COUNTED_IN_STEPS",
    "OWN_FOLDERS",
    "WITH_PARTS",
    "chosen_parts",
    "complete",
    "compose",
    "config_folder",
    "costs",
    "elsewhere",
    "explain",
    "finish",
    "first_line",
    "flat_keys",
    "groups",
    "load_run",
    "option_files",
    "options",
    "override",
    "own_folders",
    "own_positions",
    "read_yaml",
    "save",
    "search_path",
    "usual_run_dir",
    "with_folder",
    "without_attention",
]

CONFIG_FILE = "config.yaml"


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
