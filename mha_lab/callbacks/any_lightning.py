"""One callback class for both packages that Lightning is published as.

``pytorch_lightning`` and ``lightning.pytorch`` are two copies of the same code, and each refuses
callbacks of the other. Which of them a program uses is known when it asks for a callback, not when
this module is imported, so the class takes its bases then: when it is made, when it is asked for as
``mha_lab.AttentionMapLogger`` (LightningCLI's ``class_path``), and when a callback is made.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

_PACKAGES = ("pytorch_lightning", "lightning.pytorch")

if TYPE_CHECKING:
    from pytorch_lightning import Callback as _NoPackage
else:

    class _NoPackage:
        """Stands for Lightning's ``Callback`` until a package is imported."""


class AnyLightningCallback(_NoPackage):
    """Base of callbacks that work under ``pytorch_lightning`` and under ``lightning.pytorch``."""

    def __init_subclass__(cls) -> None:
        # What can be given to a callback is what its __init__ takes, not the __new__ below.
        signature = inspect.signature(cls.__init__)
        parameters = list(signature.parameters.values())[1:]
        cls.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make the callback for the packages that are imported by now."""
        if not any(package in sys.modules for package in _PACKAGES):
            import_module(_PACKAGES[0])
        take_bases()
        made: Self = object.__new__(cls)
        return made


def take_bases() -> None:
    """Make our callbacks those of each package that is imported by now."""
    loaded = [sys.modules[package] for package in _PACKAGES if package in sys.modules]
    # A package that is just being imported has none yet.
    bases = tuple(module.Callback for module in loaded if hasattr(module, "Callback"))
    if bases and AnyLightningCallback.__bases__ != bases:
        AnyLightningCallback.__bases__ = bases


take_bases()
