"""What every mechanism with a state promises: masks, modes, maps and memory."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from mha_lab import record_attention
from mha_lab.attention.cache import Cache
from mha_lab.attention.delta import DeltaRule
from mha_lab.attention.linear import LinearAttention
from mha_lab.attention.retention import Retention

N, L, E, H = 2, 71, 15, 3
EVERY = pytest.mark.parametrize("mechanism", [LinearAttention, Retention, DeltaRule])
CAUSAL_ONLY = pytest.mark.parametrize("mechanism", [Retention, DeltaRule])


def made(mechanism: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    module = mechanism(E, H)
    with torch.no_grad():  # a bias that shows where a row is dead
        module.out_proj.bias.normal_()
    return module


def inputs(length: int = L) -> Tensor:
    return torch.randn(N, length, E, generator=torch.Generator().manual_seed(1))


def causal(length: int = L) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def padding(*, left: int = 0, right: int = 0) -> Tensor:
    mask = torch.zeros(N, L, dtype=torch.bool)
    mask[1, :left] = True
    mask[1, L - right :] = True
    return mask


@EVERY
def test_what_is_shown_is_what_was_applied(mechanism: type[nn.Module]) -> None:
    """The map times the values gives what the heads are, for the recorder and for who asks."""
    module, x = made(mechanism).double(), inputs().double()
    heads: list[Tensor] = []
    watched = module.norm if hasattr(module, "norm") else module.out_proj
    watched.register_forward_pre_hook(lambda _, given: heads.append(given[0]))
    with record_attention(module) as maps:
        _, weights = module(x, x, x, key_padding_mask=padding(right=3), is_causal=True)
    assert torch.equal(maps[0].weights, weights.detach())
    assert len(maps) == 1
    v = torch.nn.functional.linear(x, module.in_proj_weight[2 * E :]).view(N, L, H, E // H)
    made_of_map = weights @ v.transpose(1, 2)
    seen = heads[0] if heads[0].ndim == 4 else heads[0].view(N, L, H, -1).transpose(1, 2)
    if mechanism is Retention:  # what reaches out_proj is normalised and gated
        made_of_map = torch.nn.functional.rms_norm(made_of_map, made_of_map.shape[-1:], eps=1e-6)
        gate = torch.nn.functional.silu(module.gate_proj(x)).view(N, L, H, -1).transpose(1, 2)
        made_of_map = gate * made_of_map
    torch.testing.assert_close(seen, made_of_map, rtol=1e-10, atol=1e-10)


@EVERY
def test_no_later_token_changes_an_earlier_output(mechanism: type[nn.Module]) -> None:
    module, x = made(mechanism), inputs()
    changed = x.clone()
    changed[:, 40:] += 1.0
    before, after = (module(y, y, y, is_causal=True) for y in (x, changed))
    torch.testing.assert_close(after[0][:, :40], before[0][:, :40], rtol=0, atol=1e-5)
    assert not before[1].triu(1).any()


@EVERY
def test_the_causal_mask_and_is_causal_are_one(mechanism: type[nn.Module]) -> None:
    module, x = made(mechanism), inputs()
    expected = module(x, x, x, is_causal=True)[0]
    floats = torch.zeros(L, L).masked_fill(causal(), -torch.inf)
    merged = causal() | padding(right=3)[:, None, None, :]
    for masks in ({"attn_mask": causal()}, {"attn_mask": causal(), "is_causal": True}):
        assert torch.equal(module(x, x, x, **masks)[0], expected)
    assert torch.equal(module(x, x, x, attn_mask=floats)[0], expected)
    padded = module(x, x, x, is_causal=True, key_padding_mask=padding(right=3))[0]
    assert torch.equal(module(x, x, x, attn_mask=merged)[0], padded)


@EVERY
def test_padding_is_nothing(mechanism: type[nn.Module]) -> None:
    """Neither its content nor its length changes a sample, and its weight is exactly 0."""
    module, x = made(mechanism), inputs()
    mask = padding(right=3)
    changed = torch.where(mask[..., None], 1e4, x)
    before, after = (module(y, y, y, key_padding_mask=mask, is_causal=True) for y in (x, changed))
    torch.testing.assert_close(after[0][~mask], before[0][~mask], rtol=0, atol=1e-5)
    assert not before[1].masked_select(mask[:, None, None]).any()
    short = x[1:, : L - 3]
    alone = module(short, short, short, is_causal=True)[0]
    torch.testing.assert_close(alone[0], before[0][1, : L - 3], rtol=0, atol=1e-5)


@EVERY
def test_a_row_without_keys_is_the_bias(mechanism: type[nn.Module]) -> None:
    module, x = made(mechanism), inputs().requires_grad_()
    output, weights = module(x, x, x, key_padding_mask=padding(left=5), is_causal=True)
    torch.testing.assert_close(output[1, :5], module.out_proj.bias.expand(5, E))
    assert not weights[1, :, :5].any()
    (output.square().sum() + weights.square().sum()).backward()
    for tensor in (x, *module.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
    # Padding in front moves nothing: only distances count.
    alone = module(x[1:, 5:], x[1:, 5:], x[1:, 5:], is_causal=True)[0]
    torch.testing.assert_close(alone[0], output[1, 5:], rtol=0, atol=1e-5)


@EVERY
def test_one_answer_in_all_modes(mechanism: type[nn.Module]) -> None:
    module, x = made(mechanism), inputs()
    expected = module(x, x, x, need_weights=False, is_causal=True)[0]
    for twin in (module.eval(), copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        with torch.no_grad():
            assert torch.equal(twin(x, x, x, is_causal=True)[0], expected)
    unbatched, weights = module(x[0], x[0], x[0], is_causal=True)
    torch.testing.assert_close(unbatched, expected[0])
    assert weights.shape == (H, L, L)


@EVERY
def test_autocast_sums_in_float32(mechanism: type[nn.Module]) -> None:
    module, x = made(mechanism), inputs()
    exact = module(x, x, x, is_causal=True)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, weights = module(x, x, x, is_causal=True)
    assert output.isfinite().all()
    assert weights.isfinite().all()
    assert (output - exact).abs().max() < 0.1
    half = copy.deepcopy(module).to(torch.float16)
    assert half(*(x.half(),) * 3, is_causal=True)[0].isfinite().all()


@EVERY
@pytest.mark.slow
def test_compiles_in_one_graph(mechanism: type[nn.Module]) -> None:
    module, x = made(mechanism), inputs()
    compiled = torch.compile(module, fullgraph=True)
    for masks in ({"is_causal": True}, {"attn_mask": causal(), "is_causal": True}):
        for need_weights in (False, True):
            expected = module(x, x, x, need_weights=need_weights, **masks)[0]
            output = compiled(x, x, x, need_weights=need_weights, **masks)[0]
            torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="must be causal or the same for every query"):
        compiled(x, x, x, attn_mask=causal().logical_not(), is_causal=True)


@EVERY
def test_a_mask_of_its_own_for_each_query_is_refused(mechanism: type[nn.Module]) -> None:
    module, x = made(mechanism), inputs()
    window = causal() | causal().T.roll(3, 0)
    with pytest.raises(ValueError, match="must be causal or the same for every query; choose"):
        module(x, x, x, attn_mask=window, is_causal=True)
    with pytest.raises(ValueError, match="a float attn_mask may hold 0 and -inf alone; choose"):
        module(x, x, x, attn_mask=torch.full((L, L), 0.5), is_causal=True)
    with pytest.raises(ValueError, match="a float key_padding_mask may hold 0 and -inf alone"):
        module(x, x, x, key_padding_mask=torch.full((N, L), 0.5), is_causal=True)


@CAUSAL_ONLY
def test_where_it_has_no_meaning_is_said(mechanism: type[nn.Module]) -> None:
    module, x = made(mechanism), inputs()
    module.refuse(is_causal=True, is_cross=False)
    with pytest.raises(ValueError, match="in an encoder each query sees later keys too; choose"):
        module.refuse(is_causal=False, is_cross=False)
    for is_causal in (False, True):
        with pytest.raises(ValueError, match="means nothing between two sequences; choose"):
            module.refuse(is_causal=is_causal, is_cross=True)
    with pytest.raises(ValueError, match="looks back only: pass is_causal=True"):
        module(x, x, x)
    with pytest.raises(ValueError, match="got 71 queries and 5 keys; choose"):
        module(x, x[:, :5], x[:, :5], is_causal=True)
    assert torch.equal(module(*(x[:, :1],) * 3)[0], module(*(x[:, :1],) * 3, is_causal=True)[0])


@EVERY
@pytest.mark.parametrize(("batch", "length"), [(2, 0), (0, 3), (0, 0)])
def test_nothing_is_as_good_as_something(
    mechanism: type[nn.Module], batch: int, length: int
) -> None:
    x = torch.zeros(batch, length, E, requires_grad=True)
    output, weights = made(mechanism)(x, x, x, is_causal=True)
    assert output.shape == x.shape
    assert weights.shape == (batch, H, length, length)
    output.sum().backward()


class _Largest(TorchDispatchMode):
    """The most numbers in any tensor that an operation makes."""

    numbers = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for made in result if isinstance(result, tuple | list) else (result,):
            if isinstance(made, Tensor):
                self.numbers = max(self.numbers, made.numel())
        return result


@EVERY
def test_training_never_makes_a_matrix_of_the_length(mechanism: type[nn.Module]) -> None:
    """Twice the length, twice the largest tensor, forward and backward."""
    module, largest = made(mechanism), []
    for length in (512, 1024):
        x = inputs(length).requires_grad_()
        with _Largest() as seen:
            module(x, x, x, need_weights=False, is_causal=True)[0].sum().backward()
        largest.append(seen.numbers)
        assert seen.numbers < N * H * length * length / 3
    assert largest[1] == 2 * largest[0]


@EVERY
def test_padding_is_heeded_in_every_call_of_a_cache(mechanism: type[nn.Module]) -> None:
    """The mask speaks of all keys, those of earlier calls too, as where scores are kept."""
    module, x, mask = made(mechanism).double(), inputs(13).double(), padding(left=3)[:, :13].clone()
    mask[0, 7:9] = True  # met one by one
    expected = module(x, x, x, key_padding_mask=mask, need_weights=False, is_causal=True)[0]
    cache, start = Cache(), 5
    outputs = []
    for first, last in [(0, start), *((i, i + 1) for i in range(start, 13))]:
        new = x[:, first:last]
        options = {"key_padding_mask": mask[:, :last], "need_weights": False, "cache": cache}
        outputs.append(module(new, new, new, is_causal=first == 0, **options)[0])
    torch.testing.assert_close(torch.cat(outputs, 1), expected, rtol=1e-10, atol=1e-10)
    new = x[:, :1]
    with pytest.raises(ValueError, match=r"must have shape \(2, 14\), one entry a key"):
        module(new, new, new, key_padding_mask=mask[:, :1], need_weights=False, cache=cache)


@EVERY
def test_weights_of_keys_that_are_in_a_state_are_refused(mechanism: type[nn.Module]) -> None:
    """There is but the state of earlier keys, and a map of the new one alone was not applied."""
    module, x, cache = made(mechanism), inputs(5), Cache()
    assert module(x, x, x, is_causal=True, cache=cache)[1].shape == (N, H, 5, 5)
    new = x[:, :1]
    with pytest.raises(ValueError, match=r"no weight of each; choose need_weights=False"):
        module(new, new, new, cache=cache)
    assert cache.length == 5
