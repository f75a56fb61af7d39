"""A bias made by its diagonals is the whole one, in custom and in composed attention."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from mha_lab import MultiheadAttention, record_attention
from mha_lab.attention import pipeline
from mha_lab.attention.blockwise import attend as blockwise
from mha_lab.attention.blockwise import block
from mha_lab.attention.composed import ComposedAttention
from mha_lab.attention.functional import attention
from mha_lab.attention.weighting.entmax15 import Entmax15
from mha_lab.models.positioned import attend_with_positions
from mha_lab.models.sequences import causal_mask
from mha_lab.positions import diagonals
from mha_lab.positions.alibi import AlibiPositions
from mha_lab.positions.hard_alibi import HardAlibiPositions
from mha_lab.positions.nape import NapePositions
from mha_lab.positions.randomized import randomized
from mha_lab.positions.t5 import T5Positions

N, H, L, E = 2, 4, 29, 24
ENCODINGS: dict[str, Callable[[], nn.Module]] = {
    "alibi": lambda: AlibiPositions(E, num_heads=H),
    "hard_alibi": lambda: HardAlibiPositions(E, num_heads=H, windowed_heads=3),
    "nape": lambda: NapePositions(E, num_heads=H),
    "t5": lambda: T5Positions(E, num_heads=H, num_buckets=8, max_distance=13),
    "randomized": lambda: randomized(
        E, num_heads=H, encoding=HardAlibiPositions, positions=50, max_length=L
    ),
}


@pytest.fixture(autouse=True)
def blocks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "_WORTH", 1)
    monkeypatch.setattr(pipeline, "_MANY", 1)
    monkeypatch.setattr(block, "_FEWEST_ROWS", 5)
    monkeypatch.setattr(block, "BLOCK_ELEMENTS", 300)
    monkeypatch.setattr(diagonals, "_ROWS", 3)
    torch.manual_seed(0)


def by_hand(module: nn.Module, x: Tensor, bias: Tensor, is_causal: bool, hidden: Tensor | None):  # type: ignore[no-untyped-def]
    """The output by the reference, from the module's own projections."""
    rows = x @ module.in_proj_weight.t() + module.in_proj_bias
    q, k, v = (y.unflatten(-1, (H, -1)).transpose(1, 2) for y in rows.chunk(3, -1))
    mask = bias if hidden is None else bias.masked_fill(hidden[:, None, None], -torch.inf)
    heads, _ = attention(q, k, v, mask, is_causal=is_causal)
    return module.out_proj(heads.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("kind", ["custom", "composed"])
@pytest.mark.parametrize("name", ENCODINGS)
def test_outputs_and_gradients_are_those_of_the_whole(
    name: str, kind: str, is_padded: bool
) -> None:
    encoding = ENCODINGS[name]().double().eval()
    made = MultiheadAttention(E, H) if kind == "custom" else ComposedAttention(E, H)
    module: nn.Module = made.double()
    places = torch.arange(L)
    hidden = places >= torch.tensor([[L], [L - 7]]) if is_padded else None
    for is_causal in (True, False):
        if kind == "composed":
            made.position = encoding  # type: ignore[assignment]
        x = torch.randn(N, L, E, dtype=torch.float64, requires_grad=True)
        with record_attention(made) as maps:
            output = attend_with_positions(
                module,
                encoding if kind == "custom" else None,
                x,
                num_heads=H,
                key_padding_mask=hidden,
                attn_mask=causal_mask(L, x.device) if is_causal else None,  # as models say it
                is_causal=is_causal,
            )
        expected = by_hand(module, x, encoding.bias(places, places), is_causal, hidden)
        torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
        wanted = [x, *{*module.parameters(), *encoding.parameters()}]
        grad = torch.randn_like(output)
        found = (torch.autograd.grad(y, wanted, grad) for y in (output, expected))
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)
        (shown,) = maps
        blocked = encoding.bias(places, places) == -torch.inf
        assert (shown.weights.masked_select(blocked) == 0).all()


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("length", [1, 4, 7])
def test_a_last_row_that_is_laid_out_alone(length: int, heads: int) -> None:
    """Three rows are laid out at a time."""
    encoding, places = AlibiPositions(E, num_heads=heads), torch.arange(length)
    expected = encoding.of_offsets(places - places[:, None])
    assert torch.equal(encoding.bias(places, places), expected)


