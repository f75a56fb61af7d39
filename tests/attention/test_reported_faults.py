"""Faults that people reported of PyTorch's attention, each as an input with the right answer.

The number in a test's name is that of the line in the project's list of such faults; the numbers
in brackets are those of PyTorch's tracker. The maps of whole models, number 17, are in
``tests/recording``.
"""

import copy
import io
import math
import pickle
import warnings
from contextlib import nullcontext
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from by_hand import attend, blocking
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from mha_lab import MultiheadAttention, swap_attention
from mha_lab.attention.functional import allowed_where_not
from mha_lab.attention.multihead import blocks, padding

EXACT = {"rtol": 1e-10, "atol": 1e-10}
SIZES = pytest.mark.parametrize(  # N, L, S, E, H
    "sizes", [(2, 5, 5, 6, 3), (3, 5, 7, 10, 5), (2, 11, 3, 7, 1)], ids=str
)
ADDED = pytest.mark.parametrize(
    "added", [{}, {"bias": False}, {"kdim": 13, "vdim": 17}], ids=["plain", "no bias", "kdim"]
)


@pytest.fixture(params=["few weights", "many"], autouse=True)
def _take_the_path_of_calls_with(request, monkeypatch):
    if request.param == "many":
        monkeypatch.setattr(blocks, "ONE_BLOCK", 0)
        monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 13)
        monkeypatch.setattr(padding, "MANY_WEIGHTS", 0)


