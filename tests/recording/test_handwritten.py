"""Attention that is written by hand: which softmaxes are recorded, and as what."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from mha_lab import record_attention

N, H, L, S, D = 3, 2, 5, 7, 11


class Written(nn.Module):
    """Attention in one of the ways in which people write it."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.softmax = nn.Softmax(dim=-1)
        self.dropout = nn.Dropout(0.5)

    def forward(self, q, k, v, mask):
        scores = (q @ k.transpose(-2, -1)).masked_fill(~mask, -torch.inf)
        return getattr(self, self.how)(scores, v)

    def method(self, scores, v):
        return scores.softmax(-1) @ v

    def module_and_dropout(self, scores, v):
        return torch.matmul(self.dropout(self.softmax(scores)), v)

    def functional_and_cast(self, scores, v):
        return F.softmax(scores, dim=-1, dtype=torch.float64).to(v.dtype).matmul(v)

    def last_axis_by_number(self, scores, v):
        return torch.softmax(scores, dim=3).float().contiguous() @ v

    def by_its_logarithm(self, scores, v):
        return scores.log_softmax(-1).exp() @ v

    def softmin(self, scores, v):
        return F.softmin(-scores, dim=-1) @ v

    def by_an_operator(self, scores, v):
        return torch.ops.aten.softmax.int(scores, -1) @ v

    def einsum(self, scores, v):
        return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)

    def einsum_of_a_list(self, scores, v):
        return torch.einsum("bhij,bhjd->bhid", [scores.softmax(dim=-1), v])

    def values_first(self, scores, v):
        return (v.mT @ scores.softmax(-1).mT).mT

    def joined(self, scores, v):
        weights = scores.softmax(-1).reshape(N * H, L, S)
        return torch.bmm(weights, v.reshape(N * H, S, D)).view(N, H, L, D)

    def added(self, scores, v):
        weights = scores.softmax(-1).flatten(0, 1)
        return torch.baddbmm(torch.zeros(1), weights, v.flatten(0, 1))

    def in_place(self, scores, v):
        weights = scores.softmax(-1)
        weights *= torch.tensor([0.0, 1.0])[:, None, None]
        return F.dropout(weights, 0.5, inplace=True) @ v

    def used_twice(self, scores, v):
        weights = scores.softmax(-1)
        return weights @ v + weights @ v.flip(-1)


def by_hand(q, k, mask):
    scores = torch.where(mask, torch.einsum("nhld,nhsd->nhls", q, k), -torch.inf)
    exps = (scores - scores.amax(-1, keepdim=True)).exp()
    return exps / exps.sum(-1, keepdim=True)


@pytest.mark.parametrize("how", [name for name in vars(Written) if not name.startswith("_")][1:])
def test_every_way_to_write_it(how):
    q, k, v = torch.randn(N, H, L, D), torch.randn(N, H, S, D), torch.randn(N, H, S, D)
    mask = torch.rand(N, 1, L, S).gt(0.3) | (torch.arange(S) == 2)
    module = Written(how)
    torch.manual_seed(1)
    expected = module(q, k, v, mask)
    torch.manual_seed(1)
    with record_attention(module, softmax=True) as maps:
        output = module(q, k, v, mask)
    assert torch.equal(output, expected)
    (one,) = maps
    assert one.weights.dtype in (torch.float32, torch.float64)
    weights = one.weights.float()
    expected = by_hand(q, k, mask)
    if how == "in_place":  # what is applied, before dropout
        expected[:, 0] = 0
    assert_close(weights, expected, atol=1e-6, rtol=0)
    assert (weights[~mask.expand_as(weights)] == 0).all()


def test_heads_are_told_apart_where_the_module_says_how_many():
    class Joined(nn.Module):
        n_head = H

        def forward(self, q, k):
            scores = q.flatten(0, 1) @ k.flatten(0, 1).mT
            return scores.softmax(-1) @ k.flatten(0, 1)

    q, k = torch.randn(N, H, L, D), torch.randn(N, H, S, D)
    module = Joined()
    with record_attention(module, softmax=True, heads=[1], samples=2) as maps:
        module(q, k)
    mask = torch.ones(L, S, dtype=torch.bool)
    assert_close(maps[0].weights, by_hand(q, k, mask)[:2, [1]], atol=1e-6, rtol=0)


