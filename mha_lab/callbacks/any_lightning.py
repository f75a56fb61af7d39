"""One callback class for both packages that Lightning is published as.

``pytorch_lightning`` and ``lightning.pytorch`` are two copies of the same code, and each refuses
callbacks of the other. Which one is in use is known when a callback is made, not when its module
is imported, so a callback takes its base class then.
"""

from __future__ import annotations

import inspect
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pytorch_lightning import Callback
else:
    Callback = object

_PACKAGES = ("pytorch_lightning", "lightning.pytorch")


class AnyLightningCallback(Callback):
    """Base of callbacks that work under ``pytorch_lightning`` and under ``lightning.pytorch``."""

    def __init_subclass__(cls) -> None:
        # What can be given to a callback is what its __init__ takes, not the __new__ below.
        signature = inspect.signature(cls.__init__)
        parameters = list(signature.parameters.values())[1:]
        cls.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make the callback for the packages that are imported by now."""
        loaded = tuple(package for package in _PACKAGES if package in sys.modules)
        made: Self = object.__new__(_with_bases(cls, loaded or _PACKAGES[:1]))  # type: ignore[arg-type]
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self).__mro__[1], self.__dict__)


@cache
def _with_bases(cls: Any, packages: tuple[str, ...]) -> Any:
    """The same class, as a callback of these packages."""
    if any(base.__name__ == "Callback" for base in cls.__mro__):
        return cls
    bases = tuple(import_module(package).Callback for package in packages)
    names: dict[str, Any] = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    return type(cls.__name__, (cls, *bases), names)


def _restore(cls: Any, state: dict[str, Any]) -> Any:
    """Make a copied or unpickled callback."""
    callback = cls.__new__(cls)
    callback.__dict__.update(state)
    return callback
