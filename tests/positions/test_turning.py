"""Queries and keys turned where a projection has left them are those turned one by one."""

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck

from mha_lab.attention.composed import ComposedAttention
from mha_lab.attention.mixing.differential import Differential
from mha_lab.attention.mixing.none import NoMixing
from mha_lab.positions import turning
from mha_lab.positions.drawn import RandomizedRotation
from mha_lab.positions.randomized import randomized
from mha_lab.positions.rotary import RotaryPositions
from mha_lab.projected import Part, Projected

N, L, D = 2, 5, 6
PARTS = (Part("q", 3, D), Part("k", 1, D), Part("v", 1, 7))


def by_complex_numbers(x: Tensor, places: Tensor, fraction: float) -> Tensor:
    """Pair c as one complex number, times that of its angle (N, H, L, D)."""
    half = int(fraction * x.shape[-1]) // 2
    pairs = torch.complex(x[..., :half], x[..., half : 2 * half])
    angles = places[:, None] * 10000.0 ** (-torch.arange(half).double() / half)
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag, x[..., 2 * half :]], -1)


@pytest.mark.parametrize("fraction", [1.0, 0.7, 0.4])
@pytest.mark.parametrize("parts", [PARTS, PARTS[:1], PARTS[1:]], ids=["qkv", "q", "kv"])
def test_what_is_turned_before_it_is_cut(fraction: float, parts: tuple[Part, ...]) -> None:
    torch.manual_seed(0)
    encoding = RotaryPositions(3 * D, num_heads=3, fraction=fraction)
    places = torch.arange(4, 4 + L)
    width = sum(part.heads * part.width for part in parts)

    def before(product: Tensor) -> tuple[Tensor, ...]:
        return encoding.rotate_projected(Projected(product * 1, parts), places)

    def after(product: Tensor) -> tuple[Tensor, ...]:
        heads = Projected(product, parts).cut()
        return tuple(
            x if part.kind == "v" else by_complex_numbers(x, places, fraction)
            for part, x in zip(parts, heads, strict=True)
        )

    product = torch.randn(N, L, width, dtype=torch.float64, requires_grad=True)
    grads = [torch.randn_like(x) for x in after(product)]
    for one, other in zip(before(product), after(product), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    ours, theirs = (torch.autograd.grad(way(product), product, grads) for way in (before, after))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    assert gradcheck(before, product, check_batched_grad=True)
    assert gradgradcheck(before, product)


class Apart(nn.Module):
    """An encoding that is asked for heads alone."""

    def __init__(self, encoding: nn.Module) -> None:
        super().__init__()
        self.rotate = encoding.rotate


@pytest.mark.parametrize("row", [1, 8, 128])
@pytest.mark.parametrize("mixing", [NoMixing, Differential])
@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("is_drawn", [False, True])
def test_attention_is_the_same_either_way(
    row: int, mixing: type, kv_heads: int, is_drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turning, "_ROW", row)
    torch.manual_seed(0)
    encoding = (
        randomized(24, num_heads=4, encoding=RotaryPositions, positions=64, max_length=32)
        if is_drawn
        else RotaryPositions(24, num_heads=4, fraction=0.7)
    )
    encoding.eval()
    module = ComposedAttention(24, 4, mixing=mixing, kv_heads=kv_heads, position=encoding).double()
    x = torch.randn(3, 11, 24, dtype=torch.float64, requires_grad=True)
    grad = torch.randn_like(x)

    def attended() -> tuple[Tensor, ...]:
        output, _ = module(x, x, x, need_weights=False)
        return output, *torch.autograd.grad(output, [x, *module.parameters()], grad)

    assert isinstance(encoding, RandomizedRotation) == is_drawn
    together = attended()
    module.position = Apart(encoding)
    for one, other in zip(together, attended(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
