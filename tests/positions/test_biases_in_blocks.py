"""A bias made block by block is the whole one: outputs, gradients, and gradients of gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck

from mha_lab import MultiheadAttention, record_attention
from mha_lab.attention.blockwise import attend as blockwise
from mha_lab.attention.blockwise import block
from mha_lab.attention.composed import ComposedAttention
from mha_lab.attention.weighting.sigmoid import Sigmoid
from mha_lab.attention.weighting.softmax import Softmax
from mha_lab.positions import counting, diagonals, fire
from mha_lab.positions.cope import CopePositions
from mha_lab.positions.diagonals import by_offset
from mha_lab.positions.forgetting import ForgettingPositions
from mha_lab.positions.shaw import ShawPositions
from mha_lab.positions.t5 import T5Positions

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
    monkeypatch.setattr(diagonals, "_ROWS", 3)
    torch.manual_seed(0)


def attention(encoding: str, weighting: type[nn.Module], kv_heads: int) -> ComposedAttention:
    module = ComposedAttention(
        E, H, position=ENCODINGS[encoding](), weighting=weighting, kv_heads=kv_heads
    ).double()
    for parameter in module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return module


def outputs_and_gradients(
    module: nn.Module,
    x: Tensor,
    grad: Tensor,
    padding: Tensor | None,
    *,
    is_causal: bool = True,
) -> tuple[Tensor, ...]:
    output, _ = module(x, x, x, key_padding_mask=padding, need_weights=False, is_causal=is_causal)
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
    for hidden in (None, padding, padding | padding.flip(0)):  # the last: keys that no row sees
        with monkeypatch.context() as patch:
            patch.setattr(type(module.position), "score_bias", None)  # is not asked
            blocks = outputs_and_gradients(module, x, grad, hidden)
        assert type(module.position).score_bias is whole
        with monkeypatch.context() as patch:
            patch.setattr(blockwise, "_WORTH", 10**9)
            reference = outputs_and_gradients(module, x, grad, hidden)
        for ours, theirs in zip(blocks, reference, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


def test_shaw_in_blocks_that_see_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    module = attention("shaw", Softmax, H)
    x = torch.randn(N, L, E, dtype=torch.float64, requires_grad=True)
    grad = torch.randn(N, L, E, dtype=torch.float64)
    blocks = outputs_and_gradients(module, x, grad, None, is_causal=False)
    monkeypatch.setattr(blockwise, "_WORTH", 10**9)
    reference = outputs_and_gradients(module, x, grad, None, is_causal=False)
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


@pytest.mark.parametrize("is_padded", [False, True])
def test_a_mask_that_learns_is_not_kept_as_weights(
    is_padded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = MultiheadAttention(E, H).double()
    encoding = T5Positions(E, num_heads=H).double()
    x = torch.randn(N, L, E, dtype=torch.float64, requires_grad=True)
    grad = torch.randn(N, L, E, dtype=torch.float64)
    padding = torch.arange(L) >= torch.tensor([[L], [L - 7]]) if is_padded else None
    places = torch.arange(L)

    def attended() -> tuple[Tensor, ...]:
        mask = encoding.bias(places, places)[None]
        output = module(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]
        wanted = [x, encoding.table.weight, *module.parameters()]
        return output, *torch.autograd.grad(output, wanted, grad)

    with monkeypatch.context() as patch, record_attention(module) as maps:
        patch.setattr(F, "scaled_dot_product_attention", None)  # is not asked
        blocks = attended()
    monkeypatch.setattr(blockwise, "_WORTH", 10**9)
    for ours, theirs in zip(blocks, attended(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)
    output, weights = module(
        x, x, x, attn_mask=encoding.bias(places, places)[None], key_padding_mask=padding
    )
    torch.testing.assert_close(output, blocks[0], rtol=0, atol=1e-11)
    torch.testing.assert_close(maps[0].weights, weights, rtol=0, atol=1e-11, check_dtype=False)
    assert len(maps) == 1


@pytest.mark.parametrize("multiple", [0.3, 1.0, 5.0])
@pytest.mark.parametrize(("start", "count"), [(0, 17), (9, 5), (3, 4), (0, 3)])
def test_fire_in_parts_is_the_network_at_each_pair(
    multiple: float, start: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fire, "_AT_A_TIME", 200)
    encoding = fire.FirePositions(E, num_heads=3, hidden_dim=5, threshold=7.0).double()
    encoding.threshold_factor.data.fill_(multiple)
    of_q, of_k = torch.arange(start, start + count), torch.arange(start + count)
    c, threshold = encoding.curvature, encoding.threshold * encoding.threshold_factor
    longest = torch.maximum(of_q.double(), threshold)[:, None]
    share = (c * (of_q[:, None] - of_k).abs()).log1p() / ((c * longest).log1p() + 1e-6)
    expected = encoding.network(share[..., None]).permute(2, 0, 1)
    bias = encoding.bias(of_q, of_k)
    torch.testing.assert_close(bias, expected, rtol=0, atol=1e-12)
    grad = torch.randn_like(bias)
    ours, theirs = (torch.autograd.grad(x, encoding.parameters(), grad) for x in (bias, expected))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-11, atol=1e-11)
