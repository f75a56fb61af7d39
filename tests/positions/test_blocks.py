"""A bias made block by block is the whole one: outputs, gradients, and gradients of gradients."""

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck

from mha_lab.attention.blockwise import attend as blockwise
from mha_lab.attention.blockwise import block
from mha_lab.attention.composed import ComposedAttention
from mha_lab.attention.weighting.sigmoid import Sigmoid
from mha_lab.attention.weighting.softmax import Softmax
from mha_lab.positions import counting
from mha_lab.positions.cope import CopePositions
from mha_lab.positions.diagonals import by_offset
from mha_lab.positions.forgetting import ForgettingPositions
from mha_lab.positions.rotary import RotaryPositions
from mha_lab.positions.shaw import ShawPositions

N, H, L, E = 2, 4, 29, 24
ENCODINGS = {
    "cope": lambda: CopePositions(E, num_heads=H, max_positions=5),
    "forgetting": lambda: ForgettingPositions(E, num_heads=H),
    "shaw": lambda: ShawPositions(E, num_heads=H, max_distance=3),
}


@pytest.fixture(autouse=True)
def blocks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "_WORTH", 1)
    monkeypatch.setattr(block, "_FEWEST_ROWS", 5)
    monkeypatch.setattr(block, "BLOCK_ELEMENTS", 300)
    monkeypatch.setattr(counting, "_CHUNK", 4)
    torch.manual_seed(0)


def attention(encoding: str, weighting: type[nn.Module], kv_heads: int) -> ComposedAttention:
    module = ComposedAttention(
        E, H, position=ENCODINGS[encoding](), weighting=weighting, kv_heads=kv_heads
    ).double()
    for parameter in module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return module


def outputs_and_gradients(
    module: nn.Module, x: Tensor, grad: Tensor, padding: Tensor | None
) -> tuple[Tensor, ...]:
    output, _ = module(x, x, x, key_padding_mask=padding, need_weights=False, is_causal=True)
    return output, *torch.autograd.grad(output, [x, *module.parameters()], grad)


@pytest.mark.parametrize("kv_heads", [H, 2])
@pytest.mark.parametrize("weighting", [Softmax, Sigmoid])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_blocks_give_what_the_whole_gives(
    encoding: str, weighting: type[nn.Module], kv_heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = attention(encoding, weighting, kv_heads)
    x = torch.randn(N, L, E, dtype=torch.float64, requires_grad=True)
    grad = torch.randn(N, L, E, dtype=torch.float64)
    padding = torch.arange(L) >= torch.tensor([[L], [L - 7]])
    whole = type(module.position).score_bias
    for hidden in (None, padding):
        with monkeypatch.context() as patch:
            patch.setattr(type(module.position), "score_bias", None)  # is not asked
            blocks = outputs_and_gradients(module, x, grad, hidden)
        assert type(module.position).score_bias is whole
        with monkeypatch.context() as patch:
            patch.setattr(blockwise, "_WORTH", 10**9)
            reference = outputs_and_gradients(module, x, grad, hidden)
        for ours, theirs in zip(blocks, reference, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_blocks_have_second_gradients_and_several_at_once(encoding: str) -> None:
    module = attention(encoding, Softmax, H)
    x = torch.randn(1, 7, E, dtype=torch.float64, requires_grad=True)

    def attend(x: Tensor) -> Tensor:
        output: Tensor = module(x, x, x, need_weights=False, is_causal=True)[0]
        return output

    assert gradcheck(attend, x, check_batched_grad=True)
    output = attend(x)
    (grad,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
    assert gradgradcheck(attend, x[:, :3].detach().requires_grad_())
    grad.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize(
    ("queries", "keys", "start", "first_key"),
    [(5, 7, 0, 0), (1, 1, 0, 0), (7, 3, 2, 0), (1, 6, 5, 0), (6, 1, 0, 3)],
)
def test_diagonals(queries: int, keys: int, start: int, first_key: int) -> None:
    of_q, of_k = torch.arange(queries) + start, torch.arange(keys) + first_key
    table = torch.randn(3, 40, dtype=torch.float64, requires_grad=True)

    def laid_out(table: Tensor) -> Tensor:
        return by_offset(lambda offset: table.square()[:, offset + 20], of_q, of_k)

    expected = table.square()[:, of_k - of_q[:, None] + 20]
    assert torch.equal(laid_out(table), expected)
    assert gradcheck(laid_out, table, check_batched_grad=True)
    assert gradgradcheck(laid_out, table)
    gaps = by_offset(lambda offset: table[:, offset + 20], of_q * 2, of_k)
    assert torch.equal(gaps, table[:, of_k - 2 * of_q[:, None] + 20])


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_turning_side_by_side_is_turning_apart(fraction: float) -> None:
    encoding = RotaryPositions(E, num_heads=H, fraction=fraction)
    places = torch.arange(5)

    def together(x: Tensor) -> tuple[Tensor, Tensor]:
        q, k = (y.unflatten(-1, (H, -1)).transpose(1, 2) for y in x.chunk(2, -1))
        return encoding.rotate(q, k, places, places)

    def apart(x: Tensor) -> tuple[Tensor, Tensor]:
        q, k = (y.unflatten(-1, (H, -1)).transpose(1, 2).contiguous() for y in x.chunk(2, -1))
        return encoding.rotate(q, k, places, places.clone())

    x = torch.randn(2, 5, 2 * E, dtype=torch.float64, requires_grad=True)
    for one, other in zip(together(x), apart(x), strict=True):
        assert torch.equal(one, other)
    assert gradcheck(together, x, check_batched_grad=True)
    assert gradcheck(apart, x)
    assert gradgradcheck(together, x)
