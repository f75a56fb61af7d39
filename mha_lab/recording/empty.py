"""Why nothing was recorded of a model."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import torch
from torch import nn


class Unrecorded(Enum):
    """Why something that a recorder saw is not among its maps."""

    NOT_CHOSEN = "attention calls are in modules that modules=... does not choose"
    OUTSIDE = "attention calls are made by none of its modules; record the model that makes them"
    TRACED = "attention calls were only traced or compiled; run the model itself"
    REPEATED = "attention calls were made by a backward pass only; run the forward pass inside too"
    NO_NUMBERS = "attention calls had tensors without numbers (meta device); use a real device"
    SOFTMAX = "softmaxes over a last axis: softmax=True records attention written by hand"


def why_empty(model: nn.Module, unrecorded: Mapping[Unrecorded, int]) -> str:
    """Say that nothing was recorded, and why that can be.

    Args:
        model: The model.
        unrecorded: How often what was seen.

    Returns:
        A sentence, then the reasons.
    """
    reasons = [f"{count} {reason.value}" for reason, count in unrecorded.items()]
    scripted = [
        name or "the model itself"
        for name, module in model.named_modules()
        if isinstance(module, torch.jit.ScriptModule)
    ]
    if scripted:
        reasons.append(
            f"{scripted[0]} is TorchScript, into which nobody can look; record the Python module"
        )
    if not reasons:
        reasons = [
            "the model was not called inside the block",
            "it has no attention",
            "its attention is a kernel that PyTorch does not see (flash_attn, xformers, "
            "flex_attention); choose its scaled_dot_product_attention implementation",
        ]
    return f"no attention of {type(model).__name__} was recorded. This can be why: " + "; ".join(
        reasons
    )
