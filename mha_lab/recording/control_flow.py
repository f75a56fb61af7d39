"""Attention inside ``torch.cond`` and ``torch.while_loop``.

They are operators that are given functions, and torch switches a mode off while it answers a call
that the mode was shown. So the functions switch it on again.

Where a gradient is wanted, torch compiles the functions first, which nobody may watch. Then they
run twice: so for what is returned, and without gradient for what is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from mha_lab.recording.flex import operator_name

_CONTROL_FLOW = {"cond", "while_loop", "map_impl", "scan", "associative_scan"}


def call_watched(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    mode: TorchFunctionMode,
) -> Any:
    """Call a function; where it is control flow, a mode sees what happens inside.

    Args:
        func: The function.
        args: What it is called with.
        kwargs: The same, by name.
        mode: The mode that was shown the call.

    Returns:
        What the function returns.
    """
    if operator_name(func) not in _CONTROL_FLOW:
        return func(*args, **kwargs)
    compiled = _compiled(func) if _wants_gradient(args) else None
    if compiled is None:
        return func(*(_watched(arg, mode) for arg in args), **kwargs)
    random_state = torch.get_rng_state()
    with torch._C.DisableTorchFunction(), torch.compiler.set_stance("default"):
        output = compiled(*args)
    with torch.random.fork_rng(), torch.no_grad():
        torch.set_rng_state(random_state)
        func(*(_watched(arg, mode) for arg in args), **kwargs)
    return output


def _watched(arg: Any, mode: TorchFunctionMode) -> Any:
    """The same argument; a function that switches the mode on where it is one."""
    if not isinstance(arg, FunctionType | MethodType | nn.Module):
        return arg

    @wraps(arg)
    def call(*inputs: Any) -> Any:
        with mode:
            return arg(*inputs)

    return call


def _wants_gradient(args: tuple[Any, ...]) -> bool:
    """Whether a tensor that the functions are given, or hold, has a gradient."""
    held = [
        cell.cell_contents
        for function in args
        for cell in getattr(function, "__closure__", None) or ()
    ]
    tensors = [x for x in tree_leaves([args, held]) if isinstance(x, Tensor)]
    modules = [x for x in (*args, *held) if isinstance(x, nn.Module)]
    tensors += [parameter for module in modules for parameter in module.parameters()]
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _compiled(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """The public function that compiles what it is given, and then calls this operator."""
    if operator_name(func) == "cond":
        return torch.cond
    if operator_name(func) == "while_loop":
        from torch._higher_order_ops.while_loop import while_loop

        return lambda condition, body, carried, *_: while_loop(condition, body, carried)  # type: ignore[no-untyped-call]
    return None
