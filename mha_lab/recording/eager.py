"""Models run uncompiled while they are watched: a compiled graph calls no torch function.

``torch._dynamo`` takes a second to import, so it is not imported for that. But a model may do so
inside the block: ``torch.cond``, ``torch.while_loop`` and an uncompiled ``flex_attention`` compile
themselves, and would trace the recorder's mode. So the import is waited for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

import torch

from mha_lab.recording.shared_context import SharedContext

_COMPILER = "torch._dynamo"


def uncompiled() -> AbstractContextManager[None]:
    """Run everything eagerly inside the block, whenever the compiler is imported.

    There is one stance for all threads: the first block sets it, the last one sets it back.
    """
    return _EAGER.joined()


@contextmanager
def _uncompiled() -> Iterator[None]:
    with ExitStack() as stack:
        if _COMPILER in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        else:
            waiting = _Waiting(stack)
            sys.meta_path.insert(0, waiting)
            stack.callback(sys.meta_path.remove, waiting)
        yield


class _Waiting(MetaPathFinder):
    """Finds the compiler as Python would, and sets its stance once it is imported."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == _COMPILER else None
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_set(module: ModuleType) -> None:
            load(module)
            self._stack.enter_context(torch.compiler.set_stance("force_eager"))

        spec.loader.exec_module = load_and_set  # type: ignore[method-assign]
        return spec


_EAGER = SharedContext(_uncompiled)
