"""Every key of a config is what it must be: checked as a whole, before anything is made.

What each key takes is said by the constructor that takes it (``signatures``); the few keys that
belong to no constructor are here.
"""

from dataclasses import replace
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mha_lab import config
from mha_lab.config.signatures import check_arguments, check_value, hints
from mha_lab.config.targets import KINDS, Kind, kind_of, locate
from mha_lab.config.trust import TARGET
from mha_lab.errors import UserError, shown
from mha_lab.ranges import Seed, Text

_PLAIN = {"seed": Seed, "compile": bool, "run_dir": Text, "choices": dict[str, str]}
_TRAINER_NEEDS = ("accelerator", "enable_progress_bar", "max_steps", "val_check_interval")
_OPTIONAL = ("logger",)
"""A node that may be null or hold nothing: there is metrics.csv then."""


def validate(cfg: DictConfig) -> None:
    """Check every key of a run's config; imports what it names, makes nothing.

    Args:
        cfg: composed, or read and looked through (``mha_lab.config.trust``).

    Raises:
        UserError: a key is missing, unknown, or of another type, range or kind than it must be.
    """
    try:
        tree: Any = OmegaConf.to_container(cfg, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(f"the config does not fit together: {config.first_line(error)}") from error
    for key, hint in _PLAIN.items():
        if key not in tree:
            raise UserError(f"the config has no {key!r}, which every run needs")
        check_value(key, hint, tree[key])
    for key, instead in config.COUNTED_IN_STEPS.items():
        value = OmegaConf.select(cfg, key)
        if value not in (None, -1):
            raise UserError(f"{key}={shown(value)} has no meaning here: {instead}")
    for place, kind in KINDS.items():
        node = tree.get(place)
        if place == "callbacks":
            _check_callbacks(node, kind)
        elif node or place not in _OPTIONAL:
            _check_choice(place, node)
            check_node(place, node, kind)
    for name in _TRAINER_NEEDS:
        if name not in tree["trainer"]:
            raise UserError(f"the config has no 'trainer.{name}', which every run needs")


def check_node(key: str, node: dict[str, Any], kind: Kind) -> None:
    """Check a node and the nodes in it.

    Raises:
        UserError: see :func:`validate`.
    """
    target = locate(key, node.get(TARGET), kind)
    check_value(f"{key}._partial_", bool, node.get("_partial_", False))
    arguments = {str(k): value for k, value in node.items() if k not in (TARGET, "_partial_")}
    for name, source in kind.given.items():
        if name in arguments:
            raise UserError(f"{key}.{name} cannot be set here: it follows from {source}")
    check_arguments(key, target, arguments, elsewhere=_elsewhere)
    known = hints(target)
    for name, value in arguments.items():
        if isinstance(value, dict) and TARGET in value:
            # A part is told the same sizes as the whole.
            part = replace(kind_of(known.get(name, Any)), given=kind.given)
            check_node(f"{key}.{name}", value, part)


def _elsewhere(key: str) -> str:
    """Which option takes a key that the chosen one does not; it may be a recipe that sets it."""
    found = config.elsewhere(key)
    return found and f"{found}; if a recipe sets it, leave it out with ~{key}"


def _check_choice(place: str, node: Any) -> None:
    if isinstance(node, dict) and TARGET in node:
        return
    if place not in config.groups():
        raise UserError(f"{place} must be a node with a {TARGET}, got {shown(node)}")
    raise UserError(
        f"{place} must be chosen, {place}=OPTION (there are: {', '.join(config.options(place))}), "
        f"got {shown(node)}"
    )


def _check_callbacks(node: Any, kind: Kind) -> None:
    if not isinstance(node, dict):
        raise UserError(f"callbacks must be names with nodes or null, got {shown(node)}")
    for name, callback in node.items():
        if callback is None:
            continue
        if not isinstance(callback, dict):
            raise UserError(f"callbacks.{name} must be null or a node, got {shown(callback)}")
        check_node(f"callbacks.{name}", callback, kind)
