"""Softmaxes that are written out: exponentials divided by their sum, in every way to do so."""

import math
import warnings

import einops
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from mha_lab import record_attention

N, H, L, S, D = 3, 2, 5, 7, 11


class Exps:
    """The exponentials of scores, without overflow."""

    @staticmethod
    def plain(s):
        return (s - s.amax(-1, keepdim=True)).exp()

    @staticmethod
    def function_of_max(s):
        return torch.exp(s - torch.max(s, dim=-1, keepdim=True).values)

    @staticmethod
    def in_place(s):
        return s.sub_(s.amax(-1, keepdim=True)).exp_()

    @staticmethod
    def out(s):
        return torch.exp(s - s.amax(-1, keepdim=True), out=torch.empty_like(s))

    @staticmethod
    def of_base_two(s):
        return torch.exp2((s - s.amax(-1, keepdim=True)) * math.log2(math.e))

    @staticmethod
    def power(s):
        return math.e ** (s - s.amax(-1, keepdim=True))

    @staticmethod
    def masked(s):
        e = (s.masked_fill(s == -torch.inf, 0.0) - 3.0).exp()
        return e * (s != -torch.inf)

    @staticmethod
    def filled(s):
        return torch.exp(s.masked_fill(s == -torch.inf, 0.0)).masked_fill_(s == -torch.inf, 0.0)

    @staticmethod
    def where(s):
        return torch.where(s != -torch.inf, torch.exp(s), 0.0).clamp(max=1e9)

    @staticmethod
    def set(s):
        e = torch.exp(s.nan_to_num(neginf=0.0))
        e[s == -torch.inf] = 0
        return e


class Quotients:
    """Exponentials and values to an output."""

    @staticmethod
    def plain(e, v):
        w = e / e.sum(-1, keepdim=True)
        return w @ v

    @staticmethod
    def named(e, v):
        return torch.div(e, torch.sum(e, dim=-1)[..., None]) @ v

    @staticmethod
    def in_place(e, v):
        e /= e.sum(dim=-1).unsqueeze(-1)
        return torch.matmul(e, v)

    @staticmethod
    def method_in_place(e, v):
        return e.div_(e.sum(axis=3, keepdim=True)) @ v

    @staticmethod
    def normalize(e, v):
        return F.normalize(e, p=1, dim=-1) @ v

    @staticmethod
    def norm(e, v):
        return e / torch.linalg.vector_norm(e, ord=1, dim=-1, keepdim=True) @ v

    @staticmethod
    def reciprocal(e, v):
        return e * e.sum(-1, keepdim=True).add(1e-9).reciprocal() @ v

    @staticmethod
    def one_over(e, v):
        return (1 / e.sum(-1, keepdim=True).clamp_min(1e-9)) * e @ v

    @staticmethod
    def mean(e, v):
        return e / (e.mean(-1, keepdim=True) * S) @ v

    @staticmethod
    def einsum(e, v):
        total = torch.einsum("bhij->bhi", e)
        return torch.einsum("bhij,bhjd->bhid", e / total.unsqueeze(-1), v)

    @staticmethod
    def einops(e, v):
        return einops.einsum(
            e / einops.reduce(e, "b h i j -> b h i 1", "sum"), v, "b h i j, b h j d -> b h i d"
        )

    @staticmethod
    def dropped(e, v):
        return F.dropout(e / e.sum(-1, keepdim=True), 0.4) @ v

    @staticmethod
    def cast(e, v):
        return (e.double() / e.double().sum(-1, keepdim=True)).to(v.dtype) @ v

    @staticmethod
    def joined(e, v):
        e = e.flatten(0, 1)
        return torch.bmm(e / e.sum(-1, keepdim=True), v.flatten(0, 1)).unflatten(0, (N, H))

    @staticmethod
    def transposed(e, v):
        e = e.mT
        return (v.mT @ (e / e.sum(-2, keepdim=True))).mT

    @staticmethod
    def ones(e, v):
        return e / (e @ torch.ones(S, 1)) @ v

    @staticmethod
    def afterwards(e, v):
        return (e @ v) / e.sum(-1, keepdim=True)

    @staticmethod
    def summed_first(e, v):
        total = e.sum(-1)
        return (
            torch.einsum("nhls,nhsd->nhld", e, v)
            .transpose(1, 2)
            .div(total.transpose(1, 2).unsqueeze(-1))
            .transpose(1, 2)
        )


