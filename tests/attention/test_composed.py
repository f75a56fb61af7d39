"""The composed pipeline: its faster ways against the plain one, and that against custom."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from mha_lab import MultiheadAttention, config, record_attention
from mha_lab.attention.cache import Cache
from mha_lab.attention.composed import ComposedAttention
from mha_lab.attention.grouped import serve_groups
from mha_lab.attention.mixing.differential import Differential
from mha_lab.attention.patterns.window import Window
from mha_lab.attention.pipeline import attend, weigh
from mha_lab.attention.weighting.off_by_one import OffByOne
from mha_lab.attention.weighting.scalable_softmax import ScalableSoftmax
from mha_lab.attention.weighting.sink import Sink
from mha_lab.build import build
from mha_lab.positions.rotary import RotaryPositions

N, L, S, H, E = 2, 7, 11, 6, 36
FUSED: dict[str, dict[str, Any]] = {
    "softmax": {},
    "grouped": {"kv_heads": 2},
    "multi query": {"kv_heads": 1, "weighting": Sink},
    "window": {"pattern": partial(Window, size=3)},
    "window a head": {"pattern": partial(Window, size=[1, 2, 3, 4, 5, None])},
    "cosine": {"qk_norm": "cosine"},
    "off by one": {"weighting": OffByOne},
    "sink": {"weighting": Sink},
    "scalable": {"weighting": ScalableSoftmax},
    "differential": {"mixing": Differential},
    "differential of all": {
        "mixing": partial(Differential, lambda_init=0.3),
        "weighting": Sink,
        "kv_heads": 3,
        "qk_norm": "rms",
        "pattern": partial(Window, size=3),
        "position": RotaryPositions(E, num_heads=H),
    },
}


@pytest.fixture
def no_maps_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the maps of such short sequences are subtracted as they are."""
    monkeypatch.setattr("mha_lab.attention.fused._FEW", 0)


def masks(keys: int) -> dict[str, dict[str, Any]]:
    padding = torch.zeros(N, keys, dtype=torch.bool)
    padding[0, -3:] = True
    gone = padding.clone()
    gone[1] = True
    causal = torch.ones(L, keys, dtype=torch.bool).triu(1)
    floats = torch.randn(L, keys, dtype=torch.float64).masked_fill(causal, -torch.inf)
    return {
        "none": {},
        "causal": {"is_causal": True},
        "padding": {"key_padding_mask": padding},
        "causal and padding": {"is_causal": True, "key_padding_mask": gone},
        "bool": {"attn_mask": causal, "key_padding_mask": gone},
        "float": {"attn_mask": floats, "key_padding_mask": gone},
        "a head": {"attn_mask": torch.rand(1, H, L, keys) > 0.7},
    }


@pytest.mark.parametrize("mask", masks(L))
@pytest.mark.parametrize("parts", FUSED)
@pytest.mark.usefixtures("no_maps_are_few")
def test_fused_is_plain(parts: str, mask: str) -> None:
    """Outputs and gradients of the fused kernel (no weights wanted) are those of the pipeline."""
    module = ComposedAttention(E, H, **FUSED[parts]).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x = torch.randn(N, L, E, dtype=torch.float64)
    outcomes, given_masks = [], masks(L)[mask]
    for need_weights in (False, True):
        given = x.clone().requires_grad_()
        output, _ = module(given, given, given, need_weights=need_weights, **given_masks)
        named = dict(module.named_parameters())
        grads = torch.autograd.grad(output.square().sum(), [given, *named.values()])
        outcomes.append((output, *grads))
    for one, other in zip(*outcomes, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("no_maps_are_few")
def test_parts_above_are_all_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_lab.attention import pipeline

    def refuse(*args: Any) -> None:
        raise AssertionError("the plain way was taken")

    monkeypatch.setattr(pipeline, "weigh", refuse)
    for options in FUSED.values():
        module = ComposedAttention(E, H, **options)
        x = torch.randn(N, L, E)
        module(x, x, x, need_weights=False, is_causal=True)


def test_composed_of_nothing_is_custom_to_the_bit() -> None:
    ours, custom = ComposedAttention(E, H), MultiheadAttention(E, H)
    custom.load_state_dict(ours.state_dict())
    query, memory = torch.randn(N, L, E), torch.randn(N, S, E)
    for options in ({}, masks(S)["padding"], {"is_causal": True}):
        for key in (query, memory):
            if key is query and "key_padding_mask" in options:
                continue
            outputs = [m(query, key, key, need_weights=False, **options)[0] for m in (ours, custom)]
            assert torch.equal(*outputs)


def test_the_same_seed_gives_the_parameters_of_custom() -> None:
    made = []
    for kind in (ComposedAttention, MultiheadAttention):
        torch.manual_seed(5)
        made.append(kind(E, H).state_dict())
    assert made[0].keys() == made[1].keys()
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])


def options() -> list[str]:
    return [f"attention={name}" for name in config.options("attention") if is_composed(name)]


def is_composed(name: str) -> bool:
    text = (config.config_folder() / "attention" / f"{name}.yaml").read_text()
    return "- composed" in text


