"""Attention inside ``torch.cond``, ``torch.while_loop``, ``map`` and ``scan``.

They are operators that are given functions, and torch switches a mode off while it answers a call
that the mode was shown. So the functions switch it on again.

Where a gradient is wanted, torch compiles the functions first, which nobody may watch. Then they
run twice: so for what is returned, and without gradient for what is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import CellType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from mha_lab.recording.calls.flex import operator_name

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
    if not isinstance(arg, FunctionType | MethodType | partial | nn.Module):
        return arg

    @wraps(arg)
    def call(*inputs: Any) -> Any:
        with mode:
            return arg(*inputs)

    return call


def _wants_gradient(args: tuple[Any, ...]) -> bool:
    """Whether a tensor that the functions are given, or hold, has a gradient."""
    if not torch.is_grad_enabled():
        return False
    leaves, seen = list(tree_leaves(args)), set()
    while leaves:
        leaf = leaves.pop()
        if id(leaf) in seen:
            continue
        seen.add(id(leaf))
        tensors = leaf.parameters() if isinstance(leaf, nn.Module) else [leaf]
        if any(isinstance(one, Tensor) and one.requires_grad for one in tensors):
            return True
        leaves += tree_leaves(_held(leaf))
    return False


def _held(function: Any) -> list[Any]:
    """What a function holds: in its closure, as a partial, or as whose method it is."""
    if isinstance(function, partial):
        return [function.func, *function.args, *function.keywords.values()]
    if isinstance(function, MethodType):
        return [function.__self__, function.__func__]
    cells = getattr(function, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if cell != CellType()]


def _compiled(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """The public function that compiles what it is given, and then calls this operator."""
    if operator_name(func) == "cond":
        return torch.cond
    if operator_name(func) == "while_loop":
        from torch._higher_order_ops.while_loop import while_loop

        return lambda condition, body, carried, *_: while_loop(condition, body, carried)  # type: ignore[no-untyped-call]
    if operator_name(func) in ("map_impl", "scan"):
        from torch._higher_order_ops.utils import _maybe_compile_and_run_fn

        return lambda *args: _maybe_compile_and_run_fn(func, *args)  # type: ignore[no-untyped-call]
    return None
