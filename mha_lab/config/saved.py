"""A run's config in its folder: saved, read again, and changed."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mha_lab.config import trust
from mha_lab.config.composing import compose
from mha_lab.config.errors import elsewhere, first_line
from mha_lab.config.plain_yaml import check_size
from mha_lab.config.tree import config_folder, flat_keys, groups
from mha_lab.errors import UserError, nearest
from mha_lab.training.run_folder import write_atomically

CONFIG_FILE = "config.yaml"


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
    from mha_lab.config.words import parse_words

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
