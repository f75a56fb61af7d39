"""What something would take in memory, told before it is made, and compared with the machine.

All numbers are lower bounds: what is refused cannot work, and what is not refused may still fail.
"""

import os
import resource
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from mha_lab.errors import UserError, shown

ID = 8
"""Bytes of a token's id."""
NUMBER = 4
"""Bytes of a number in single precision."""
TRAINED = 4
"""A trained number is kept with its gradient and AdamW's two averages."""
MODULE = 2_000
"""Bytes that a module takes as a Python object, at least; so does a parameter."""
BEYOND = 2**63
"""Bytes that no tensor has."""
FEW = 4
"""Layers that are made to tell what one takes; more are a matter of multiplication."""


def machine_memory() -> int:
    """Bytes that this process may use: the machine's, or less where a limit is set."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    found.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(file, encoding="ascii") as stream:
                found.append(int(stream.read()))
        except (OSError, ValueError):  # no such limit
            continue
    return min(number for number in found if number > 0)


def require(needed: int, what: str) -> None:
    """Refuse what cannot fit into memory.

    Args:
        needed: bytes.
        what: names it, with the keys that decide it.

    Raises:
        UserError: the machine has less.
    """
    available = machine_memory()
    if needed > available:
        raise UserError(
            f"{what} would take at least {_size(needed)} of memory, and this machine has "
            f"{_size(available)}: choose less"
        )


def model_bytes(make: Callable[[int | None], nn.Module], layers: int | None) -> int | None:
    """What a model's parameters would take, counted without making them.

    Args:
        make: makes the model with so many layers, or, given None, as it is asked for.
        layers: how many are asked for; None where the model has no such number.

    Returns:
        Bytes; None where the model cannot be made without its numbers.
    """
    with torch.device("meta"):
        try:
            if layers is None or layers <= FEW:
                return _bytes(make(None))
            one, two = _bytes(make(1)), _bytes(make(2))
        except (RuntimeError, OverflowError) as error:
            return BEYOND if "overflow" in str(error).lower() else None
    return one + (layers - 1) * (two - one)


def _bytes(model: nn.Module) -> int:
    tensors = {id(t): t for t in (*model.parameters(), *model.buffers())}.values()
    objects = len(tensors) + sum(1 for _ in model.modules())
    return sum(t.numel() * t.element_size() for t in tensors) + MODULE * objects


def check_task(task: dict[str, Any]) -> None:
    """Refuse a vocabulary, or sequences, that no memory can hold.

    Args:
        task: the node's arguments, whose values are numbers already.

    Raises:
        UserError: see :func:`require`.
    """
    for key, each in (("vocab_size", 200), ("max_length", 100)):
        value = task.get(key)
        if isinstance(value, int):  # a symbol is a text and a place in a dict; a length, a list
            require(value * each, f"task.{key}={shown(value)}")


def check_data(data: dict[str, Any], width: int, *, vocabulary: int, embed_dim: int) -> None:
    """Refuse sets and batches that cannot fit.

    Args:
        data: the sizes of the config.
        width: the tokens of the longest source and target together.
        vocabulary: how many tokens there are.
        embed_dim: width of the model.

    Raises:
        UserError: see :func:`require`.
    """
    for key in ("train_size", "validation_size", "test_size"):
        size = data.get(key) or 0
        require(size * width * ID, f"data.{key}={shown(size)}")
    batch = data["batch_size"]
    token = ID + NUMBER * (3 * embed_dim + vocabulary // 2)
    require(batch * width * token, f"data.batch_size={shown(batch)}")


def _size(number: int) -> str:
    """Bytes, short."""
    amount = float(min(number, 10**300))
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} PB"
