"""What no model can be built from, refused in a sentence."""

from typing import Literal, get_args

from torch import nn

Norm = Literal["pre", "post"]
NORMS = get_args(Norm)
Activation = Literal["relu", "gelu"]
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}


def check_sizes(**sizes: int | None) -> None:
    """Refuse a size below 1; None is a size left open.

    Raises:
        ValueError: names the size.
    """
    for name, value in sizes.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def check_dropout(dropout: float) -> None:
    """Refuse a probability outside [0, 1).

    Raises:
        ValueError: shows the value.
    """
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {dropout}")


def check_heads(embed_dim: int, num_heads: int) -> None:
    """Refuse a width that no whole heads can be cut from.

    Raises:
        ValueError: a size below 1, or ``embed_dim`` not divisible by ``num_heads``.
    """
    check_sizes(embed_dim=embed_dim, num_heads=num_heads)
    if embed_dim % num_heads:
        raise ValueError(
            f"embed_dim must be divisible by num_heads, got embed_dim={embed_dim} and "
            f"num_heads={num_heads}"
        )


def check_block(
    *,
    embed_dim: int,
    num_heads: int,
    feedforward_dim: int | None,
    dropout: float,
    norm: str,
    activation: str,
) -> None:
    """Refuse what no block can be built from.

    Raises:
        ValueError: a size below 1, ``embed_dim`` not divisible by ``num_heads``, ``dropout``
            outside [0, 1), or an unknown ``norm`` or ``activation``.
    """
    check_sizes(feedforward_dim=feedforward_dim)
    check_heads(embed_dim, num_heads)
    check_dropout(dropout)
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")


def check_use(module: nn.Module, *, is_causal: bool, is_cross: bool) -> None:
    """Ask an attention module or an encoding whether it has a meaning where it is to stand.

    Its ``refuse(*, is_causal, is_cross)`` is called, where it has one.

    Args:
        module: what a block was given.
        is_causal: whether every query sees earlier keys only.
        is_cross: whether keys and values come from another sequence than the queries.

    Raises:
        ValueError: in the module's own sentence.
    """
    refuse = getattr(module, "refuse", None)
    if refuse is not None:
        refuse(is_causal=is_causal, is_cross=is_cross)