@pytest.mark.parametrize("name", ["alibi", "t5"])
def test_a_last_row_that_is_a_block_of_its_own(name: str) -> None:
    length = 25  # blocks are of one head and twelve rows
    encoding, module = ENCODINGS[name]().double(), MultiheadAttention(E, H).double()
    places = torch.arange(length)
    x = torch.randn(N, length, E, dtype=torch.float64, requires_grad=True)
    output, _ = module(x, x, x, need_weights=False, is_causal=True, encoding=encoding)
    bias = encoding.of_offsets(places - places[:, None])
    expected = by_hand(module, x, bias, True, None)
    wanted = [x, *module.parameters(), *encoding.parameters()]
    grad = torch.randn_like(output)
    found = (torch.autograd.grad(y, wanted, grad) for y in (output, expected))
    for ours, theirs in zip((output, *next(found)), (expected, *next(found)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("is_causal", [False, True])
def test_drawn_positions_are_shown_as_they_were_applied(is_causal: bool) -> None:
    made = randomized(E, num_heads=H, encoding=T5Positions, positions=90, max_length=L)
    module = MultiheadAttention(E, H)
    x = torch.randn(N, L, E)
    with record_attention(module) as maps:
        output, _ = module(x, x, x, need_weights=False, is_causal=is_causal, encoding=made.train())
    v = (x @ module.in_proj_weight[2 * E :].t()).unflatten(-1, (H, -1)).transpose(1, 2)
    heads = maps[0].weights.float() @ v
    expected = module.out_proj(heads.transpose(1, 2).flatten(2))
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)


def test_blocks_leave_out_what_a_head_does_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "attend_fused", None)  # is not asked
    monkeypatch.setattr(HardAlibiPositions, "bias", None)  # nor all of it made
    sizes = []
    whole = block.cut

    def counted(*args, **options):  # type: ignore[no-untyped-def]
        for part in whole(*args, **options):
            sizes.append((part.heads.start, part.keys.stop - part.keys.start))
            yield part

    monkeypatch.setattr("mha_lab.attention.blockwise.between.cut", counted)
    x = torch.randn(1, L, E)
    encoding = HardAlibiPositions(E, num_heads=H, windowed_heads=2)
    MultiheadAttention(E, H)(x, x, x, need_weights=False, is_causal=True, encoding=encoding)
    of_heads = [max(keys for head, keys in sizes if head == h) for h in range(H)]
    assert of_heads == [10, 11, L, L]  # ten rows a block; a window of h reaches h - 1 before them


def test_a_weighting_that_asks_who_is_allowed_is_told() -> None:
    asked = []

    class Asking(Entmax15):
        def forward(self, scores: Tensor, allowed: Tensor, *found: Tensor) -> Tensor:
            asked.append(allowed.expand(scores.shape).sum().item())
            return super().forward(scores, allowed, *found)

    encoding = HardAlibiPositions(E, num_heads=H, windowed_heads=H)
    x = torch.randn(1, 3, E)
    module = ComposedAttention(E, H, position=encoding, weighting=Asking)
    module(x, x, x, need_weights=False, is_causal=True)
    assert sum(asked) == 3 + 5 + 6 + 6


def test_second_gradients_and_several_at_once() -> None:
    encoding, module = T5Positions(E, num_heads=H).double(), MultiheadAttention(E, H).double()
    x = torch.randn(1, 7, E, dtype=torch.float64, requires_grad=True)

    def attend(x: Tensor, table: Tensor) -> Tensor:
        encoding.table.weight = table  # type: ignore[assignment]
        output: Tensor = module(x, x, x, need_weights=False, is_causal=True, encoding=encoding)[0]
        return output

    table = encoding.table.weight.detach().requires_grad_()
    encoding.table._parameters.pop("weight")
    assert torch.autograd.gradcheck(attend, (x, table), check_batched_grad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(attend, (x, table), fast_mode=True)