def make(sizes, **options):
    """A float64 module with no parameter 0, and inputs of the sizes (N, L, S, E, H)."""
    N, L, S, E, H = sizes
    module = MultiheadAttention(E, H, dtype=torch.float64, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    query = torch.randn(N, L, E, dtype=torch.float64)
    key = torch.randn(N, S, module.kdim, dtype=torch.float64)
    value = torch.randn(N, S, module.vdim, dtype=torch.float64)
    return module, (query, key, value)


def in_all_modes(module, inputs, **masks):
    """(output, weights) in train, eval and no_grad, with and without weights; all finite."""
    results = []
    for training, with_grad, need_weights in product((True, False), repeat=3):
        module.train(training)
        with nullcontext() if with_grad else torch.no_grad():
            output, weights = module(*inputs, need_weights=need_weights, **masks)
        assert output.isfinite().all()
        assert (weights is None) != need_weights
        results.append((output, weights))
    return results


def check_all_modes(module, inputs, bias, **masks):
    """Every mode gives the output, weights and parameter gradients computed by hand."""
    expected, expected_weights = attend(module, *inputs, bias)
    for output, weights in in_all_modes(module, inputs, **masks):
        assert_close(output, expected, **EXACT)
        if weights is not None:
            assert_close(weights, expected_weights, **EXACT)
    module.train()
    parameters = list(module.parameters())
    wanted = torch.autograd.grad(expected.square().sum(), parameters, allow_unused=True)
    for need_weights in (True, False):
        output, _ = module(*inputs, need_weights=need_weights, **masks)
        got = torch.autograd.grad(output.square().sum(), parameters, allow_unused=True)
        for g, w in zip(got, wanted, strict=True):
            assert g.isfinite().all()
            assert_close(g, w, **EXACT)
    return expected, expected_weights


# Masks and NaN


@SIZES
@ADDED
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_01_padding_that_hides_a_whole_sequence(sizes, added, kind):
    """[41508, 190486]."""
    module, inputs = make(sizes, **added)
    padding = torch.zeros(sizes[0], sizes[2], dtype=torch.bool)
    padding[-1] = True
    padding[0, -1] = True
    bias = blocking(padding)[:, None, None]
    mask = padding if kind == "bool" else blocking(padding)
    output, weights = check_all_modes(module, inputs, bias, key_padding_mask=mask)
    assert (weights[-1] == 0).all()
    bare = torch.zeros_like(output[-1]) if module.out_proj.bias is None else module.out_proj.bias
    assert_close(output[-1], bare.expand_as(output[-1]), **EXACT)


@pytest.mark.parametrize("kinds", list(product(["bool", "float"], repeat=2)), ids=str)
def test_02_masks_that_hide_a_row_together(kinds):
    """[41508]."""
    module, inputs = make((2, 5, 5, 6, 3))
    i, j = torch.arange(5)[:, None], torch.arange(5)
    band = (i - j).abs() > 1
    padding = torch.tensor([[False] * 5, [True, True, True, False, False]])
    assert not band.all(1).any()
    assert not padding.all(1).any()
    bias = blocking(band) + blocking(padding)[:, None, None]
    masks = [
        m if kind == "bool" else blocking(m) for m, kind in zip((band, padding), kinds, strict=True)
    ]
    output, weights = check_all_modes(
        module, inputs, bias, attn_mask=masks[0], key_padding_mask=masks[1]
    )
    for row in (0, 1):  # it sees keys 0 to 1 or 0 to 2, all of them padding
        assert (weights[1, :, row] == 0).all()
        assert_close(output[1, row], module.out_proj.bias, **EXACT)


@pytest.mark.parametrize("sizes", [(2, 5, 5, 6, 3), (3, 5, 7, 10, 5)], ids=str)
def test_03_batch_major_mask_per_head(sizes):
    """[97605, 97409]."""
    module, inputs = make(sizes)
    N, L, S, E, H = sizes
    mask = torch.rand(N * H, L, S) < 0.4
    check_all_modes(module, inputs, blocking(mask).view(N, H, L, S), attn_mask=mask)
    D = E // H
    module.eval()
    _, weights = module(*inputs, attn_mask=mask)
    for n, h in product(range(N), range(H)):
        alone = MultiheadAttention(E, 1, dtype=torch.float64)
        alone.load_state_dict(module.state_dict())
        with torch.no_grad():  # only head h, at the scale of one head of width E
            w_q, w_k, _ = alone.in_proj_weight.split(E)
            b_q, b_k, _ = alone.in_proj_bias.split(E)
            others = torch.ones(E, dtype=torch.bool)
            others[h * D : (h + 1) * D] = False
            for part in (w_q, w_k, b_q, b_k):
                part[others] = 0
            w_q *= math.sqrt(E / D)
            b_q *= math.sqrt(E / D)
        row = n * H + h
        _, expected = alone(*(x[n : n + 1] for x in inputs), attn_mask=mask[row])
        assert_close(weights[n, h], expected[0, 0], **EXACT)


def test_04_one_mask_a_sample():
    """[64706, 116472]."""
    module, inputs = make((2, 5, 7, 6, 3))
    mask = torch.rand(2, 5, 7) < 0.3
    with pytest.raises(ValueError, match=r"unsqueeze\(1\)"):
        module(*inputs, attn_mask=mask)
    check_all_modes(module, inputs, blocking(mask)[:, None], attn_mask=mask.unsqueeze(1))


def test_04_the_message_of_other_wrong_shapes_shows_the_right_ones():
    module, inputs = make((2, 5, 7, 6, 3))
    for shape in [(7, 5), (5, 5, 7), (2, 2, 5, 7), (1, 1, 2, 5, 7)]:
        with pytest.raises(ValueError, match=r"\(L, S\) = \(5, 7\).*\(2, 3, 5, 7\)"):
            module(*inputs, attn_mask=torch.zeros(shape, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"key_padding_mask must have shape \(2, 7\)"):
        module(*inputs, key_padding_mask=torch.zeros(7, 2, dtype=torch.bool))
    with pytest.raises(TypeError, match="attn_mask must be bool"):
        module(*inputs, attn_mask=torch.zeros(5, 7, dtype=torch.uint8))


@pytest.mark.parametrize(
    "shape", [(5, 7), (6, 5, 7), (2, 3, 5, 7), (1, 3, 1, 7), (3, 5, 7), (7,), (1,), ()], ids=str
)
def test_05_float_mask(shape):
    """[107084, 118628]."""
    module, inputs = make((2, 5, 7, 6, 3))
    mask = torch.randn(shape, dtype=torch.float64)
    mask[torch.rand(shape) < 0.3] = -math.inf
    bias = mask.view(2, 3, 5, 7) if shape == (6, 5, 7) else mask
    check_all_modes(module, inputs, bias, attn_mask=mask)


@pytest.mark.parametrize("shape", [(3, 5, 7), (7,), ()], ids=str)
def test_05_bool_mask_of_other_shapes_that_broadcast(shape):
    module, inputs = make((2, 5, 7, 6, 3))
    mask = torch.rand(shape) < 0.3
    check_all_modes(module, inputs, blocking(mask), attn_mask=mask)


@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask"])
def test_06_float_mask_of_zeros_and_ones_warns_once(name):
    """[21518]."""
    module, inputs = make((2, 8, 8, 6, 3))
    shape = (8, 8) if name == "attn_mask" else (2, 8)
    mask = (torch.rand(shape) < 0.5).double()
    with pytest.warns(UserWarning, match=f"{name} is a float mask of 0s and 1s.*blocks nothing"):
        first, _ = module(*inputs, **{name: mask})
    bias = mask if name == "attn_mask" else mask[:, None, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_all_modes(module, inputs, bias, **{name: mask})
    assert_close(first, attend(module, *inputs, bias)[0], **EXACT)


def test_06_other_float_masks_do_not_warn():
    module, inputs = make((2, 8, 8, 6, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module(*inputs, attn_mask=torch.zeros(8, 8))
        module(*inputs, attn_mask=torch.zeros(8, 8).fill_diagonal_(-math.inf))


@pytest.mark.parametrize("float_one", ["attn_mask", "key_padding_mask"])
def test_07_bool_and_float_masks_together(float_one):
    """[96103]."""
    module, inputs = make((2, 5, 7, 6, 3))
    band = torch.rand(5, 7) < 0.3
    padding = torch.rand(2, 7) < 0.3
    masks = {"attn_mask": band, "key_padding_mask": padding}
    finite = torch.randn(masks[float_one].shape, dtype=torch.float64)
    added = {name: blocking(mask) for name, mask in masks.items()}
    masks[float_one] = added[float_one] = added[float_one] + finite
    bias = added["attn_mask"] + added["key_padding_mask"][:, None, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_all_modes(module, inputs, bias, **masks)


def test_08_float_padding_mask_is_added():
    """[141018]."""
    module, inputs = make((1, 3, 2, 6, 3))
    mask = torch.tensor([[1.0, 2.0]])
    check_all_modes(module, inputs, mask.double(), key_padding_mask=mask)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("need_weights", [True, False])
def test_09_autocast_with_a_float32_mask(dtype, need_weights):
    """[99012]."""
    module, inputs = make((2, 5, 7, 6, 3))
    module.float()
    inputs = [x.float() for x in inputs]
    mask = torch.randn(5, 7).masked_fill(torch.rand(5, 7) < 0.3, -1e9)
    mask[2] = -math.inf
    with torch.autocast("cpu", dtype):
        output, weights = module(*inputs, attn_mask=mask, need_weights=need_weights)
    output.float().sum().backward()
    assert output.isfinite().all()
    assert all(p.grad.isfinite().all() for p in module.parameters())
    exact, exact_weights = module(*inputs, attn_mask=mask)
    assert_close(output.float(), exact, rtol=0.05, atol=0.05)
    if need_weights:
        assert_close(weights.float(), exact_weights, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("scale", [240.0, 2000.0])  # scores near 60,000; far beyond float16
def test_09_float16_scores_beyond_its_range(need_weights, scale):
    """[fairseq 3575]."""
    module = MultiheadAttention(4, 1, bias=False, dtype=torch.float16)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.eye(4).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(4))
    x = torch.eye(4, dtype=torch.float16)[None] * scale
    x = x + x[:, :1] / 2
    output, weights = module(x, x, x, need_weights=need_weights)
    output.float().sum().backward()
    assert output.isfinite().all()
    assert module.in_proj_weight.grad.isfinite().all()
    exact, exact_weights = attend(module.double(), x.double(), x.double(), x.double())
    assert_close(output.double(), exact, rtol=2e-3, atol=2e-3)
    if need_weights:
        assert_close(weights.double(), exact_weights, rtol=2e-3, atol=2e-3)


def test_10_bool_masks_mean_the_opposite_of_the_functions():
    """[120668, 170415]: ``~mask`` converts either way."""
    module, (query, *_) = make((2, 5, 5, 6, 1))
    blocked = torch.rand(5, 5) < 0.3
    blocked[:, 0] = False
    assert_close(allowed_where_not(blocked), ~blocked)
    q, k, v = F.linear(query, module.in_proj_weight, module.in_proj_bias).chunk(3, -1)
    by_function = F.scaled_dot_product_attention(q, k, v, attn_mask=~blocked)
    output, _ = module(query, query, query, attn_mask=blocked)
    assert_close(output, module.out_proj(by_function), **EXACT)


# is_causal


def causal(L, S):
    return blocking(torch.tensor([[j > i for j in range(S)] for i in range(L)]))


@SIZES
@ADDED
def test_11_is_causal_alone(sizes, added):
    """[172338, 99282]."""
    module, inputs = make(sizes, **added)
    check_all_modes(module, inputs, causal(sizes[1], sizes[2]), is_causal=True)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_12_is_causal_with_padding(kind):
    """[100709]."""
    module, inputs = make((3, 5, 7, 6, 3))
    padding = torch.arange(7) >= torch.tensor([[7], [4], [0]])
    padding[0, 0] = True  # with causality, row 0 of sample 0 sees nothing
    mask = padding if kind == "bool" else blocking(padding)
    bias = causal(5, 7) + blocking(padding)[:, None, None]
    _, weights = check_all_modes(module, inputs, bias, key_padding_mask=mask, is_causal=True)
    assert (weights[0, :, 0] == 0).all()


def test_12_is_causal_with_another_attn_mask():
    module, inputs = make((3, 5, 7, 6, 3))
    mask = torch.rand(5, 7) < 0.3
    check_all_modes(module, inputs, causal(5, 7) + blocking(mask), attn_mask=mask, is_causal=True)


@pytest.mark.parametrize("lengths", [(2, 5), (5, 2)], ids=str)
def test_13_is_causal_is_aligned_top_left(lengths):
    """[108108]."""
    L, S = lengths
    module, inputs = make((2, L, S, 6, 3))
    _, weights = check_all_modes(module, inputs, causal(L, S), is_causal=True)
    seen = [sum(weights[0, 0, i] > 0).item() for i in range(L)]
    assert seen == [min(i + 1, S) for i in range(L)]


# Weights


def test_14_weights_are_those_before_dropout():
    """[33360, 42929]."""
    module, inputs = make((2, 5, 1, 6, 3), dropout=0.2)
    _, weights = module.train()(*inputs)
    assert_close(weights, torch.ones(2, 3, 5, 1, dtype=torch.float64))
    module, inputs = make((2, 5, 7, 6, 3), dropout=0.5)
    trained = module.train()(*inputs)[1]
    assert_close(trained, module.eval()(*inputs)[1], **EXACT)


def test_15_averaged_weights_are_the_mean():
    """[34537]."""
    module, inputs = make((2, 5, 7, 6, 3))
    output, per_head = module(*inputs)
    assert per_head.shape == (2, 3, 5, 7)
    for average, expected in ((True, per_head.mean(1)), (False, per_head), (None, per_head)):
        again, weights = module(*inputs, average_attn_weights=average)
        assert_close(weights, expected, **EXACT)
        assert_close(again, output, **EXACT)
    average, _ = make((2, 5, 7, 6, 3), average_attn_weights=True)
    average.load_state_dict(module.state_dict())
    assert_close(average(*inputs)[1], per_head.mean(1), **EXACT)
    assert_close(average(*inputs, average_attn_weights=False)[1], per_head, **EXACT)


@pytest.mark.parametrize("need_weights", [True, False])
def test_16_no_dropout_in_eval(need_weights):
    """[124464]."""
    module, inputs = make((2, 5, 7, 6, 3), dropout=0.5)
    module.eval()
    first, second = (module(*inputs, need_weights=need_weights)[0] for _ in range(2))
    assert torch.equal(first, second)
    assert_close(first, attend(module, *inputs)[0], **EXACT)
    module.train()
    first, second = (module(*inputs, need_weights=need_weights)[0] for _ in range(2))
    assert not torch.equal(first, second)


# Construction and parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embed_dim": 10, "num_heads": 3}, "embed_dim=10 and num_heads=3"),
        ({"embed_dim": 0, "num_heads": 1}, "embed_dim=0"),
        ({"embed_dim": 6, "num_heads": 0}, "num_heads=0"),
        ({"embed_dim": 6, "num_heads": -3}, "num_heads=-3"),
        ({"embed_dim": 6, "num_heads": 3, "dropout": 1.5}, "dropout=1.5"),
        ({"embed_dim": 6, "num_heads": 3, "dropout": -0.1}, "dropout=-0.1"),
        ({"embed_dim": 6, "num_heads": 3, "kdim": 0}, "kdim=0"),
        ({"embed_dim": 6, "num_heads": 3, "vdim": -1}, "vdim=-1"),
    ],
    ids=str,
)
def test_18_impossible_arguments(options, message):
    """[28719]."""
    with pytest.raises(ValueError, match=message):
        MultiheadAttention(**options)


def test_18_arguments_of_a_wrong_type():
    for options in ({"embed_dim": 6.0, "num_heads": 3}, {"embed_dim": 6, "num_heads": True}):
        with pytest.raises(TypeError, match="must be a whole number"):
            MultiheadAttention(**options)


@pytest.mark.parametrize("widths", [(5, 7), (5, 6), (6, 7), (None, 7)], ids=str)
def test_19_keys_and_values_of_their_own_width(widths):
    """[120793]."""
    kdim, vdim = widths
    module, inputs = make((2, 3, 11, 6, 3), kdim=kdim, vdim=vdim)
    assert list(module.state_dict())[:3] == ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
    check_all_modes(module, inputs, None)


OPTIONS = [
    dict(zip(("bias", "add_bias_kv", "add_zero_attn", "kdim", "vdim"), values, strict=True))
    for values in product((True, False), (True, False), (True, False), (None, 5), (None, 7))
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: " ".join(map(str, o.values())))
def test_20_state_dict_and_initial_values_are_torchs(options):
    torch.manual_seed(7)
    stock = nn.MultiheadAttention(6, 3, **options)
    torch.manual_seed(7)
    module = MultiheadAttention(6, 3, **options)
    assert list(module.state_dict()) == list(stock.state_dict())
    for ours, torchs in zip(module.parameters(), stock.parameters(), strict=True):
        assert torch.equal(ours, torchs)
    torch.manual_seed(8)
    other = nn.MultiheadAttention(6, 3, **options)
    module.load_state_dict(other.state_dict(), strict=True)
    stock.load_state_dict(module.state_dict(), strict=True)
    for ours, torchs in zip(stock.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, torchs)


def test_20_the_random_state_after_construction_is_torchs():
    states = []
    for kind in (nn.MultiheadAttention, MultiheadAttention):
        torch.manual_seed(7)
        kind(6, 3, add_bias_kv=True)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


@ADDED
def test_21_copies_give_the_same(added):
    module, inputs = make((2, 5, 7, 6, 3), add_bias_kv=True, add_zero_attn=True, **added)
    expected = module(*inputs)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    loaded, _ = make((2, 5, 7, 6, 3), add_bias_kv=True, add_zero_attn=True, **added)
    loaded.load_state_dict(torch.load(file, weights_only=True))
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), loaded):
        for got, wanted in zip(twin(*inputs), expected, strict=True):
            assert torch.equal(got, wanted)


def test_22_inputs_that_do_not_fit_one_another():
    """[64888]."""
    module = MultiheadAttention(8, 2)
    query, memory = torch.randn(3, 2, 8), torch.randn(4, 5, 8)
    with pytest.raises(ValueError, match=r"same batch size.*3, 4 and 4"):
        module(query, memory, memory)
    with pytest.raises(ValueError, match=r"same batch size.*2, 2 and 3"):
        MultiheadAttention(8, 2, batch_first=False)(query, query, torch.randn(2, 3, 8))
    with pytest.raises(ValueError, match=r"key and value must have the same length.*\(4, 5, 8\)"):
        module(torch.randn(4, 2, 8), memory, torch.randn(4, 7, 8))
    with pytest.raises(ValueError, match=r"embed_dim=8 wide.*7"):
        module(torch.randn(3, 2, 7), query, query)
    with pytest.raises(ValueError, match="all be batched"):
        module(query[0], query, query)
    with pytest.raises(TypeError, match=r"dtype torch.float32, got torch.float64"):
        module(query.double(), query.double(), query.double())


# Composition, export, autodiff: with the rest in test_composition.py and test_swap.py


@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_23_inside_torchs_layers(mode, norm_first, kind, monkeypatch):
    layer_class = {
        "encoder": nn.TransformerEncoderLayer,
        "decoder": nn.TransformerDecoderLayer,
    }[kind]
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
    stock = layer_class(6, 3, 11, **options, dtype=torch.float64)
    layer = swap_attention(copy.deepcopy(stock))
    stock.train(mode == "train")
    layer.train(mode == "train")
    calls = []
    forward = MultiheadAttention.forward

    def counted(self, *args, **kwargs):
        calls.append(self)
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(MultiheadAttention, "forward", counted)
    x, memory = (torch.randn(2, n, 6, dtype=torch.float64) for n in (5, 7))
    inputs = (x,) if kind == "encoder" else (x, memory)
    with torch.no_grad() if mode == "no_grad" else nullcontext():
        assert_close(layer(*inputs), stock(*inputs), **EXACT)
    expected = [layer.self_attn] if kind == "encoder" else [layer.self_attn, layer.multihead_attn]
    assert calls == expected


@pytest.mark.parametrize("need_weights", [True, False])
@ADDED
def test_25_gradcheck(need_weights, added):
    module, inputs = make((2, 2, 3, 4, 2), **added)
    padding = torch.tensor([[False, False, True], [True, True, True]])

    def run(*inputs):
        results = module(*inputs, key_padding_mask=padding, need_weights=need_weights)
        return results if need_weights else results[0]

    assert torch.autograd.gradcheck(run, [x.requires_grad_() for x in inputs])


@pytest.mark.parametrize("need_weights", [True, False])
def test_25_gradgradcheck_and_jvp_under_the_math_kernel(need_weights):
    module, inputs = make((1, 2, 3, 4, 2))
    mask = torch.tensor([[False, False, True], [False, True, False]])

    def run(*inputs):
        results = module(*inputs, attn_mask=mask, need_weights=need_weights)
        return results if need_weights else results[0]

    with sdpa_kernel(SDPBackend.MATH):
        tangents = tuple(torch.randn_like(x) for x in inputs)
        _, forward = torch.func.jvp(run, inputs, tangents)
        _, backward = torch.autograd.functional.jvp(run, inputs, tangents)
        assert_close(forward, backward, **EXACT)
        assert torch.autograd.gradgradcheck(run, [x.requires_grad_() for x in inputs])


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap has no rule for the kernel
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_25_vmap(need_weights, masked):
    module, inputs = make((13, 5, 7, 6, 3))
    padding = (torch.rand(13, 7) < 0.4) if masked else torch.zeros(13, 7, dtype=torch.bool)

    def one(query, key, value, padding):
        masks = {"key_padding_mask": padding} if masked else {}
        results = module(query, key, value, need_weights=need_weights, **masks)
        return results if need_weights else results[0]

    got = torch.func.vmap(one)(*inputs, padding)
    wanted = module(*inputs, key_padding_mask=padding if masked else None)
    assert_close(got if need_weights else (got,), wanted if need_weights else wanted[:1], **EXACT)


def test_26_layers_of_a_stack_start_different():
    """[86274]: torch's stack copies one layer; a list of modules does not."""
    layers = [MultiheadAttention(6, 3) for _ in range(3)]
    for first, second in ((0, 1), (1, 2), (0, 2)):
        assert not torch.equal(layers[first].in_proj_weight, layers[second].in_proj_weight)
        assert not torch.equal(layers[first].out_proj.weight, layers[second].out_proj.weight)
