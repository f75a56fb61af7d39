"""One attention module turned into the other class: torch's into ours, ours into torch's.

A module's state is its ``__dict__``: parameters, submodules, hooks, the training flag and whatever
its user has put there. Since both classes keep the same parameters under the same names, converting
is taking that over whole.
"""

import copy
import warnings
from typing import TypeVar

from torch import nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.utils import parametrize

Ours = TypeVar("Ours", bound=nn.Module)
"""Our class."""

_PLAIN_LINEARS = (nn.Linear, NonDynamicallyQuantizableLinear)


def check_convertible(module: nn.Module, name: str = "module") -> None:
    """Refuse a module whose meaning our class would not keep.

    Args:
        module: What is to become ours.
        name: What to call it in the sentence.

    Raises:
        TypeError: It is no ``nn.MultiheadAttention``, or one with behaviour of its own.
    """
    kind = type(module)
    if not isinstance(module, nn.MultiheadAttention):
        raise TypeError(f"{name} must be a torch.nn.MultiheadAttention, got {_full_name(kind)}")
    if parametrize.is_parametrized(module):
        raise TypeError(
            f"{name} has parametrized weights ({', '.join(module.parametrizations)}), which cannot "  # type: ignore[arg-type]
            "be taken over; convert it before it is parametrized, or call "
            "torch.nn.utils.parametrize.remove_parametrizations on it first"
        )
    if kind is not nn.MultiheadAttention:
        raise TypeError(
            f"{name} is a {_full_name(kind)}, a subclass of torch.nn.MultiheadAttention whose own "
            "behaviour would be lost; replace it by hand where a plain one will do"
        )
    if "forward" in module.__dict__:
        raise TypeError(
            f"{name} has a forward of its own ({module.forward!r}), which would be lost; remove "
            "what patched it first, and put it back after the conversion"
        )


def adopt(module: nn.MultiheadAttention, kind: type[Ours]) -> Ours:
    """Make a module of ours that holds the very parameters, submodules and hooks of torch's.

    Args:
        module: As ``check_convertible`` lets it pass; not to be used afterwards.
        kind: Our class.
    """
    ours = kind.__new__(kind)
    ours.__dict__.update(module.__dict__)
    del ours.__dict__["_qkv_same_embed_dim"]  # a class attribute of ours
    ours.__dict__.update(average_attn_weights=True, has_judged_float_mask=False)
    return ours


def copy_from_torch(module: nn.MultiheadAttention, kind: type[Ours]) -> Ours:
    """Make a module of ours from copies of what torch's holds.

    Raises:
        TypeError: As ``check_convertible``.
    """
    check_convertible(module)
    return adopt(copy.deepcopy(module), kind)


def copy_to_torch(module: nn.Module) -> nn.MultiheadAttention:
    """Make a module of torch's from copies of what ours holds.

    Args:
        module: Ours.

    Returns:
        A ``torch.nn.MultiheadAttention`` that gives the same outputs.

    Raises:
        TypeError: torch's forward would leave out a part: an ``out_proj`` that is no plain linear
            map (torch reads its weight and never calls it), or parametrized weights.

    Warns:
        UserWarning: Weights will be averaged over heads, where the module's were not, unless the
            call says ``average_attn_weights=False``.
    """
    if type(module.out_proj) not in _PLAIN_LINEARS:
        raise TypeError(
            f"out_proj is a {_full_name(type(module.out_proj))}; torch.nn.MultiheadAttention reads "
            "out_proj.weight and never calls out_proj, so what is added there would be lost; merge "
            "it into an nn.Linear first"
        )
    if parametrize.is_parametrized(module):
        raise TypeError(
            "the module has parametrized weights; call "
            "torch.nn.utils.parametrize.remove_parametrizations on it first"
        )
    if not module.average_attn_weights:
        warnings.warn(
            "torch.nn.MultiheadAttention returns weights averaged over the heads by default; call "
            "it with average_attn_weights=False to get one map a head, as this module gives",
            UserWarning,
            stacklevel=3,
        )
    state = copy.deepcopy(module).__dict__
    for ours in ("average_attn_weights", "has_judged_float_mask"):
        del state[ours]
    twin = nn.MultiheadAttention.__new__(nn.MultiheadAttention)
    twin.__dict__.update(state)
    twin._qkv_same_embed_dim = twin.in_proj_weight is not None
    # torch's own class, which keeps dynamic quantization from breaking what reads the weight.
    twin.out_proj.__class__ = NonDynamicallyQuantizableLinear
    return twin


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
