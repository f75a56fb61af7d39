"""The mechanisms and encodings of the config folders, each as one self-attention to be timed."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mha_lab.bench.shapes import Shape
from mha_lab.build import build
from mha_lab.config import compose, options
from mha_lab.errors import UserError, nearest
from mha_lab.models.checks import check_use
from mha_lab.models.interface import AttentionFactory
from mha_lab.models.positioned import attend_with_positions, place, self_attention

BASE = "custom"
"""The mechanism that all others are compared with."""

LINEAR = ("linear", "retention", "delta")
"""Those whose time is linear in the length, timed at long lengths too."""


class Case(NamedTuple):
    """One row of the table: an option of ``attention`` or of ``position``."""

    group: str
    name: str


def cases(only: str | None) -> list[Case]:
    """Every option of both groups.

    Args:
        only: Names to keep, separated by commas; None keeps all.

    Raises:
        UserError: A name is no option.
    """
    found = [Case(group, name) for group in ("attention", "position") for name in options(group)]
    if only is None:
        return found
    known = [case.name for case in found]
    for name in only.split(","):
        if name not in known:
            raise UserError(
                f"only={name} is no mechanism and no encoding{nearest(name, known)}; "
                "`list attention position` shows them"
            )
    return [case for case in found if case.name in only.split(",")]


class SelfAttention(nn.Module):
    """A mechanism and an encoding, wherever that acts, in one call.

    Args:
        attention: Makes the mechanism.
        position: Makes the encoding.
        E: Width.
        H: Heads.
        is_causal: Whether calls are causal.

    Raises:
        ValueError: One of them has no meaning here, or they do not go together.
    """

    def __init__(
        self,
        attention: AttentionFactory,
        position: Callable[..., nn.Module],
        E: int,
        H: int,
        *,
        is_causal: bool,
    ) -> None:
        super().__init__()
        places = place(position, E, H, is_causal=is_causal)
        self.embedding = places.embeddings(E)
        self.attention, self.bias = self_attention(
            attention, E, H, dropout=0.0, encoding=places.layers
        )
        check_use(self.attention, is_causal=is_causal, is_cross=False)
        self.num_heads, self.is_causal = H, is_causal

    def forward(self, x: Float[Tensor, "N L E"]) -> Float[Tensor, "N L E"]:
        """Attend from x to x, without weights."""
        return attend_with_positions(
            self.attention,
            self.bias,
            self.embedding(x),
            num_heads=self.num_heads,
            key_padding_mask=None,
            attn_mask=None,
            is_causal=self.is_causal,
        )


def made(case: Case, shape: Shape, device: torch.device) -> SelfAttention:
    """Build a case: both ways where it can be, else causal; in ``custom`` where that takes it.

    Raises:
        ValueError: Neither will do.
    """
    _, L, E, H = shape
    if case.group == "attention":
        choices = [(case.name, "none")]
    else:
        choices = [(BASE, case.name), ("composed", case.name)]
    refusal: Exception | None = None
    for is_causal in (False, True):
        for choice in choices:
            attention, position = _factories(*choice, L)
            try:
                return SelfAttention(attention, position, E, H, is_causal=is_causal).to(device)
            except ValueError as error:
                refusal = error
    assert refusal is not None
    raise refusal


def step(module: nn.Module, shape: Shape, device: torch.device) -> Callable[[], None]:
    """One forward and backward, with a gradient such as a next layer gives."""
    x = torch.randn(shape[:3], device=device, requires_grad=True)
    gradient = torch.randn_like(x)

    def run() -> None:
        module(x).backward(gradient)
        module.zero_grad()
        x.grad = None

    return run


def base_step(shape: Shape, device: torch.device, *, is_causal: bool) -> Callable[[], None]:
    """The same of ``custom``, without positions."""
    _, L, E, H = shape
    attention, position = _factories(BASE, "none", L)
    module = SelfAttention(attention, position, E, H, is_causal=is_causal)
    return step(module.to(device), shape, device)


@functools.cache
def _factories(
    attention: str, position: str, length: int
) -> tuple[Callable[..., nn.Module], Callable[..., nn.Module]]:
    """Of both options; an encoding that has a longest length is told of one that will do."""
    cfg = compose([f"attention={attention}", f"position={position}"], run_dir=".")
    for name in ("max_length", "positions"):
        if name in cfg.position:
            cfg.position[name] = max(cfg.position[name], length)
    return build(cfg, "attention"), build(cfg, "position")