class Logarithms:
    """Scores to weights by their logarithm."""

    @staticmethod
    def logsumexp(s):
        return (s - s.logsumexp(-1, keepdim=True)).exp()

    @staticmethod
    def logsumexp_function(s):
        return torch.exp(s - torch.logsumexp(s, dim=-1)[..., None])

    @staticmethod
    def log_softmax(s):
        return torch.exp(F.log_softmax(s, dim=-1).clone()).contiguous()

    @staticmethod
    def log_of_the_sum(s):
        s = s - s.amax(-1, keepdim=True)
        return (s - s.exp().sum(-1, keepdim=True).log()).exp()

    @staticmethod
    def shifted(s):
        top = s.amax(-1, keepdim=True)
        return (s - ((s - top).exp().sum(-1, keepdim=True).log() + top)).exp_()


def ways(kind):
    return [name for name in vars(kind) if not name.startswith("__")]


class Attention(nn.Module):
    def __init__(self, apply):
        super().__init__()
        self.apply_to = apply

    def forward(self, q, k, v, mask):
        return self.apply_to((q @ k.mT).masked_fill(~mask, -torch.inf), v)


def inputs(shape=(N, H)):
    q, k, v = (torch.randn(*shape, length, D) for length in (L, S, S))
    mask = torch.rand(*shape, L, S).gt(0.3) | (torch.arange(S) == 2)
    return q, k, v, mask


def reference(q, k, mask):
    """By torch's kernel: with unit values, attention returns its weights."""
    shape = (*mask.shape[:-2], S, S)
    return F.scaled_dot_product_attention(q, k, torch.eye(S).expand(shape), mask, scale=1.0)


def check(apply, shape=(N, H)):
    model, given = Attention(apply), inputs(shape)
    torch.manual_seed(1)
    expected = model(*given)
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with record_attention(model, softmax=True, values=True) as maps:
            output = model(*given)
    assert torch.equal(output, expected)
    (one,) = maps
    weights = reference(given[0], given[1], given[3])
    assert_close(one.weights.float(), weights.reshape(one.weights.shape), atol=1e-5, rtol=0)
    assert_close(one.value_norms.reshape(-1, S), given[2].norm(dim=-1).reshape(-1, S))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with record_attention(model):
            model(*given)
    assert "1 softmax multiplied with values by hand" in str(caught[0].message)


@pytest.mark.parametrize("how", ways(Exps))
def test_every_exponential(how):
    check(lambda s, v: Quotients.plain(getattr(Exps, how)(s), v))


@pytest.mark.parametrize("how", ways(Quotients))
def test_every_quotient(how):
    check(lambda s, v: getattr(Quotients, how)(Exps.plain(s), v))


@pytest.mark.parametrize("how", ways(Logarithms))
def test_every_logarithm(how):
    check(lambda s, v: getattr(Logarithms, how)(s) @ v)


@pytest.mark.parametrize("shape", [(), (H,), (N, H, 1)])
def test_other_axes(shape):
    check(lambda s, v: Quotients.plain(Exps.plain(s), v), shape)


def test_rows_without_any_key_are_zero():
    model = Attention(lambda s, v: Quotients.plain(Exps.plain(s), v))
    q, k, v, mask = inputs()
    with record_attention(model, softmax=True) as maps:
        model(q, k, v, mask & (torch.arange(L) != 1)[:, None])
    assert (maps[0].weights[:, :, 1] == 0).all()
    assert_close(maps[0].weights[:, :, 2:].sum(-1), torch.ones(N, H, L - 2))


