"""Exact outputs where torch would run its fused fast path.

In evaluation without gradient, ``nn.TransformerEncoder``, its layers and ``nn.MultiheadAttention``
run one fused kernel in which no weights can be seen. While a recorder watches they leave it by
themselves, and then answer a little differently: by rounding, and at padded positions, which the
fused path fills with zeros. So these modules run twice while they are recorded: unwatched for what
they return, and watched for what is recorded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import update_wrapper
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

_LOCK = RLock()

_FUSED = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)


@contextmanager
def exact_outputs(model: nn.Module, recorder: type[TorchFunctionMode]) -> Iterator[None]:
    """Make the fused modules of a model return what they return unwatched.

    Args:
        model: Its outermost fused modules have another ``forward`` inside the block.
        recorder: The mode that watches.
    """
    with ExitStack() as stack:
        for module in _outermost_fused(model):
            stack.enter_context(_replaced(module, recorder))
        yield


@contextmanager
def _replaced(module: nn.Module, recorder: type[TorchFunctionMode]) -> Iterator[None]:
    """Give a module its other forward, which all recorders share that are open at one time."""
    with _LOCK:
        present = module.__dict__.get("forward")
        forward = present if isinstance(present, _Twice) else _Twice(module, recorder)
        module.__dict__["forward"] = forward
        forward.users += 1
    try:
        yield
    finally:
        with _LOCK:
            forward.users -= 1
            if forward.users == 0 and module.__dict__.get("forward") is forward:
                forward.put_back()


def _outermost_fused(module: nn.Module) -> Iterator[nn.Module]:
    """The fused modules that lie in no other one, each once; none with hooks inside."""
    found: dict[nn.Module, None] = {}

    def visit(module: nn.Module) -> None:
        is_fused = any(
            isinstance(module, cls) and type(module).forward is cls.forward for cls in _FUSED
        )
        if is_fused and not _has_hooks_inside(module):
            found[module] = None
        else:
            for child in module.children():
                visit(child)

    visit(module)
    yield from found


def _has_hooks_inside(module: nn.Module) -> bool:
    """Whether hooks would see it run twice; a layer with hooks inside is not fused anyway."""
    return not isinstance(module, nn.MultiheadAttention) and any(
        inner._forward_hooks or inner._forward_pre_hooks
        for inner in module.modules()
        if inner is not module
    )


class _Twice:
    """A forward that computes its output unwatched wherever the fused path may be taken.

    Args:
        module: Whose.
        recorder: The mode that watches.
    """

    def __init__(self, module: nn.Module, recorder: type[TorchFunctionMode]) -> None:
        self.users = 0
        self._module = module
        self._recorder = recorder
        self._own = module.__dict__.get("forward")  # if somebody has replaced it before
        self._forward = module.forward
        update_wrapper(self, self._forward)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _may_fuse(self._module, args, kwargs, self._recorder):
            return self._forward(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            output = self._forward(*args, **kwargs)
        with torch.no_grad():
            args, kwargs = _without_nested(self._module, args, kwargs)
            self._forward(*args, **kwargs)
        return output

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forward, name)  # what torch.export reads of a forward: __code__, ...

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of the module, or its pickle, has the forward that it has without a recorder."""
        return _itself, (self._forward,)

    def put_back(self) -> None:
        """Give the module its own forward back."""
        if self._own is None:
            del self._module.__dict__["forward"]
        else:
            self._module.__dict__["forward"] = self._own


def _itself(forward: Callable[..., Any]) -> Callable[..., Any]:
    return forward


def _may_fuse(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    recorder: type[TorchFunctionMode],
) -> bool:
    """Whether torch may take its fused path when nobody watches."""
    tensors = [value for value in [*args, *kwargs.values()] if isinstance(value, Tensor)]
    return (
        torch._C._is_torch_function_enabled()
        and torch.backends.mha.get_fastpath_enabled()
        and not torch.is_autocast_enabled()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        and all(isinstance(mode, recorder) for mode in _get_current_function_mode_stack())  # type: ignore[no-untyped-call]
        and all(type(tensor) in (Tensor, nn.Parameter) for tensor in tensors)
        and not any(inner.training for inner in module.modules())
        and not (
            torch.is_grad_enabled()
            and any(tensor.requires_grad for tensor in [*tensors, *module.parameters()])
        )
    )


def _without_nested(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments with nested tensors padded and the padding masked.

    Only the fused path takes nested tensors, so a watched module cannot.
    """
    bound = inspect.signature(type(module).forward).bind(module, *args, **kwargs)
    nested = {
        name: value
        for name, value in bound.arguments.items()
        if isinstance(value, Tensor) and value.is_nested
    }
    if not nested:
        return args, kwargs
    first = next(iter(nested.values()))
    padded = first.to_padded_tensor(0.0)
    lengths = torch.tensor([sample.shape[0] for sample in first.unbind()], device=first.device)
    bound.arguments.update(dict.fromkeys(nested, padded))  # query is key is value on this path
    is_attention = isinstance(module, nn.MultiheadAttention)
    mask_name = "key_padding_mask" if is_attention else "src_key_padding_mask"
    positions = torch.arange(padded.shape[1], device=first.device)
    bound.arguments[mask_name] = positions >= lengths[:, None]
    return bound.args[1:], bound.kwargs
