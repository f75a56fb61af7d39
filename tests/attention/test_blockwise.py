"""Blocks give what all at once gives: outputs and gradients, first and second."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from mha_lab.attention import pipeline
from mha_lab.attention.blockwise import attend as blockwise
from mha_lab.attention.blockwise import block
from mha_lab.attention.blockwise.mixed import mix, mix_back
from mha_lab.attention.grouped import serve_groups
from mha_lab.attention.mixing.differential import Differential
from mha_lab.attention.mixing.none import NoMixing
from mha_lab.attention.mixing.talking_heads import TalkingHeads
from mha_lab.attention.pipeline import Steps, attend, weigh
from mha_lab.attention.weighting.adaptive_entmax import AdaptiveEntmax
from mha_lab.attention.weighting.entmax15 import Entmax15
from mha_lab.attention.weighting.scalable_softmax import ScalableSoftmax
from mha_lab.attention.weighting.sigmoid import Sigmoid
from mha_lab.attention.weighting.sink import Sink
from mha_lab.attention.weighting.softmax import Softmax
from mha_lab.attention.weighting.sparsemax import Sparsemax
from mha_lab.attention.weighting.stick_breaking import StickBreaking
from mha_lab.attention.weighting.top_k import TopK

N, H, HK, L, S, D = 2, 4, 2, 11, 13, 6


class Outside(nn.Module):
    """A weighting that says no more than it must: autograd finds its gradient."""

    treats_rows_alike = True

    def forward(self, scores: Tensor, allowed: Tensor) -> Tensor:
        weights = (1 + scores.amax(-1, keepdim=True) - scores).pow(-2)
        return weights / weights.sum(-1, keepdim=True)


WEIGHTINGS = {
    "outside": Outside,
    "softmax": Softmax,
    "sparsemax": Sparsemax,
    "entmax15": Entmax15,
    "sigmoid": Sigmoid,
    "top_k": lambda: TopK(k=3),
    "stick_breaking": StickBreaking,
    "scalable_softmax": lambda: ScalableSoftmax(num_heads=H),
    "adaptive_entmax": lambda: AdaptiveEntmax(num_heads=H),
}
MIXINGS = {
    "none": NoMixing,
    "talking_heads": lambda: TalkingHeads(num_heads=H),
    "differential": lambda: Differential(head_dim=D),
}


@pytest.fixture(autouse=True)
def blocks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "_WORTH", 1)
    monkeypatch.setattr(block, "_FEWEST_ROWS", 3)
    monkeypatch.setattr(block, "BLOCK_ELEMENTS", 200)
    torch.manual_seed(0)


def masks() -> dict[str, tuple[Tensor | None, bool]]:
    """Inside masks, with rows that see no key, and whether calls are causal."""
    of_rows = torch.rand(L, S) > 0.3
    of_rows[4] = False
    of_heads = torch.rand(N, H, L, S) > 0.3
    of_heads[1, 2, 5] = False
    padding = torch.ones(N, 1, 1, S, dtype=torch.bool)
    padding[1, ..., 8:] = False
    added = torch.randn(N, 1, L, S, dtype=torch.float64)
    added[..., 3] = -torch.inf
    return {
        "none": (None, False),
        "causal": (None, True),
        "rows": (of_rows, False),
        "heads": (of_heads, False),
        "padding": (padding, False),
        "float": (added, False),
    }


def made(weighting: str, mixing: str, softcap: float | None) -> tuple[Steps, list[Tensor]]:
    parts = nn.ModuleList([WEIGHTINGS[weighting](), MIXINGS[mixing]()]).double()
    for parameter in parts.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return Steps(parts[0], parts[1], 0.5, softcap, H, HK), list(parts.parameters())


def tensors(maps: int) -> list[Tensor]:
    shapes = [(N, maps * H, L, D // maps), (N, maps * HK, S, D // maps), (N, HK, S, D)]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize(("weighting", "mixing"), list(product(WEIGHTINGS, MIXINGS)))
def test_blocks_give_what_the_reference_gives(weighting: str, mixing: str) -> None:
    for (mask, is_causal), softcap, has_bias in zip(
        masks().values(), (None, 2.0) * 3, (True, True, False) * 2, strict=True
    ):
        steps, parameters = made(weighting, mixing, softcap)
        q, k, v = tensors(2 if mixing == "differential" else 1)
        bias = torch.randn(1, H, L, S, dtype=torch.float64, requires_grad=has_bias)
        call = (bias if has_bias else None, mask, is_causal, steps)
        blocks = blockwise.attend_in_blocks(q, k, v, *call, 0.0)
        if blocks is None:  # rows are scaled after heads are mixed or scores capped
            assert weighting in ("scalable_softmax", "adaptive_entmax")
            assert mixing == "talking_heads" or softcap
            continue
        whole = weigh(q, k, v, *call) @ serve_groups(v, HK, H)
        torch.testing.assert_close(blocks, whole, rtol=0, atol=1e-12)
        wanted = [q, k, v, *parameters, *([bias] if has_bias else [])]
        grad = torch.randn_like(whole)
        options = {"allow_unused": True, "materialize_grads": True}
        ours = torch.autograd.grad(blocks, wanted, grad, **options)
        theirs = torch.autograd.grad(whole, wanted, grad, **options)
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", list(masks()))
@pytest.mark.parametrize("mixing", ["none", "differential"])
def test_few_keys_give_what_all_give(name: str, mixing: str) -> None:
    keys = 37  # enough that two are few
    steps, parameters = made("top_k", mixing, 2.0 if name in ("none", "heads") else None)
    steps.weighting.k = 2
    q = torch.randn(N, H * (1 + (mixing != "none")), L, 3, dtype=torch.float64, requires_grad=True)
    k = torch.randn(N, q.shape[1] // 2, keys, 3, dtype=torch.float64, requires_grad=True)
    v = torch.randn(N, HK, keys, D, dtype=torch.float64, requires_grad=True)
    mask, is_causal = masks()[name]
    if mask is not None:  # a row that sees a single key, fewer than are looked for, and one without
        is_bool = mask.dtype == torch.bool
        mask = torch.nn.functional.pad(mask, (0, keys - S), value=is_bool)
        mask = mask.expand(*mask.shape[:-2], L, keys).clone()
        mask[..., 6:8, :] = False if is_bool else -torch.inf
        mask[..., 6, 0] = is_bool
    bias = torch.randn(1, H, L, keys, dtype=torch.float64)
    output = attend(q, k, v, bias, mask, is_causal, steps)
    whole = weigh(q, k, v, bias, mask, is_causal, steps) @ serve_groups(v, HK, H)
    torch.testing.assert_close(output, whole, rtol=0, atol=1e-12)
    grad = torch.randn_like(whole)
    wanted = [q, k, v, *parameters]
    ours = torch.autograd.grad(output, wanted, grad, allow_unused=True, create_graph=True)
    plain = torch.autograd.grad(output, wanted, grad, allow_unused=True, retain_graph=True)
    theirs = torch.autograd.grad(whole, wanted, grad, allow_unused=True)
    for mine, quick, other in zip(ours, plain, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-11)
        torch.testing.assert_close(quick, other, rtol=0, atol=1e-11)
    assert "ToFew" in names_below(output)


@pytest.mark.parametrize("seen", [1, 2, 3, 5])
def test_blocks_of_fewer_keys_than_the_few(seen: int) -> None:
    keys, (steps, _) = 50, made("top_k", "none", None)  # three are few of fifty
    q, k, v = (torch.randn(N, HK, rows, D, dtype=torch.float64) for rows in (L, keys, keys))
    steps = steps._replace(num_heads=HK)
    q.requires_grad_()
    padding = (torch.arange(keys) < seen)[None, None, None]
    output = attend(q, k, v, None, padding, False, steps)
    assert "ToFew" in names_below(output)
    whole = weigh(q, k, v, None, padding, False, steps) @ v
    torch.testing.assert_close(output, whole, rtol=0, atol=1e-12)
    ours, theirs = (torch.autograd.grad(y.square().sum(), q)[0] for y in (output, whole))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


def names_below(output: Tensor) -> str:
    """The graph of an output, as far as it goes."""
    found, todo = [], [output.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and len(found) < 100:
            found.append(node.name())
            todo += [further for further, _ in node.next_functions]
    return " ".join(found)


@pytest.mark.parametrize(
    "weighting", ["softmax", "sparsemax", "entmax15", "stick_breaking", "sigmoid"]
)
def test_gradients_have_gradients(weighting: str) -> None:
    steps = Steps(WEIGHTINGS[weighting](), TalkingHeads(num_heads=2).double(), 0.5, 2.0, 2, 2)
    inputs = [torch.randn(1, 2, 5, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    bias = torch.randn(1, 1, 5, 5, dtype=torch.float64, requires_grad=True)

    def attended(*tensors: Tensor) -> Tensor:
        output = blockwise.attend_in_blocks(*tensors, None, False, steps, 0.0)
        assert output is not None
        return output

    assert torch.autograd.gradcheck(attended, (*inputs, bias), fast_mode=True)
    assert torch.autograd.gradgradcheck(attended, (*inputs, bias), fast_mode=True)


def test_several_gradients_at_once() -> None:
    steps, _ = made("entmax15", "none", None)
    inputs = tensors(1)
    output = blockwise.attend_in_blocks(*inputs, None, None, False, steps, 0.0)
    assert output is not None
    grads = torch.randn(3, *output.shape, dtype=torch.float64)
    together = torch.autograd.grad(output, inputs, grads, is_grads_batched=True, retain_graph=True)
    for i, grad in enumerate(grads):
        alone = torch.autograd.grad(output, inputs, grad, retain_graph=True)
        for mine, other in zip(together, alone, strict=True):
            torch.testing.assert_close(mine[i], other, rtol=0, atol=1e-12)


def test_backward_under_autocast_is_as_exact() -> None:
    steps, _ = made("sigmoid", "none", None)
    inputs = [x.detach().float().requires_grad_() for x in tensors(1)]
    output = blockwise.attend_in_blocks(*inputs, None, None, False, steps, 0.0)
    assert output is not None
    grad = torch.randn_like(output)
    plain = torch.autograd.grad(output, inputs, grad, retain_graph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.autograd.grad(output, inputs, grad)
    for mine, other in zip(inside, plain, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0)


@pytest.mark.parametrize("further", [1, 2])
def test_maps_are_added_up_as_a_sum_says(further: int) -> None:
    M, h, rows, keys = further + 1, 3, 5, 7
    factors = torch.randn(further, dtype=torch.float64, requires_grad=True)
    maps = torch.randn(2, M * h, rows, keys, dtype=torch.float64, requires_grad=True)
    all_factors = torch.cat([torch.ones(1, dtype=torch.float64), factors])
    whole = torch.einsum("nhmls,m->nhls", maps.view(2, h, M, rows, keys), all_factors)
    torch.testing.assert_close(mix(factors, maps), whole)
    grad = torch.randn_like(whole)
    theirs = torch.autograd.grad(whole, (maps, factors), grad)
    with torch.no_grad():
        torch.testing.assert_close(mix_back(factors, maps, grad), theirs)


def test_differential_maps_go_through_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, _ = made("softmax", "differential", None)
    call = (*tensors(2), None, None, False, steps)
    expected = weigh(*call) @ serve_groups(call[2], HK, H)
    monkeypatch.setattr(pipeline, "attend_fused", lambda *_: pytest.fail("two calls of the kernel"))
    torch.testing.assert_close(attend(*call), expected)


def test_what_blocks_do_not_serve() -> None:
    q, k, v = tensors(1)
    sink = Steps(Sink(num_heads=H).double(), NoMixing(), 0.5, 2.0, H, HK)
    assert blockwise.attend_in_blocks(q, k, v, None, None, False, sink, 0.0) is None
    steps, _ = made("sparsemax", "none", None)
    assert blockwise.attend_in_blocks(q, k, v, None, None, False, steps, 0.5) is None
    wanted = torch.zeros(L, S, dtype=torch.float64, requires_grad=True)
    assert blockwise.attend_in_blocks(q, k, v, None, wanted, False, steps, 0.0) is None


def test_attend_goes_through_blocks_also_for_a_bias_that_learns() -> None:
    steps, _ = made("softmax", "none", None)
    q, k, v = tensors(1)
    bias = torch.randn(1, H, L, S, dtype=torch.float64, requires_grad=True)
    assert "InBlocks" in str(attend(q, k, v, bias, None, False, steps).grad_fn)
    assert "InBlocks" not in str(attend(q, k, v, bias.detach(), None, False, steps).grad_fn)


def test_what_is_mostly_blocked_is_left_to_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_MANY", 1)
    length = 60
    places = torch.arange(length)
    near = (places[:, None] - places).abs() < 4
    causal = near.new_ones(length, length).tril()
    padding = (places < 50)[None, None, None]
    assert block.is_mostly_blocked(near, length, length)
    assert block.is_mostly_blocked(torch.where(near, 0.0, -torch.inf), length, length)
    assert block.is_mostly_blocked(causal, length, length)
    assert not block.is_mostly_blocked(padding, length, length)
    assert not block.is_mostly_blocked(near.new_ones(length, length), length, length)
    steps = Steps(Softmax(), NoMixing(), 0.5, None, H, H)
    q, k, v = (torch.randn(N, H, length, D, dtype=torch.float64) for _ in range(3))
    slopes = -torch.rand(H, 1, 1, dtype=torch.float64) * (places[:, None] - places).abs()
    for bias, mask, is_causal in ((None, near, False), (slopes, None, True), (slopes, near, False)):
        with monkeypatch.context() as patch:
            patch.setattr(pipeline, "attend_fused", None)  # is not asked
            output = attend(q, k, v, bias, mask, is_causal, steps)
        whole = weigh(q, k, v, bias, mask, is_causal, steps) @ v
        torch.testing.assert_close(output, whole, rtol=0, atol=1e-12)