def test_gradients_are_those_of_a_run_that_is_not_recorded():
    model, (q, k, v, mask) = Attention(lambda s, v: Quotients.plain(Exps.plain(s), v)), inputs()
    q.requires_grad_()
    (expected,) = torch.autograd.grad(model(q, k, v, mask).square().sum(), q)
    with record_attention(model, softmax=True):
        (gradient,) = torch.autograd.grad(model(q, k, v, mask).square().sum(), q)
    assert torch.equal(gradient, expected)


def in_blocks(s, v):
    """As FlashAttention does it: keys in blocks, the sum corrected as larger scores come."""
    top, total, output = torch.full((N, H, L, 1), -1e9), 0.0, 0.0
    for keys in (slice(0, 4), slice(4, S)):
        larger = torch.maximum(top, s[..., keys].amax(-1, keepdim=True))
        e = (s[..., keys] - larger).exp()
        shrink = (top - larger).exp()
        total = total * shrink + e.sum(-1, keepdim=True)
        output = output * shrink + e @ v[:, :, keys]
        top = larger
    return output / total


def of_neighbours(s, v):
    """As PyTorch Geometric does it: each edge of a graph has a weight."""
    edges = s.flatten(0, 2).exp()
    index = torch.arange(S) // 2
    sums = torch.zeros(len(edges), S).index_add(1, index, edges)
    weights = edges / (sums[:, index] + 1e-16)
    return weights.unsqueeze(-1) * v[0, 0]


def by_elements(s, v):
    w = Quotients.plain(Exps.plain(s), torch.eye(S).expand(N, H, S, S))
    e = Exps.plain(s)
    return w.mean() + ((e / e.sum(-1, keepdim=True)).unsqueeze(-1) * v.unsqueeze(-3)).sum(-2)


@pytest.mark.parametrize("apply", [in_blocks, of_neighbours, by_elements])
@pytest.mark.parametrize("softmax", [False, True])
def test_what_is_not_followed_is_told(apply, softmax):
    model = Attention(apply)
    warned = pytest.warns(UserWarning, match="in a way that is not followed")
    with warned, record_attention(model, softmax=softmax):
        model(*inputs())


class NoAttention(nn.Module):
    """Exponentials, sums and quotients that are none."""

    def forward(self, x):
        x = F.scaled_dot_product_attention(x, x, x)
        normed = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
        pooled = x.abs() / x.abs().sum(-1, keepdim=True) @ x.mT
        scaled = x * self.scale.exp() / x.sum(-1, keepdim=True)
        drawn = x + torch.exp(0.5 * normed) * x.flip(-1)
        gated = (x.exp() * normed) @ x.mT
        sigmoid = 1 / (1 + (-x).exp())
        kernel = torch.exp(-torch.arange(-2.0, 3).square())
        blurred = F.conv1d(x.flatten(0, 1), (kernel / kernel.sum()).expand(L, L, 5), padding=2)
        loss = x.logsumexp(-1) - x[..., 0]
        contrastive = (x[0, 0] @ x[0, 0].T).exp()
        likelihood = contrastive / contrastive.sum(-1, keepdim=True)
        tensors = (normed, pooled, scaled, drawn, gated, sigmoid, blurred, loss, likelihood.log())
        return sum(one.sum() for one in tensors)

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(H, 1, 1))


@pytest.mark.parametrize("softmax", [False, True])
def test_what_is_no_attention_is_not_told(softmax):
    model = NoAttention()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with record_attention(model, softmax=softmax) as maps:
            model(torch.randn(N, H, L, D))
    assert len(maps) == 1


def test_nothing_is_kept_of_exponentials_that_are_forgotten():
    class Forgets(nn.Module):
        def forward(self, x):
            for _ in range(5):
                x.exp().sum(-1, keepdim=True)
                x.exp() @ x.mT
            return x

    model = Forgets()
    warnings.simplefilter("ignore")
    with record_attention(model, softmax=True):
        model(torch.randn(N, H, L, D))
        mode = torch.overrides._get_current_function_mode_stack()[-1]
        assert len(mode._tracker._exponentials._notes) == 0
