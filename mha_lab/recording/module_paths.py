"""The paths of a model's modules, as they are without what wraps them."""

from __future__ import annotations

import re

from torch import nn

_WRAPPERS = re.compile(r"(^|\.)(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?=\.|$)")
"""What torch.compile, FSDP and checkpointing put into a module's path."""


def module_names(model: nn.Module) -> dict[int, str]:
    """The path of each module of a model by the module's ``id``; the model's own is its class."""
    names = {id(module): _WRAPPERS.sub("", name) for name, module in model.named_modules()}
    return {key: name.removeprefix(".") or _class_name(model) for key, name in names.items()}


def module_paths(model: nn.Module) -> list[tuple[str, str]]:
    """The name of each module, and a path to it: as many pairs as a shared module has paths."""
    names = module_names(model)
    return [
        (names[id(module)], _WRAPPERS.sub("", path).removeprefix(".") or names[id(module)])
        for path, module in model.named_modules(remove_duplicate=False)
    ]


def _class_name(model: nn.Module) -> str:
    return type(getattr(model, "_orig_mod", model)).__name__
