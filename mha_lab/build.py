"""From config to objects: the one place that instantiates, checks arguments and explains faults."""

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from mha_lab import memory
from mha_lab.config.signatures import check_arguments, hints
from mha_lab.config.targets import KINDS, Kind, kind_of, locate
from mha_lab.config.trust import TARGET
from mha_lab.config.validation import validate
from mha_lab.errors import UserError, as_machine_error
from mha_lab.models.interface import SequenceModel
from mha_lab.own_code import place_of
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.terminal import tell
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


def build_parts(
    cfg: DictConfig, *, vocabulary: Vocabulary | None = None, is_trial: bool = False
) -> Parts:
    """Build task, data and module of a resolved config; random weights come from ``seed``.

    Args:
        cfg: the whole config.
        vocabulary: what a trained model knows, for tasks that would build their own.
        is_trial: it is only seen whether it can be built; cautions are told when it is meant.

    Raises:
        UserError: a value that its object refuses, in the object's own words.
    """
    validate(cfg)
    memory.check_task(cfg.task)
    task = build_task(cfg, vocabulary)
    data = build(cfg, "data", task=task, seed=cfg.seed)
    copies = 1 if vocabulary else memory.TRAINED
    module = build_module(cfg, task.vocabulary, copies=copies, is_trial=is_trial)
    memory.check_data(
        cfg.data,
        task.max_source_length + task.max_target_length,
        vocabulary=len(task.vocabulary),
        embed_dim=cfg.model.get("embed_dim") or 1,
    )
    _try_longest(module.model, task, _own_options(cfg))
    return Parts(task, data, module)


def build_task(cfg: DictConfig, vocabulary: Vocabulary | None = None) -> Any:
    """Build the task; one that reads its vocabulary from data is given a known one instead."""
    target = locate("task", cfg.task._target_, KINDS["task"])
    takes_vocabulary = "vocabulary" in inspect.signature(target).parameters
    known = {"vocabulary": vocabulary} if vocabulary and takes_vocabulary else {}
    return build(cfg, "task", **known)


def build_module(
    cfg: DictConfig, vocabulary: Vocabulary, *, copies: int = 1, is_trial: bool = False
) -> SequenceModule:
    """Build the model, with attention and positions where it uses them, and what trains it.

    Args:
        cfg: the whole config.
        vocabulary: of its task.
        copies: of each of its numbers that will be kept; training keeps several.
        is_trial: see :func:`build_parts`.

    Raises:
        UserError: a value that its object refuses, or more than the machine's memory holds.
    """
    import pytorch_lightning as pl

    pl.seed_everything(cfg.seed, verbose=False)
    make = partial(model_maker(cfg), len(vocabulary))
    _check_memory(cfg, make, copies)
    pl.seed_everything(cfg.seed, verbose=False)  # again: counting may have drawn numbers
    with warnings.catch_warnings(record=True) as cautions:
        model = explained("model", make, own=_own_options(cfg))
    # One line each, not Python's two with a place in the code.
    for caution in [] if is_trial else cautions:
        tell(str(caution.message))
    if cfg.compile and not is_trial:
        model.compile()  # in place, so that the weights keep their names in checkpoints
    return SequenceModule(model, vocabulary, build(cfg, "optimizer"))


def model_maker(cfg: DictConfig) -> partial[SequenceModel]:
    """What makes the model from a vocabulary's size, attention and positions being chosen.

    Raises:
        UserError: a value that one of them refuses.
    """
    factory: partial[SequenceModel] = build(cfg, "model")
    if not getattr(factory.func, "uses_attention", True):
        return factory
    return partial(factory, attention=build(cfg, "attention"), position=build(cfg, "position"))


def _check_memory(cfg: DictConfig, make: partial[Any], copies: int) -> None:
    layers = cfg.model.get("num_layers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model itself warns when it is made
        needed = explained(
            "model",
            lambda: memory.model_bytes(
                lambda few: make() if few is None else make(num_layers=few), layers
            ),
            own=_own_options(cfg),
        )
    if needed is not None:
        sizes = [
            f"{group}.{key}={value}"
            for group in ("model", "attention", "position")
            for key, value in cfg[group].items()
            if isinstance(value, int) and not isinstance(value, bool)
        ]
        memory.require(needed * copies, f"a model of {', '.join(sizes)}")


def _try_longest(model: SequenceModel, task: Any, own: Sequence[str]) -> None:
    """Run the longest source and target once, so that a table too short is told before training."""
    source = torch.full((1, task.max_source_length), Vocabulary.EOS)
    target = torch.full((1, task.max_target_length), Vocabulary.EOS)
    with torch.no_grad():
        # Not compiled and not drawing random numbers: only the lengths are tried.
        explained("model", lambda: model.eval().forward(source, target), own=own)
    model.train()


def _own_options(cfg: DictConfig) -> list[str]:
    """The choices of a model's parts that are neither this project's nor torch's."""
    keys = [key for key in cfg.choices if key.split("/")[0] in ("attention", "position", "model")]
    chosen = {key: OmegaConf.select(cfg, key.replace("/", ".")) for key in keys}
    targets = {key: node.get(TARGET) for key, node in chosen.items() if OmegaConf.is_dict(node)}
    return [
        f"{key}={cfg.choices[key]}"
        for key, target in targets.items()
        if target and not str(target).startswith(("mha_lab.", "torch."))
    ]


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
    if not isinstance(content, dict) or TARGET not in content:
        raise UserError(f"{key} needs a {TARGET}: the class or function that makes it")
    return _make(key, content, KINDS[key.split(".")[0]], extra)


def _make(key: str, content: dict[Any, Any], kind: Kind, extra: dict[str, Any]) -> Any:
    node = {str(name): value for name, value in content.items()}
    target = locate(key, node.pop(TARGET), kind)
    is_partial = node.pop("_partial_", False)
    check_arguments(key, target, node)
    known = hints(target)
    for name, value in node.items():
        if isinstance(value, dict) and TARGET in value:  # an option made of options
            node[name] = _make(f"{key}.{name}", value, kind_of(known.get(name, Any)), {})
    if is_partial:
        return partial(target, **node, **extra)
    return explained(key, lambda: target(**node, **extra))


def explained(key: str, make: Callable[[], Any], *, own: Sequence[str] = ()) -> Any:
    """Run a constructor; what it refuses is the user's to mend.

    Args:
        key: the node of what it makes, for the sentence.
        make: the constructor, with its arguments.
        own: options of the user's that it calls, ``position=mine``, which may fail in any way.

    Raises:
        UserError: in the constructor's own words.
    """
    try:
        return make()
    except (ValueError, TypeError) as error:
        raise UserError(f"{key}: {' '.join(str(error).split())}") from error
    except Exception as error:
        if not own or as_machine_error(error) is not None:
            raise
        told = " ".join(f"{type(error).__name__}: {error} {place_of(error)}".split())
        raise UserError(
            f"{key}: {told} (python -m mha_lab check {' '.join(own)} holds it to each rule, "
            "MHA_LAB_DEBUG=1 shows the traceback)"
        ) from error
