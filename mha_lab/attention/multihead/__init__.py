"""The twin of ``torch.nn.MultiheadAttention``: the module and the steps that it takes."""

from importlib import import_module
from typing import Any

__all__ = ["MultiheadAttention"]


def __getattr__(name: str) -> Any:
    """The module, imported when it is asked for: other mechanisms take some of its steps alone."""
    if name in __all__:
        return getattr(import_module("mha_lab.attention.multihead.module"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
