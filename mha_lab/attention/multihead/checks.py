"""What a multi-head attention module can be built from and called with, said in sentences."""

import torch
from torch import Tensor


def check_sizes(
    embed_dim: int,
    num_heads: int,
    dropout: float,
    kdim: int | None = None,
    vdim: int | None = None,
) -> None:
    """Refuse what no module can be built from; widths of keys and values are E if not given.

    Raises:
        TypeError: A size is no whole number, or dropout no number.
        ValueError: A size is below 1, embed_dim is not divisible by num_heads, or dropout is
            outside [0, 1].
    """
    sizes = {
        "embed_dim": embed_dim,
        "num_heads": num_heads,
        "kdim": embed_dim if kdim is None else kdim,
        "vdim": embed_dim if vdim is None else vdim,
    }
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"{name} must be a whole number, got {size!r}")
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {name}={size}")
    if embed_dim % num_heads:
        raise ValueError(
            f"embed_dim must be divisible by num_heads, got embed_dim={embed_dim} and "
            f"num_heads={num_heads}"
        )
    if not isinstance(dropout, int | float) or isinstance(dropout, bool):
        raise TypeError(f"dropout must be a number, got {dropout!r}")
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout must be a probability, from 0 to 1, got dropout={dropout}")


def check_inputs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    widths: tuple[int, int, int],
    batch_first: bool,
    like: Tensor,
) -> None:
    """Refuse inputs that do not fit the module or one another.

    Args:
        query: Must be (N, L, E), or (L, E) unbatched; (L, N, E) if not batch_first.
        key: Must be (N, S, kdim) likewise.
        value: Must be (N, S, vdim) likewise.
        widths: E, kdim and vdim.
        batch_first: Whether the batch is the first axis.
        like: A parameter of the module, whose dtype and device the inputs must have.

    Raises:
        TypeError: An input is no tensor, or of another dtype than the module (without autocast).
        ValueError: An input is on another device, or its shape does not fit.
    """
    if query is key is value:
        _check_input("query", query, widths[0], like)
        _check_input("key", key, widths[1], like)
        _check_input("value", value, widths[2], like)
        return
    for name, x, width in zip(("query", "key", "value"), (query, key, value), widths, strict=True):
        _check_input(name, x, width, like)
    if not query.ndim == key.ndim == value.ndim:
        raise ValueError(
            "query, key and value must all be batched (3 axes) or all unbatched (2 axes), got "
            f"{_shapes(query, key, value)}"
        )
    if query.ndim == 3:
        axis = 0 if batch_first else 1
        sizes = [x.shape[axis] for x in (query, key, value)]
        if not sizes[0] == sizes[1] == sizes[2]:
            raise ValueError(
                f"query, key and value must have the same batch size (axis {axis} with "
                f"batch_first={batch_first}), got {sizes[0]}, {sizes[1]} and {sizes[2]} in "
                f"{_shapes(query, key, value)}"
            )
    if key.shape[:-1] != value.shape[:-1]:
        raise ValueError(
            "key and value must have the same length, one value a key, got "
            f"key {tuple(key.shape)} and value {tuple(value.shape)}"
        )


def _check_input(name: str, x: Tensor, width: int, like: Tensor) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
    if x.ndim not in (2, 3):
        raise ValueError(
            f"{name} must have 3 axes, or 2 without a batch, got shape {tuple(x.shape)}"
        )
    if x.shape[-1] != width:
        argument = {"query": "embed_dim", "key": "kdim", "value": "vdim"}[name]
        raise ValueError(
            f"{name} must be {argument}={width} wide in its last axis, got shape {tuple(x.shape)}"
        )
    if x.dtype != like.dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(
            f"{name} must have the module's dtype {like.dtype}, got {x.dtype}; convert one with "
            ".to(), or run under torch.autocast"
        )
    if x.device != like.device:
        raise ValueError(f"{name} must be on the module's device {like.device}, got {x.device}")


def _shapes(query: Tensor, key: Tensor, value: Tensor) -> str:
    shapes = (tuple(x.shape) for x in (query, key, value))
    return "query {}, key {}, value {}".format(*shapes)
