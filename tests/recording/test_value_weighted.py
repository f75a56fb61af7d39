"""Value-weighted maps: on numbers worked by hand, and against the values of real modules."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from mha_lab import AttentionMap, MultiheadAttention, record_attention
from mha_lab.attention.shown import weigh_values
from mha_lab.maps.attention_maps import AttentionMaps
from mha_lab.maps.value_weighted import value_weighted
from mha_lab.view.header import Header

N, H, L, S, D = 2, 3, 5, 7, 4


class Calls(nn.Module):
    """Does what it is given."""

    def __init__(self, attend):
        super().__init__()
        self.attend = attend

    def forward(self, *inputs):
        return self.attend(*inputs)


def heads(seed=0, kv=H):
    torch.manual_seed(seed)
    return (
        torch.randn(N, H, L, D).double(),
        torch.randn(N, kv, S, D).double(),
        torch.randn(N, kv, S, D).double(),
    )


def record(attend, *inputs, **options):
    model = Calls(attend)
    with record_attention(model, values=True, **options) as maps:
        model(*inputs)
    return maps


def by_loop(weights, norms):
    """w·‖v‖, a number at a time."""
    expected = torch.empty_like(weights)
    for n, h, i, j in torch.cartesian_prod(*(torch.arange(size) for size in weights.shape)):
        expected[n, h, i, j] = weights[n, h, i, j].item() * norms[n, h, j].item()
    return expected


def test_two_keys_by_hand():
    # The values (3, 4) and (0, 0.5) have norms 5 and 0.5: what is looked at less gives more.
    q = torch.tensor([[[[0.0]]]])
    k = torch.tensor([[[[0.0], [0.0]]]])
    v = torch.tensor([[[[3.0, 4.0], [0.0, 0.5]]]])
    mask = torch.tensor([[1.0, 4.0]]).log()  # weights 0.2 and 0.8
    maps = record(F.scaled_dot_product_attention, q, k, v, mask)
    assert_close(maps[0].weights, torch.tensor([[[[0.2, 0.8]]]]))
    assert_close(maps[0].value_norms, torch.tensor([[[5.0, 0.5]]]))
    weighted = maps.value_weighted()
    assert_close(weighted[0].weights, torch.tensor([[[[1.0, 0.4]]]]))
    assert weighted[0].name == maps[0].name
    assert weighted[0].scores() == {}
    assert maps[0].scores()


def test_chosen_samples_and_heads():
    q, k, v = heads()
    maps = record(F.scaled_dot_product_attention, q, k, v, samples=[1], heads=[2, 0])
    norms = v[[1]][:, [2, 0]].pow(2).sum(-1).sqrt()
    assert_close(maps.value_weighted()[0].weights, by_loop(maps[0].weights, norms))


def test_heads_that_share_values():
    q, k, v = heads(kv=1)
    model = Calls(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
    with record_attention(model, values=True) as maps:
        model(q, k, v)
    norms = v.norm(dim=-1).expand(N, H, S)
    assert_close(maps[0].value_weighted().weights, by_loop(maps[0].weights, norms))


@pytest.mark.parametrize(
    "product",
    [
        lambda w, v: w @ v,
        lambda w, v: torch.einsum("nhls,nhsd->nlhd", w, v),
        lambda w, v: torch.bmm(w.flatten(0, 1), v.flatten(0, 1)).view(N, H, L, D),
    ],
)
def test_attention_by_hand(product):
    q, k, v = heads()
    maps = record(lambda q, k, v: product((q @ k.mT).softmax(-1), v), q, k, v, softmax=True)
    weights = (q @ k.mT).softmax(-1)
    expected = by_loop(weights, v.norm(dim=-1))
    assert_close(maps.value_weighted()[0].weights.reshape(N, H, L, S), expected)


def test_one_set_of_values_for_all_heads():
    q, k, v = heads()
    maps = record(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, q, k, v[0, 0], softmax=True)
    norms = v[0, 0].norm(dim=-1).expand(N, H, S)
    assert_close(maps[0].value_weighted().weights, by_loop(maps[0].weights, norms))


def test_a_mechanism_that_shows_its_weights():
    q, k, v = heads()
    weights = (q @ k.mT).sigmoid()
    maps = record(weigh_values, weights, v)
    assert_close(maps[0].value_weighted().weights, by_loop(weights, v.norm(dim=-1)))


@pytest.mark.parametrize("make", [nn.MultiheadAttention, MultiheadAttention])
@pytest.mark.parametrize("adds", [False, True])
def test_modules(make, adds):
    torch.manual_seed(0)
    module = make(H * D, H, batch_first=True, add_bias_kv=adds, add_zero_attn=adds).double()
    x, memory = torch.randn(N, L, H * D).double(), torch.randn(N, S, H * D).double()
    with record_attention(module, values=True) as maps:
        module(x, memory, memory)
    v = F.linear(memory, module.in_proj_weight.chunk(3)[2], module.in_proj_bias.chunk(3)[2])
    v = v.view(N, S, H, D).transpose(1, 2)
    if adds:
        bias = module.bias_v.view(1, 1, H, D).expand(N, 1, H, D).transpose(1, 2)
        v = torch.cat([v, bias, torch.zeros(N, H, 1, D).double()], 2)
    assert_close(maps[0].value_norms, v.norm(dim=-1))
    assert not maps[0].value_norms.requires_grad


def test_autocast_and_half():
    module = nn.MultiheadAttention(H * D, H, batch_first=True)
    x = torch.randn(N, L, H * D)
    with torch.autocast("cpu", torch.bfloat16), record_attention(module, values=True) as maps:
        module(x, x, x, need_weights=False)
    assert maps[0].value_norms.dtype == torch.float32
    q, k, v = (x.half() for x in heads())
    norms = record(F.scaled_dot_product_attention, q, k, 1000 * v)[0].value_norms
    assert_close(norms, (1000 * v).float().norm(dim=-1))


def test_under_vmap():
    q, k, v = heads()
    model = Calls(F.scaled_dot_product_attention)
    with record_attention(model, values=True) as maps:
        torch.func.vmap(model)(q, k, v)
    norms = v.norm(dim=-1).view(maps[0].value_norms.shape)
    assert_close(maps[0].value_norms, norms)


def test_empty_batch_and_zoo_of_shapes():
    maps = record(F.scaled_dot_product_attention, *(x[:0] for x in heads()))
    assert maps.value_weighted()[0].weights.shape == (0, H, L, S)
    maps = record(F.scaled_dot_product_attention, *(x[0] for x in heads()))
    assert maps.value_weighted()[0].weights.numel() == H * L * S


def test_recording_norms_changes_nothing():
    q, k, v = heads()
    plain = Calls(F.scaled_dot_product_attention)
    with record_attention(plain) as without:
        plain(q, k, v)
    assert without[0].value_norms is None
    assert_close(record(F.scaled_dot_product_attention, q, k, v)[0].weights, without[0].weights)


def test_shown_and_saved_as_any_map(tmp_path):
    maps = record(F.scaled_dot_product_attention, *heads())
    weighted = maps.value_weighted()
    assert isinstance(weighted[:1], AttentionMaps)
    assert "value-weighted" in weighted.save(tmp_path / "all.html").read_text()
    for suffix in ("png", "svg", "html", "npz"):
        assert weighted[0].save(tmp_path / f"one.{suffix}").stat().st_size > 0
    read = AttentionMap.load(tmp_path / "one.npz")
    assert_close(read.weights, weighted[0].weights)
    assert read.scores() == {}
    again = AttentionMap.load(maps[0].save(tmp_path / "plain.npz"))
    assert_close(again.value_weighted().weights, weighted[0].weights)
    assert again.scores().keys() == maps[0].scores().keys()


def test_rollout_of_a_recording():
    layer = nn.TransformerEncoderLayer(6, 3, 7, batch_first=True)
    model = nn.ModuleDict({"a": nn.TransformerEncoder(layer, 2), "b": nn.MultiheadAttention(6, 3)})
    model.eval()
    with torch.no_grad(), record_attention(model, values=True) as maps:
        x = torch.randn(2, 5, 6)
        model["a"](x)
        model["b"](x, x[:1], x[:1])
    rolled = maps.rollout("a.*")
    assert [one.name for one in rolled] == [one.name for one in maps[:2]]
    assert isinstance(rolled, AttentionMaps)
    assert rolled.title == "rollout"
    first = maps[0].weights.mean(1) / 2 + torch.eye(5) / 2
    second = maps[1].weights.mean(1) / 2 + torch.eye(5) / 2
    assert_close(rolled[1].weights[:, 0], second @ first)
    assert rolled[1].scores()["entropy"].shape == (1,)
    with pytest.raises(ValueError, match="names='c' matches no map"):
        maps.rollout("c")
    with pytest.raises(ValueError, match="cross"):
        maps.rollout()
    with pytest.raises(ValueError, match="maps is empty"):
        AttentionMaps().rollout()


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("by_hand", [False, True])
def test_of_a_pooled_map_the_products_are_pooled(tmp_path, pool, by_hand):
    q, k, v = heads()
    attend = by_softmax if by_hand else F.scaled_dot_product_attention
    options = {"softmax": True, "samples": [1], "heads": [2, 0]}
    whole = record(attend, q, k, v, **options).value_weighted()[0]
    pooled = record(attend, q, k, v, **options, max_size=3, pool=pool)
    weighted = pooled.value_weighted()[0]
    pools = {"mean": F.adaptive_avg_pool2d, "max": F.adaptive_max_pool2d}
    assert_close(weighted.weights, pools[pool](whole.weights, (3, 3)))
    assert (weighted.size, weighted.measure, weighted.scores()) == ((L, S), "value-weighted", {})
    read = AttentionMap.load(pooled[0].save(tmp_path / "pooled.npz"))
    assert_close(read.value_weighted().weights, weighted.weights)


def by_softmax(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


def test_what_its_numbers_are_stands_in_the_page_and_in_the_file(tmp_path):
    maps = record(F.scaled_dot_product_attention, *heads())
    weighted = maps.value_weighted()[0]
    assert Header.from_json(weighted.part().header).measure == "value-weighted"
    assert Header.from_json(maps[0].part().header).measure == "weights"
    assert AttentionMap.load(weighted.save(tmp_path / "one.npz")).measure == "value-weighted"


def test_what_cannot_be_weighted():
    q, k, v = heads()
    with pytest.raises(ValueError, match=r"record_attention\(model, values=True\)"):
        AttentionMap("x", torch.ones(1, 1, 2, 2)).value_weighted()
    pooled = replace(record(F.scaled_dot_product_attention, q, k, v, max_size=3)[0], weighted=None)
    with pytest.raises(ValueError, match="pooled"):
        pooled.value_weighted()
    with pytest.raises(ValueError, match="exclude each other"):
        record(F.scaled_dot_product_attention, q, k, v, average_heads=True)
    with pytest.raises(TypeError, match="values=1 must be a bool"):
        record_attention(nn.Linear(2, 2), values=1).__enter__()
    with pytest.raises(ValueError, match="value_norms have shape"):
        value_weighted(torch.ones(1, 2, 3, 5), torch.ones(1, 2, 3))
