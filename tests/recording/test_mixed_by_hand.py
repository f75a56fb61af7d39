"""Softmaxes whose results are mixed before they meet values; and what is told of the others."""

import warnings

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from mha_lab import record_attention

N, H, L, S, D = 3, 4, 5, 7, 11


class Mixed(nn.Module):
    """Attention by hand; each method says its own weights, which are kept for the test."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.over_heads = nn.Linear(H, H)
        self.convolution = nn.Conv2d(H, H, (1, 3), padding=(0, 1))
        self.matrix = nn.Parameter(torch.randn(H, H))
        self.dropout = nn.Dropout(0.4)

    def forward(self, q, k, v):
        scores = q @ k.mT
        return getattr(self, self.how)(scores, v)

    def applied(self, weights, v):
        self.weights = weights.detach().clone()
        return self.dropout(weights) @ v

    def talking_heads(self, scores, v):
        weights = scores.softmax(-1).permute(0, 2, 3, 1)
        return self.applied(self.over_heads(weights).permute(0, 3, 1, 2), v)

    def einsum_over_heads(self, scores, v):
        return self.applied(torch.einsum("hg,nhls->ngls", self.matrix, scores.softmax(-1)), v)

    def matmul_over_heads(self, scores, v):
        weights = scores.softmax(-1).movedim(1, -1) @ self.matrix
        return self.applied(weights.movedim(-1, 1), v)

    def convolved(self, scores, v):
        return self.applied(self.convolution(scores.softmax(-1)), v)

    def differential(self, scores, v):
        first, second = scores[:, ::2].softmax(-1), scores[:, 1::2].softmax(-1)
        return self.applied(first - 0.3 * second, v[:, ::2])

    def renormalised(self, scores, v):
        weights = scores.softmax(-1) * (scores > 0)
        return self.applied(weights / (weights.sum(-1, keepdim=True) + 1e-6), v)

    def weights_of_weights(self, scores, v):
        square = scores[..., :L].softmax(-1)
        return self.applied(square @ square, v[:, :, :L])

    def sink_is_cut_off(self, scores, v):
        sink = torch.zeros(N, H, L, 1)
        return self.applied(torch.cat([scores, sink], -1).softmax(-1)[..., :-1], v)

    def over_another_axis(self, scores, v):
        weights = scores.movedim(1, -1).softmax(2)  # (N, L, S, H)
        self.weights = weights.movedim(-1, 1).detach().clone()
        return torch.einsum("nlsh,nhsd->nhld", weights, v)


HOW = [name for name in vars(Mixed) if name not in ("forward", "applied") and name[0] != "_"]


def inputs():
    return torch.randn(N, H, L, D), torch.randn(N, H, S, D), torch.randn(N, H, S, D)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("training", [False, True])
def test_what_is_applied_is_recorded_before_dropout(how, training):
    module, qkv = Mixed(how).train(training), inputs()
    torch.manual_seed(1)
    expected = module(*qkv)
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with record_attention(module, softmax=True) as maps:
            output = module(*qkv)
    assert torch.equal(output, expected)
    assert_close(maps[-1].weights, module.weights)
    assert len(maps) == 1


@pytest.mark.parametrize("how", HOW)
def test_beside_a_stock_module_they_are_told(how):
    model = nn.ModuleDict(
        {"mixed": Mixed(how), "stock": nn.MultiheadAttention(D, 1, batch_first=True)}
    )
    number = "2 softmaxes" if how == "differential" else "1 softmax"
    told = rf"^1 attention map of ModuleDict recorded; not among them: {number} multiplied.*mixed"
    model.forward = lambda q, k, v: model["stock"](*[model["mixed"](q, k, v)[:, 0]] * 3)
    with pytest.warns(UserWarning, match=told), record_attention(model):
        model(*inputs())


class Layers(nn.Module):
    def __init__(self, by_hand, fused):
        super().__init__()
        self.layers = nn.ModuleList([ByHand() for _ in range(by_hand)])
        self.rest = nn.ModuleList([Fused() for _ in range(fused)])

    def forward(self, x):
        for layer in [*self.layers, *self.rest]:
            x = layer(x)
        return x


class ByHand(nn.Module):
    def forward(self, x):
        return (x @ x.mT).softmax(-1) @ x


class Fused(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x)


def test_six_of_twenty_one_layers():
    model = Layers(6, 15)
    with (
        pytest.warns(UserWarning, match="not among them") as caught,
        record_attention(model) as maps,
    ):
        model(torch.randn(N, H, L, D))
    assert len(maps) == 15
    assert [str(one.message) for one in caught] == [
        "15 attention maps of Layers recorded; not among them: 6 softmaxes multiplied with values "
        "by hand, in layers.0, layers.1, layers.2 and 3 more; softmax=True records that"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with record_attention(model, softmax=True) as maps:
            model(torch.randn(N, H, L, D))
    assert len(maps) == 21


class Lost(nn.Module):
    """Attention that is not followed to its end."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        weights = (x @ x.mT).softmax(-1)
        if self.how == "by elements":
            return (weights.unsqueeze(-1) * x.unsqueeze(-3)).sum(-2)
        if self.how == "three operands":
            return torch.einsum("nhls,hg,ngsd->ngld", weights, torch.eye(H), x)
        rows = torch.as_tensor(weights.detach().numpy())
        return rows @ x


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("by elements", "in a way that is not followed"),
        ("three operands", "in a way that is not followed"),
        ("through numpy", "not seen to be multiplied"),
    ],
)
@pytest.mark.parametrize("softmax", [False, True])
def test_what_is_not_followed_is_told_with_and_without_softmax(how, told, softmax):
    model = nn.Sequential(Fused(), Lost(how))
    warned = pytest.warns(UserWarning, match=f"1 softmax in 1, .*{told}")
    with warned, record_attention(model, softmax=softmax) as maps:
        model(torch.randn(N, H, L, D))
    assert len(maps) == 1


class Chooses(nn.Module):
    """A router of experts, and the probabilities of a classifier."""

    def forward(self, x):
        x = nn.functional.scaled_dot_product_attention(x, x, x)
        flat = x.flatten(0, -2)
        share, expert = flat.softmax(-1).topk(2)
        routed = flat * share[:, :1] + expert[:, :1]
        return routed.softmax(-1)


def test_routers_and_classifiers_are_no_attention():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Chooses()
        with record_attention(model) as maps:
            model(torch.randn(N, H, L, D))
    assert len(maps) == 1
