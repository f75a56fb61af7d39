"""swap_attention, from_torch and to_torch: nothing but the class changes."""

import copy
import warnings
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations
from torch.testing import assert_close

from mha_lab import MultiheadAttention, swap_attention

EXACT = {"rtol": 1e-10, "atol": 1e-10}
N, L, S, E, H, FF = 2, 5, 7, 12, 2, 17  # an even number of heads, as torch's fast path needs
MODES = pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])


@pytest.fixture
def calls(monkeypatch):
    """Every module whose forward of ours ran."""
    ran = []
    forward = MultiheadAttention.forward

    def counted(self, *args, **kwargs):
        ran.append(self)
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(MultiheadAttention, "forward", counted)
    return ran


def in_mode(model, mode, run):
    model.train(mode == "train")
    with torch.no_grad() if mode == "no_grad" else nullcontext():
        return run(model)


def stacked(kind, **options):
    """A stack of two of torch's layers, and inputs for it."""
    options = {"dropout": 0.0, "batch_first": True, "dtype": torch.float64} | options
    x, memory = (torch.randn(N, n, E, dtype=torch.float64) for n in (L, S))
    if kind == "encoder":
        can_nest = options["batch_first"] and not options.get("norm_first", False)
        layer = nn.TransformerEncoderLayer(E, H, FF, **options)
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=can_nest), (x,)
    if kind == "decoder":
        layer = nn.TransformerDecoderLayer(E, H, FF, **options)
        return nn.TransformerDecoder(layer, 2), (x, memory)
    return nn.Transformer(E, H, 2, 2, FF, **options), (memory, x)


# Models of torch


@MODES
@pytest.mark.parametrize(
    ("kind", "attentions"), [("encoder", 2), ("decoder", 4), ("transformer", 6)]
)
def test_models_of_torch_keep_their_outputs(kind, attentions, mode, calls):
    stock, inputs = stacked(kind)
    model = swap_attention(copy.deepcopy(stock))
    expected, got = (in_mode(m, mode, lambda m: m(*inputs)) for m in (stock, model))
    assert_close(got, expected, **EXACT)
    assert len(calls) == len(set(calls)) == attentions


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@MODES
@pytest.mark.parametrize("norm_first", [True, False])
def test_padded_encoder_makes_no_nested_tensor(mode, norm_first, calls, monkeypatch):
    stock, (x,) = stacked("encoder", norm_first=norm_first)
    model = swap_attention(copy.deepcopy(stock))
    padding = torch.arange(L) >= torch.tensor([[L - 1], [2]])

    def refuse(*args, **kwargs):
        raise AssertionError("a nested tensor was made")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "_nested_tensor_from_mask", refuse)
        got = in_mode(model, mode, lambda m: m(x, src_key_padding_mask=padding))
    assert got.shape == x.shape
    assert calls == [layer.self_attn for layer in model.layers]
    expected = in_mode(stock, mode, lambda m: m(x, src_key_padding_mask=padding))
    real = ~padding[:, : expected.shape[1]]  # torch's nested path zeroes and cuts off the padding
    assert_close(got[:, : expected.shape[1]][real], expected[real], **EXACT)