@pytest.mark.parametrize("choice", options())
def test_weights_times_values_are_the_heads_outputs(choice: str) -> None:
    from mha_lab.build import build

    module = build(config.compose([choice], run_dir="."), "attention")(24, 4, dropout=0.0).double()
    M = module.maps_per_head
    q = torch.randn(N, 4 * M, L, 6 // M, dtype=torch.float64)
    k = torch.randn(N, module.kv_heads * M, L, 6 // M, dtype=torch.float64)
    v = torch.randn(N, module.kv_heads, L, 6, dtype=torch.float64)
    mask = torch.rand(N, 1, L, L) > 0.3
    call = (q, k, v, None, mask, False, module.steps)
    expected = weigh(*call) @ serve_groups(v, module.kv_heads, 4)
    assert_close(attend(*call), expected, rtol=1e-10, atol=1e-10)
    assert not weigh(*call).masked_select(~mask).any()


@pytest.mark.parametrize("choice", options())
def test_recorded_are_the_weights_that_are_returned(choice: str) -> None:
    from mha_lab.build import build

    module = build(config.compose([choice], run_dir="."), "attention")(24, 4, dropout=0.0)
    x = torch.randn(N, L, 24)
    plain = module(x, x, x, need_weights=False, is_causal="prefix" not in choice)[0]
    weights: Tensor = module(x, x, x, is_causal="prefix" not in choice)[1]
    for need_weights in (False, True):
        with record_attention(module) as maps:
            output = module(x, x, x, need_weights=need_weights, is_causal="prefix" not in choice)[0]
        (one,) = maps
        assert_close(one.weights, weights.detach(), rtol=1e-5, atol=1e-6)
        assert_close(output, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kv_heads": 4}, "kv_heads must divide num_heads, got kv_heads=4 and num_heads=6"),
        ({"kv_heads": 0}, "kv_heads must divide num_heads"),
        ({"softcap": 0.0}, "softcap must be above 0"),
        ({"qk_norm": "l3"}, "qk_norm must be none, cosine or rms, got 'l3'"),
        ({"cross": "maybe"}, "cross must be refuse or full, got 'maybe'"),
        ({"pattern": partial(Window, size=[1, 2])}, "size must have num_heads=6 sizes"),
        ({"position": torch.nn.Identity()}, "position must have one of rotate"),
    ],
)
def test_what_cannot_be_made_says_why(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ComposedAttention(E, H, **options)


def test_a_window_between_two_sequences_is_refused_or_left_out() -> None:
    query, memory = torch.randn(N, L, E), torch.randn(N, S, E)
    window = partial(Window, size=2)
    with pytest.raises(ValueError, match=r"choose attention\.cross=full"):
        ComposedAttention(E, H, pattern=window)(query, memory, memory)
    full = ComposedAttention(E, H, pattern=window, cross="full")
    plain = ComposedAttention(E, H)
    plain.load_state_dict(full.state_dict())
    assert_close(full(query, memory, memory), plain(query, memory, memory))
    full.refuse(is_causal=False, is_cross=True)
    assert full(query, query, query)[1][0, 0, 0, 2:].sum() == 0


@pytest.mark.parametrize("choice", options())
def test_empty_batches_and_sequences(choice: str) -> None:
    from mha_lab.build import build

    module = build(config.compose([choice], run_dir="."), "attention")(24, 4, dropout=0.0)
    for batch, length in ((0, L), (N, 0)):
        x = torch.randn(batch, length, 24)
        output, weights = module(x, x, x, is_causal="prefix" not in choice)
        assert output.shape == x.shape
        assert weights.shape == (batch, 4, length, length)


def test_a_window_goes_on_from_a_cache_with_any_slices() -> None:
    """Query and key of a step may be two slices of one sequence: it is no cross-attention."""
    module = ComposedAttention(E, H, pattern=partial(Window, size=3)).double().eval()
    x, cache = torch.randn(N, L, E, dtype=torch.float64), Cache()
    outputs = []
    for i in range(L):
        query, key, value = (x[:, i : i + 1] for _ in range(3))
        outputs.append(module(query, key, value, need_weights=False, cache=cache)[0])
    assert_close(torch.cat(outputs, 1), module(x, x, x, is_causal=True)[0])


@pytest.mark.parametrize("weighting", config.options("attention/weighting"))
def test_torch_func_maps_and_differentiates_every_weighting(weighting: str) -> None:
    """Gradients of each sample by vmap, as of each sample alone, and along a direction by jvp."""
    words = ["attention=composed", f"attention/weighting={weighting}"]
    torch.manual_seed(0)
    module = build(config.compose(words, run_dir="RUN"), "attention")(15, 3).double().eval()
    x = 2 * torch.randn(3, 2, 11, 15, dtype=torch.float64)

    def loss(x: Tensor) -> Tensor:
        return module(x, x, x, need_weights=False, is_causal=True)[0].square().sum()

    grads = torch.func.vmap(torch.func.grad(loss))(x)
    inputs = x.clone().requires_grad_()
    losses = torch.stack([loss(sample) for sample in inputs])
    (expected,) = torch.autograd.grad(losses.sum(), inputs)
    assert_close(grads, expected)
    assert_close(torch.func.vmap(loss)(x), losses.detach())
    along = torch.ones_like(x[0])
    with sdpa_kernel(SDPBackend.MATH):
        assert_close(torch.func.jvp(loss, (x[0],), (along,))[1], (expected[0] * along).sum())
