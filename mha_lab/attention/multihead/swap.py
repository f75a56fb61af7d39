"""Put this project's attention wherever a model has ``nn.MultiheadAttention``."""

import warnings

import torch
from torch import nn

from mha_lab.attention.multihead.conversion import adopt, check_convertible
from mha_lab.attention.multihead.module import MultiheadAttention


def swap_attention(model: nn.Module) -> nn.Module:
    """Replace every ``nn.MultiheadAttention`` in a model by ours, weights kept.

    The model is changed in place. Parameters are the same objects as before, so optimizers, tied
    weights, devices, dtypes and ``requires_grad`` stay as they are; so do hooks, training flags and
    a module that stands in several places. ``nn.TransformerEncoder`` no longer turns padded batches
    into nested tensors, which only its fused path can read.

    Example:
        >>> model = swap_attention(nn.Transformer(batch_first=True))

    Args:
        model: Any module: nested ones are searched, and it may be an ``nn.MultiheadAttention``
            itself.

    Returns:
        The model; where it is an ``nn.MultiheadAttention`` itself, the module in its place.

    Raises:
        TypeError: model is no module, or holds an attention that cannot be converted (a subclass,
            a quantized, scripted, parametrized or patched one). Nothing is changed then.

    Warns:
        UserWarning: The model holds no ``nn.MultiheadAttention``.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    found: dict[nn.Module, nn.MultiheadAttention] = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise TypeError(
                f"{name or 'model'} is a TorchScript module, whose parts cannot be replaced; swap "
                "the attention before torch.jit.script or torch.jit.trace"
            )
        if isinstance(module, nn.MultiheadAttention):
            check_convertible(module, name or "model")
            found[module] = module
    if not found and not any(isinstance(module, MultiheadAttention) for module in model.modules()):
        warnings.warn(
            f"{type(model).__name__} holds no torch.nn.MultiheadAttention: nothing was swapped",
            UserWarning,
            stacklevel=2,
        )
    swapped = {key: adopt(module, MultiheadAttention) for key, module in found.items()}
    if model in swapped:
        return swapped[model]
    for parent in list(model.modules()):
        for name, child in parent._modules.items():
            if child in swapped:
                parent._modules[name] = swapped[child]
    for encoder in model.modules():
        if isinstance(encoder, nn.TransformerEncoder):
            _keep_padded(encoder)
    return model


def _keep_padded(encoder: nn.TransformerEncoder) -> None:
    """Stop an encoder from handing nested tensors to layers that hold our attention."""
    if any(isinstance(module, MultiheadAttention) for module in encoder.modules()):
        encoder.use_nested_tensor = False
