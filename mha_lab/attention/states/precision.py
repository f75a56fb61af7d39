"""Sums over whole sequences are made in at least float32, whatever the call is made in."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def exactly(function: Callable[..., Tensor], *tensors: Tensor, **options: Any) -> Tensor:
    """Call a function with its tensors in at least float32, outside autocast.

    Args:
        function: What computes.
        tensors: Its first arguments, of one floating dtype.
        options: Further arguments, as they are.

    Returns:
        Its result, in at least float32.
    """
    exact = torch.promote_types(tensors[0].dtype, torch.float32)
    tensors = tuple(x if x.dtype == exact else x.to(exact) for x in tensors)
    device = tensors[0].device.type
    if device == "meta" or not torch.is_autocast_enabled(device):  # meta has no autocast
        return function(*tensors, **options)
    with torch.autocast(device, enabled=False):
        return function(*tensors, **options)
