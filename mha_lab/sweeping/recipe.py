"""``best.yaml``: the best trial as a config that ``train`` runs as it stands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mha_lab import config
from mha_lab.sweeping.plan import parse
from mha_lab.training.run_folder import write_atomically

BEST = "best.yaml"


def write_recipe(folder: Path, words: Sequence[str], title: str) -> str:
    """Write ``best.yaml``.

    It is built on ``train.yaml`` and holds only what the words change, so further overrides on the
    command line work as they do with ``train`` alone.

    Args:
        folder: of the sweep.
        words: the overrides of a trial.
        title: one line that says what it is.

    Returns:
        The command that runs it.
    """
    command = f"python -m mha_lab train --config-dir {folder} --config-name {Path(BEST).stem}"
    text = OmegaConf.to_yaml(OmegaConf.create(recipe(words)))
    write_atomically(folder / BEST, f"# {title}\n# {command}\n{text}")
    return command


def recipe(words: Sequence[str]) -> dict[str, Any]:
    """Overrides as a config: options in its defaults list, values below.

    Args:
        words: Hydra overrides.
    """
    added: list[Any] = []
    replaced: list[Any] = []
    values = OmegaConf.create({})
    for item in parse(words):
        key = item.key_or_group
        if key in config.groups() and not item.is_delete():
            if item.is_add() or item.is_force_add():
                added.append({key: item.value()})
            else:
                replaced.append({f"override {key}": item.value()})
        else:
            OmegaConf.update(values, key, None if item.is_delete() else item.value())
    tree = OmegaConf.to_container(values, resolve=False)
    assert isinstance(tree, dict)
    defaults = ["train", *added, *replaced, "_self_"]
    return {"defaults": defaults, **{str(key): value for key, value in tree.items()}}