def test_heads_that_are_joined_after_the_softmax_are_told_apart_by_it():
    class Joined(nn.Module):
        def forward(self, q, k):
            weights = (q @ k.mT).softmax(-1).flatten(0, 1)
            return torch.bmm(weights, k.flatten(0, 1))

    q, k = torch.randn(N, H, L, D), torch.randn(N, H, S, D)
    module = Joined()
    with record_attention(module, softmax=True, values=True, heads=[1], samples=2) as maps:
        module(q, k)
    mask = torch.ones(L, S, dtype=torch.bool)
    assert_close(maps[0].weights, by_hand(q, k, mask)[:2, [1]], atol=1e-6, rtol=0)
    assert_close(maps[0].value_norms, k.norm(dim=-1)[:2, [1]], atol=1e-6, rtol=0)


def test_weights_that_are_drawn_are_those_that_were_applied():
    class Drawn(nn.Module):
        def forward(self, scores, v):
            self.weights = F.gumbel_softmax(scores, tau=0.7)
            return self.weights @ v

    module = Drawn()
    with record_attention(module, softmax=True) as maps:
        module(torch.randn(N, H, L, S), torch.randn(N, H, S, D))
    assert_close(maps[0].weights, module.weights)


def test_a_logarithm_that_stays_one_is_no_attention():
    class Modelled(nn.Module):
        def forward(self, x):
            return F.nll_loss((x @ x.mT).log_softmax(-1).flatten(0, 1), torch.zeros(N * L).long())

    with warnings.catch_warnings(), record_attention(module := Modelled(), softmax=True) as maps:
        warnings.simplefilter("ignore")
        module(torch.randn(N, L, D))
    assert maps == []


def test_rows_without_any_key_are_zero():
    class AllBlocked(nn.Module):
        def forward(self, x):
            return (x @ x.mT - torch.inf).softmax(-1) @ x

    with record_attention(AllBlocked(), softmax=True) as maps:
        AllBlocked().forward(torch.randn(N, L, D))  # another module of the class: not the model
    assert maps == []
    module = AllBlocked()
    with record_attention(module, softmax=True) as maps:
        module(torch.randn(N, L, D))
    assert (maps[0].weights == 0).all()


def test_what_is_no_attention():
    class Others(nn.Module):
        def forward(self, x):
            probabilities = x.softmax(-1)  # a classifier's: multiplied with nothing
            over_queries = x.softmax(-2) @ x.mT  # over another axis
            return probabilities.sum() + over_queries.sum() + x.log_softmax(-1).sum()

    module = Others()
    with pytest.warns(UserWarning, match="no attention"), record_attention(module, softmax=True):
        module(torch.randn(N, L, D))


def test_fused_attention_is_not_recorded_twice():
    model = nn.Transformer(22, H, 1, 1, 13, batch_first=True)
    x = torch.randn(N, L, 22)
    with record_attention(model, softmax=True) as maps:
        model(x, x)
    assert len(maps) == 3


def test_softmaxes_that_are_forgotten_are_not_kept():
    class Forgets(nn.Module):
        def forward(self, x):
            for _ in range(5):
                x.softmax(-1)
            return (x @ x.mT).softmax(-1) @ x

    module = Forgets()
    with record_attention(module, softmax=True) as maps:
        module(torch.randn(N, L, D))
        mode = torch.overrides._get_current_function_mode_stack()[-1]
        assert len(mode._tracker._followed) == 0
    assert len(maps) == 1


def test_long_maps_are_pooled_and_scored_before():
    class Plain(nn.Module):
        def forward(self, x):
            return (x @ x.mT).softmax(-1) @ x

    module, x = Plain(), torch.randn(N, 1, S, D)
    with record_attention(module, softmax=True) as maps:
        module(x)
    with record_attention(module, softmax=True, max_size=3, pool="max") as pooled:
        module(x)
    assert_close(pooled[0].weights, F.adaptive_max_pool2d(maps[0].weights, 3))
    assert pooled[0].size == (S, S)
    assert_close(pooled[0].scores(), maps[0].scores())