@MODES
def test_encoder_built_of_a_swapped_layer(mode, calls):
    layer = swap_attention(nn.TransformerEncoderLayer(E, H, FF, dropout=0.0, batch_first=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    padding = torch.arange(L) >= torch.tensor([[L - 1], [2]])
    in_mode(model, mode, lambda m: m(torch.randn(N, L, E), src_key_padding_mask=padding))
    assert calls == [layer.self_attn for layer in model.layers]


def test_gradients_are_those_of_torchs_transformer():
    stock, inputs = stacked("transformer")
    model = swap_attention(copy.deepcopy(stock))
    masks = {
        "tgt_mask": nn.Transformer.generate_square_subsequent_mask(L, dtype=torch.float64),
        "src_key_padding_mask": torch.arange(S) >= torch.tensor([[S], [3]]),
    }
    for m in (stock, model):
        m(*inputs, **masks).square().sum().backward()
    for (name, ours), (same, torchs) in zip(
        model.named_parameters(), stock.named_parameters(), strict=True
    ):
        assert name == same
        assert_close(ours.grad, torchs.grad, **EXACT, msg=lambda m, name=name: f"{name}: {m}")


def test_length_first_models_stay_length_first():
    stock, (x,) = stacked("encoder", batch_first=False)
    model = swap_attention(copy.deepcopy(stock))
    x = x.transpose(0, 1)
    assert_close(model(x), stock(x), **EXACT)


# A third party's model


@MODES
def test_siglip_of_transformers(mode, calls):
    from transformers import SiglipVisionConfig, SiglipVisionModel

    config = SiglipVisionConfig(
        hidden_size=E,
        intermediate_size=FF,
        num_hidden_layers=1,
        num_attention_heads=H,
        image_size=8,
        patch_size=4,
    )
    stock = SiglipVisionModel(config).double()  # its pooling head is an nn.MultiheadAttention
    model = swap_attention(copy.deepcopy(stock))
    pixels = torch.randn(3, 3, 8, 8, dtype=torch.float64)
    expected, got = (in_mode(m, mode, lambda m: m(pixels).pooler_output) for m in (stock, model))
    assert_close(got, expected, **EXACT)
    assert len(calls) == 1


class Tagger(nn.Module):
    """What people write: attention in lists, dicts and attributes, one module used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.MultiheadAttention(E, H, batch_first=True)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"attn": nn.MultiheadAttention(E, H, batch_first=True)}) for _ in range(2)
        )
        self.again = self.first

    def forward(self, x):
        for attn in (self.first, *(block["attn"] for block in self.blocks), self.again):
            x = x + attn(x, x, x, need_weights=True)[0]
        return x


def test_nested_and_tied_modules(calls):
    stock = Tagger()
    model = swap_attention(copy.deepcopy(stock))
    x = torch.randn(N, L, E)
    assert_close(model(x), stock(x))
    assert model.again is model.first
    assert calls == [model.first, *(b["attn"] for b in model.blocks), model.first]
    assert not any(isinstance(module, nn.MultiheadAttention) for module in model.modules())


# What a module carries


def test_parameters_are_the_same_objects_and_an_optimizer_goes_on():
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = dict(model.named_parameters())
    assert swap_attention(model) is model
    after = dict(model.named_parameters())
    assert list(before) == list(after)
    assert all(before[name] is after[name] for name in before)
    old = model.first.in_proj_weight.clone()
    model(torch.randn(N, L, E)).sum().backward()
    optimizer.step()
    assert not torch.equal(model.first.in_proj_weight, old)


def test_weights_tied_between_modules_stay_tied():
    model = Tagger()
    model.blocks[0]["attn"].in_proj_weight = model.first.in_proj_weight
    swap_attention(model)
    assert model.blocks[0]["attn"].in_proj_weight is model.first.in_proj_weight


def test_flags_dtype_and_device_are_kept():
    model = nn.Sequential(
        nn.MultiheadAttention(E, H, dropout=0.25, dtype=torch.float64),
        nn.MultiheadAttention(E, H, kdim=5, vdim=7, bias=False, device="meta"),
    )
    model[0].eval()
    model[0].out_proj.weight.requires_grad_(False)
    model[0].note = "kept"
    swap_attention(model)
    first, second = model
    assert [first.training, second.training] == [False, True]
    assert first.in_proj_weight.dtype == torch.float64
    assert not first.out_proj.weight.requires_grad
    assert first.in_proj_weight.requires_grad
    assert first.note == "kept"
    assert first.dropout == 0.25
    assert not first.batch_first
    assert second.k_proj_weight.is_meta
    assert second.in_proj_bias is None


def test_hooks_fire():
    model = nn.Sequential(nn.MultiheadAttention(E, H, batch_first=True))
    fired = []
    attn = model[0]
    attn.register_forward_pre_hook(lambda *_: fired.append("pre"))
    handle = attn.register_forward_hook(lambda *_: fired.append("forward"))
    attn.register_full_backward_hook(lambda *_: fired.append("backward"))
    attn.out_proj.register_forward_hook(lambda *_: fired.append("out_proj"))
    attn.in_proj_weight.register_hook(lambda grad: fired.append("weight"))
    attn.register_state_dict_post_hook(lambda *_: fired.append("state_dict"))
    swap_attention(model)
    x = torch.randn(N, L, E, requires_grad=True)
    model[0](x, x, x)[0].sum().backward()
    model.state_dict()
    assert sorted(fired) == sorted(
        ["pre", "forward", "backward", "out_proj", "weight", "state_dict"]
    )
    fired.clear()
    handle.remove()  # a handle taken before still removes its hook
    model[0](x, x, x)
    assert "forward" not in fired


def test_a_parametrized_out_proj_stays_so():
    stock = nn.Sequential(nn.MultiheadAttention(E, H, batch_first=True))
    parametrizations.weight_norm(stock[0].out_proj)
    model = swap_attention(copy.deepcopy(stock))
    x = torch.randn(N, L, E)
    assert_close(model[0](x, x, x)[0], stock[0](x, x, x)[0])
    assert nn.utils.parametrize.is_parametrized(model[0].out_proj, "weight")


def test_swapping_twice_changes_nothing():
    model = swap_attention(Tagger())
    first = model.first
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert swap_attention(model) is model
    assert model.first is first


def test_a_model_that_is_itself_an_attention():
    stock = nn.MultiheadAttention(E, H)
    module = swap_attention(stock)
    assert type(module) is MultiheadAttention
    assert module.in_proj_weight is stock.in_proj_weight
    x = torch.randn(L, N, E)
    for got, wanted in zip(module(x, x, x), stock(x, x, x), strict=True):
        assert_close(got, wanted)


# What is refused, and that nothing is changed then


class Special(nn.MultiheadAttention):
    """A subclass may do anything."""


def quantizable():
    return torch.ao.nn.quantizable.MultiheadAttention(E, H)


def parametrized():
    return parametrizations.weight_norm(nn.MultiheadAttention(E, H), "in_proj_weight")


def patched():
    module = nn.MultiheadAttention(E, H)
    module.forward = lambda *args: None
    return module


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (lambda: Special(E, H), "a subclass of torch.nn.MultiheadAttention"),
        (quantizable, "a subclass of torch.nn.MultiheadAttention"),
        (parametrized, "parametrized weights .in_proj_weight"),
        (patched, "forward of its own"),
    ],
)
def test_what_cannot_be_converted_is_refused_by_its_path(attention, message):
    model = Tagger()
    model.blocks[1]["attn"] = attention()
    before = dict(model.named_modules())
    with pytest.raises(TypeError, match=rf"^blocks\.1\.attn (is|has) .*{message}"):
        swap_attention(model)
    assert dict(model.named_modules()) == before


def test_scripted_and_other_things_are_refused():
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module, got list"):
        swap_attention([nn.MultiheadAttention(E, H)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = nn.Sequential(torch.jit.script(nn.MultiheadAttention(E, H)))
    with pytest.raises(TypeError, match="0 is a TorchScript module"):
        swap_attention(scripted)
    with pytest.warns(UserWarning, match=r"Linear holds no torch.nn.MultiheadAttention"):
        swap_attention(nn.Linear(2, 3))


# from_torch and to_torch

CONSTRUCTIONS = pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": True},
        {"bias": False, "add_bias_kv": True},
        {"add_zero_attn": True, "kdim": 5, "vdim": 7},
        {"dropout": 0.5, "dtype": torch.float64},
    ],
    ids=str,
)


@CONSTRUCTIONS
def test_from_torch_and_back(options):
    stock = nn.MultiheadAttention(E, H, **options).eval()
    module = MultiheadAttention.from_torch(stock)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = module.to_torch()
    dtype = stock.out_proj.weight.dtype
    query, key, value = (
        torch.randn(3, n, width, dtype=dtype)
        for n, width in ((3, E), (3, stock.kdim), (3, stock.vdim))
    )
    expected = stock(query, key, value)
    for twin in (module, back):
        for got, wanted in zip(twin(query, key, value), expected, strict=True):
            assert_close(got, wanted)
        assert not twin.training
    assert type(back) is nn.MultiheadAttention
    assert type(back.out_proj) is type(stock.out_proj)
    assert set(vars(back)) == set(vars(stock))
    assert repr(back) == repr(stock)


def test_from_torch_copies_and_keeps_torchs_defaults():
    stock = nn.MultiheadAttention(E, H)
    module = MultiheadAttention.from_torch(stock)
    with torch.no_grad():
        module.out_proj.weight.zero_()
    assert stock.out_proj.weight.any()
    x = torch.randn(L, N, E)
    assert module(x, x, x)[1].shape == (N, L, L)
    assert module(x, x, x, average_attn_weights=False)[1].shape == (N, H, L, L)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_to_torch_of_a_module_of_ours(mode):
    module = MultiheadAttention(E, H).train(mode == "train")
    with pytest.warns(UserWarning, match="average_attn_weights=False"):
        stock = module.to_torch()
    x = torch.randn(N, L, E)
    expected = module(x, x, x)
    for got, wanted in zip(stock(x, x, x, average_attn_weights=False), expected, strict=True):
        assert_close(got, wanted)
    assert stock.training == module.training


def test_to_torch_refuses_what_torch_would_leave_out():
    module = MultiheadAttention(E, H, average_attn_weights=True)
    module.out_proj = nn.Sequential(nn.Linear(E, E))
    with pytest.raises(TypeError, match=r"out_proj is a torch.nn.modules.container.Sequential"):
        module.to_torch()
    module = MultiheadAttention(E, H, average_attn_weights=True)
    parametrizations.weight_norm(module, "in_proj_weight")
    with pytest.raises(TypeError, match="parametrized weights"):
        module.to_torch()


def test_from_torch_refuses_other_modules():
    with pytest.raises(TypeError, match=r"must be a torch.nn.MultiheadAttention, got"):
        MultiheadAttention.from_torch(nn.Linear(2, 3))
    with pytest.raises(TypeError, match="Special, a subclass"):
        MultiheadAttention.from_torch(Special(E, H))
