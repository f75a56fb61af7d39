"""A run's config, composed of the config tree and of overrides, as ``train`` does."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mha_lab.config.errors import explain
from mha_lab.config.tree import WITH_PARTS, complete, config_folder, groups, search_path
from mha_lab.errors import UserError, nearest


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

    from mha_lab.config.words import check_choices, parse_word

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
