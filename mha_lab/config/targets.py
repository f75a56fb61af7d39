"""What a ``_target_`` names, and whether it is of the kind that its place asks for."""

import inspect
import logging
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytorch_lightning as pl
from pytorch_lightning.loggers import Logger
from torch import nn

from mha_lab.callbacks.any_lightning import AnyLightningCallback
from mha_lab.errors import UserError, shown
from mha_lab.models.interface import SequenceModel
from mha_lab.training.data_module import TaskDataModule


@dataclass(frozen=True)
class Kind:
    """What a place of the config asks for.

    Attributes:
        name: in a sentence.
        classes: one of which it must be; any where there is none.
        methods: that it must have.
        given: arguments that the harness sets itself, and what they follow from.
    """

    name: str
    classes: tuple[type, ...] = ()
    methods: tuple[str, ...] = ()
    given: dict[str, str] = field(default_factory=dict)

    def includes(self, made: Any) -> bool:
        """Whether a class is of this kind."""
        fits = not self.classes or issubclass(made, self.classes)
        return fits and all(callable(getattr(made, name, None)) for name in self.methods)


_SIZES = {
    "embed_dim": "model.embed_dim",
    "num_heads": "model.num_heads",
    "device": "trainer.accelerator",
    "dtype": "trainer.precision",
}
_FOLDER = "the run's folder, hydra.run.dir"
KINDS = {
    "data": Kind("a TaskDataModule", (TaskDataModule,), given={"task": "task", "seed": "seed"}),
    "task": Kind("a task, with fixed_split and draw", methods=("fixed_split", "draw")),
    "model": Kind(
        "a SequenceModel",
        (SequenceModel,),
        given={"vocab_size": "the task", "attention": "attention", "position": "position"},
    ),
    "attention": Kind("an nn.Module", (nn.Module,), given=_SIZES | {"dropout": "model.dropout"}),
    "position": Kind("an nn.Module", (nn.Module,), given=_SIZES | {"is_causal": "the model"}),
    "optimizer": Kind("a recipe of an optimizer, with build", methods=("build",)),
    "trainer": Kind(
        "a Trainer",
        (pl.Trainer,),
        given={"logger": "logger", "callbacks": "callbacks", "default_root_dir": _FOLDER},
    ),
    "logger": Kind(
        "a logger of Lightning",
        (Logger,),
        given=dict.fromkeys(("save_dir", "name", "version"), _FOLDER),
    ),
    "callbacks": Kind("a Callback", (pl.Callback, AnyLightningCallback)),
}
"""By the place's first word."""


def locate(key: str, path: Any, kind: Kind) -> Callable[..., Any]:
    """Import what a target names.

    Args:
        key: the node, dotted, for the sentence.
        path: the ``_target_``; trusted already, or typed.
        kind: what the place asks for.

    Returns:
        A class of that kind, or a function that says by its annotation that it makes one.

    Raises:
        UserError: it cannot be imported, or is of another kind. It was not called.
    """
    from hydra.utils import get_object

    if not isinstance(path, str):
        raise UserError(f"{key}._target_ must name a class or function, got {shown(path)}")
    log = logging.getLogger("hydra.utils")
    log.disabled = True  # it would print what is raised here in one sentence
    try:
        found = get_object(path)
    except Exception as error:  # importing runs a module, which may raise anything
        reason = " ".join(str(error).split())
        raise UserError(f"{key}._target_={shown(path)} cannot be imported: {reason}") from error
    finally:
        log.disabled = False
    if not callable(found):
        raise UserError(f"{key}._target_={shown(path)} is not a class or function")
    made = found if inspect.isclass(found) else _annotation(found)
    if made is None:
        raise UserError(
            f"{key}._target_={shown(path)} does not say what it makes, and must make {kind.name}: "
            "give the function a return annotation"
        )
    if not kind.includes(made):
        verb = "be" if made is found else "make"
        raise UserError(f"{key}._target_={shown(path)} must {verb} {kind.name}, and does not")
    return found  # type: ignore[no-any-return]


def _annotation(function: Any) -> Any:
    """The class that a function says it returns."""
    try:
        returned = get_type_hints(function).get("return")
    except (NameError, TypeError):  # a builtin; or annotations that only a type checker can read
        return None
    return returned if inspect.isclass(returned) else None


def kind_of(hint: Any) -> Kind:
    """What the annotation of an argument asks of a node in its place.

    Only classes can be compared: a protocol or a ``Callable`` among them leaves it open.
    """
    members = [one for one in _members(hint) if one is not type(None)]
    if not members or not all(map(_is_plain_class, members)):
        return Kind("what its place asks for")
    return Kind("a " + " or ".join(one.__name__ for one in members), tuple(members))


def _is_plain_class(hint: Any) -> bool:
    return inspect.isclass(hint) and not getattr(hint, "_is_protocol", False)


def _members(hint: Any) -> list[Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _members(arguments[0])
    if origin in (Union, types.UnionType):
        return [member for one in arguments for member in _members(one)]
    return [hint]
