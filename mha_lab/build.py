"""From config to objects: the one place that instantiates, checks arguments and explains faults."""

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import torch
from omegaconf import DictConfig, OmegaConf

from mha_lab.errors import UserError, nearest
from mha_lab.models.interface import SequenceModel
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training.data_module import TaskDataModule
from mha_lab.training.module import SequenceModule


@dataclass(frozen=True)
class Parts:
    """What a run is made of."""

    task: Any
    data: TaskDataModule
    module: SequenceModule

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum(p.numel() for p in self.module.parameters() if p.requires_grad)


def build_parts(cfg: DictConfig, *, vocabulary: Vocabulary | None = None) -> Parts:
    """Build task, data and module of a resolved config; random weights come from ``seed``.

    Args:
        cfg: the whole config.
        vocabulary: what a trained model knows, for tasks that would build their own.

    Raises:
        UserError: a value that its object refuses, in the object's own words.
    """
    task = build_task(cfg, vocabulary)
    data = build(cfg, "data", task=task, seed=cfg.seed)
    module = build_module(cfg, task.vocabulary)
    _try_longest(module.model, task)
    return Parts(task, data, module)


def build_task(cfg: DictConfig, vocabulary: Vocabulary | None = None) -> Any:
    """Build the task; one that reads its vocabulary from data is given a known one instead."""
    target = _locate("task", cfg.task._target_)
    takes_vocabulary = "vocabulary" in inspect.signature(target).parameters
    known = {"vocabulary": vocabulary} if vocabulary and takes_vocabulary else {}
    return build(cfg, "task", **known)


def build_module(cfg: DictConfig, vocabulary: Vocabulary) -> SequenceModule:
    """Build the model, with attention and positions where it uses them, and what trains it."""
    import pytorch_lightning as pl

    if not isinstance(cfg.seed, int) or not 0 <= cfg.seed < 2**32:
        raise UserError(f"seed must be a whole number from 0 to 2^32 - 1, got {cfg.seed}")
    pl.seed_everything(cfg.seed, verbose=False)
    factory = build(cfg, "model")
    choices: dict[str, Any] = {}
    if getattr(factory.func, "uses_attention", True):
        choices = {"attention": build(cfg, "attention"), "position": build(cfg, "position")}
    model = _explained("model", lambda: factory(len(vocabulary), **choices))
    if cfg.compile:
        model.compile()  # in place, so that the weights keep their names in checkpoints
    return SequenceModule(model, vocabulary, build(cfg, "optimizer"))


def _try_longest(model: SequenceModel, task: Any) -> None:
    """Run the longest source and target once, so that a table too short is told before training."""
    source = torch.full((1, task.max_source_length), Vocabulary.EOS)
    target = torch.full((1, task.max_target_length), Vocabulary.EOS)
    with torch.no_grad():
        # Not compiled and not drawing random numbers: only the lengths are tried.
        _explained("model", lambda: model.eval().forward(source, target))
    model.train()


def build(cfg: DictConfig, key: str, **extra: Any) -> Any:
    """Instantiate one node of the config.

    Args:
        cfg: the whole config.
        key: the node, dotted: ``optimizer`` or ``callbacks.checkpoint``.
        extra: further keyword arguments, already objects.

    Returns:
        The object; for a node with ``_partial_``, a ``functools.partial`` that makes it.

    Raises:
        UserError: an unknown key, a value of the wrong type, or one that the object refuses.
    """
    content = OmegaConf.to_container(OmegaConf.select(cfg, key))
    if not isinstance(content, dict) or "_target_" not in content:
        raise UserError(f"{key} needs a _target_: the class or function that makes it")
    node: dict[str, Any] = {str(name): value for name, value in content.items()}
    target = _locate(key, node.pop("_target_"))
    is_partial = node.pop("_partial_", False)
    for name, value in node.items():
        if isinstance(value, dict) and "_target_" in value:  # an option made of options
            node[name] = build(cfg, f"{key}.{name}")
    _check_arguments(key, target, node)
    if is_partial:
        return partial(target, **node, **extra)
    return _explained(key, lambda: target(**node, **extra))


def _locate(key: str, path: Any) -> Callable[..., Any]:
    # Hydra's own look-up, which refuses dangerous targets: a run's config may be a stranger's.
    from hydra.utils import get_object

    log = logging.getLogger("hydra.utils")
    log.disabled = True  # it would print what is raised here in one sentence
    try:
        found = get_object(path)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{key}._target_={path!r} cannot be imported: {reason}") from error
    finally:
        log.disabled = False
    if not callable(found):
        raise UserError(f"{key}._target_={path!r} is not a class or function")
    return found  # type: ignore[no-any-return]


def _check_arguments(key: str, target: Callable[..., Any], node: dict[str, Any]) -> None:
    """Compare names and types with the target's signature, before anything runs."""
    from beartype import BeartypeConf
    from beartype.door import is_bearable

    parameters = inspect.signature(target).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    init = target.__init__ if inspect.isclass(target) else target
    try:
        hints = get_type_hints(init)
    except (NameError, TypeError):
        hints = {}
    for name, value in node.items():
        if name not in parameters and not open_ended:
            known = [n for n in parameters if n != "self"]
            raise UserError(f"unknown key '{key}.{name}'{nearest(name, known)}")
        hint = hints.get(name, Any)
        if hint is bool or not isinstance(value, bool):
            fits = is_bearable(value, hint, conf=BeartypeConf(is_pep484_tower=True))
        else:  # bool is an int to Python, never to a person
            fits = bool in getattr(hint, "__args__", ()) or hint is Any
        if not fits:
            expected = getattr(hint, "__name__", str(hint)).replace("typing.", "")
            raise UserError(f"{key}.{name} must be {expected}, got {value!r}")


def _explained(key: str, make: Callable[[], Any]) -> Any:
    """Run a constructor; what it refuses is the user's to mend."""
    try:
        return make()
    except (ValueError, TypeError) as error:
        raise UserError(f"{key}: {' '.join(str(error).split())}") from error
