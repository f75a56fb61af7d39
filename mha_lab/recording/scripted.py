"""TorchScript in a model: its modules and functions run where no torch function can be seen."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from torch import nn

_ATTENTION = ("softmax", "scaled_dot_product_attention", "aten::exp")
"""What stands in the graph of a script that may compute attention."""


def scripted_attention(
    model: nn.Module, names: Mapping[int, str], chosen: Collection[str]
) -> list[str]:
    """What of a model is TorchScript that may compute attention.

    Args:
        model: The model.
        names: The path of each of its modules by the module's ``id``.
        chosen: The names of those that are asked about.

    Returns:
        Paths of scripted modules, and names of scripted functions with the paths of the modules
        whose ``forward`` names them. Whether they ran is not known.
    """
    found: list[str] = []
    inside: set[int] = set()
    for module in model.modules():
        name = names.get(id(module), "")
        if id(module) in inside or name not in chosen:
            continue
        if isinstance(module, torch.jit.ScriptModule):
            inside.update(id(one) for one in module.modules())
            if _computes_attention(module):
                found.append(name)
            continue
        found += [f"{function} in {name}" for function in _scripted_functions(module)]
    return found


def _scripted_functions(module: nn.Module) -> Iterator[str]:
    """The names of scripted functions that a module's forward can call by their names."""
    forward = inspect.unwrap(type(module).forward)
    if not inspect.isfunction(forward):
        return
    called = {
        **inspect.getclosurevars(forward).globals,
        **inspect.getclosurevars(forward).nonlocals,
    }
    held = {name: module.__dict__.get(name) for name in forward.__code__.co_names}
    for name, function in {**held, **called}.items():
        if isinstance(function, torch.jit.ScriptFunction) and _computes_attention(function):
            yield name


def _computes_attention(scripted: Any) -> bool:
    try:
        graph = str(scripted.inlined_graph)
    except RuntimeError:  # a module without forward has none
        return False
    return any(name in graph for name in _ATTENTION)
