"""Each mechanism against an independent one: another library's, or plain loops over the equations.

Outputs, and gradients of the input, in float64 to 1e-10 and in float32 to 1e-5.
"""

import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from mha_lab.attention.composed import ComposedAttention
from mha_lab.attention.mixing.differential import Differential
from mha_lab.attention.mixing.talking_heads import TalkingHeads
from mha_lab.attention.patterns.dilated_window import DilatedWindow
from mha_lab.attention.patterns.global_window import GlobalWindow
from mha_lab.attention.patterns.prefix import Prefix
from mha_lab.attention.patterns.window import Window
from mha_lab.attention.weighting.adaptive_entmax import AdaptiveEntmax
from mha_lab.attention.weighting.entmax15 import Entmax15
from mha_lab.attention.weighting.off_by_one import OffByOne
from mha_lab.attention.weighting.scalable_softmax import ScalableSoftmax
from mha_lab.attention.weighting.sigmoid import Sigmoid
from mha_lab.attention.weighting.sink import Sink
from mha_lab.attention.weighting.sparse import entmax15, sparsemax
from mha_lab.attention.weighting.sparsemax import Sparsemax
from mha_lab.attention.weighting.stick_breaking import StickBreaking
from mha_lab.attention.weighting.top_k import TopK

N, L, H, E = 2, 11, 6, 36
D = E // H
CAUSAL = torch.full((L, L), -torch.inf, dtype=torch.float64).triu(1)
Heads = Callable[[ComposedAttention, Tensor, Tensor, Tensor], Tensor]


def random(module: ComposedAttention) -> ComposedAttention:
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double()


def project(module: ComposedAttention, x: Tensor) -> list[Tensor]:
    """q, k and v, (N, heads, L, D)."""
    widths = [E, module.kv_heads * D, module.kv_heads * D]
    parts = F.linear(x, module.in_proj_weight, module.in_proj_bias).split(widths, -1)
    return [part.reshape(N, L, -1, D).transpose(1, 2) for part in parts]


def agree(module: ComposedAttention, heads_of: Heads, **call: Any) -> None:
    """The module, fused or not, and the other's heads (N, L, H, D) give the same."""

    def other(x: Tensor) -> Tensor:
        heads = heads_of(module, *project(module, x))
        return module.out_proj(heads.reshape(N, L, E))

    agree_as_a_whole(module, other, **call)


def agree_as_a_whole(
    module: ComposedAttention, other: Callable[[Tensor], Tensor], **call: Any
) -> None:
    x = torch.randn(N, L, E, dtype=torch.float64)
    outcomes = []
    for forward in (
        other,
        lambda y: module(y, y, y, need_weights=False, **call)[0],
        lambda y: module(y, y, y, need_weights=True, **call)[0],
    ):
        given = x.clone().requires_grad_()
        output = forward(given)
        wanted = [given, *module.weighting.parameters(), *module.mixing.parameters()]
        outcomes.append((output, *torch.autograd.grad(output.square().sum(), wanted)))
    for ours in outcomes[1:]:
        for one, expected in zip(ours, outcomes[0], strict=True):
            assert_close(one, expected, rtol=1e-10, atol=1e-10)
    single = module.float()(x.float(), x.float(), x.float(), need_weights=False, **call)[0]
    assert_close(single.double(), outcomes[0][0].detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_sink_is_that_of_gpt_oss(kv_heads: int) -> None:
    from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward

    def gpt_oss(module: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        about = SimpleNamespace(
            num_key_value_groups=H // kv_heads, sinks=module.weighting.score, training=False
        )
        return eager_attention_forward(about, q, k, v, CAUSAL, scaling=D**-0.5)[0]

    module = random(ComposedAttention(E, H, weighting=Sink, kv_heads=kv_heads))
    agree(module, gpt_oss, is_causal=True)


def test_softcap_and_grouped_queries_are_those_of_gemma_2() -> None:
    from transformers.models.gemma2 import modeling_gemma2

    def gemma(module: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        about = SimpleNamespace(num_key_value_groups=2, head_dim=D, training=False)
        scores = (q @ modeling_gemma2.repeat_kv(k, 2).transpose(2, 3)) * D**-0.5
        assert scores.abs().max() > 1.5  # or the cap would not be seen
        with pytest.MonkeyPatch.context() as patch:  # it rounds the softmax to float32
            softmax = F.softmax
            patch.setattr(F, "softmax", lambda x, dim, dtype: softmax(x, dim=dim))
            return modeling_gemma2.eager_attention_forward(about, q, k, v, CAUSAL, softcap=1.5)[0]

    agree(random(ComposedAttention(E, H, softcap=1.5, kv_heads=3)), gemma, is_causal=True)


def test_window_is_that_of_mistral() -> None:
    from transformers.masking_utils import sliding_window_causal_mask_function
    from transformers.models.mistral.modeling_mistral import repeat_kv

    sees = sliding_window_causal_mask_function(3)
    at = torch.arange(L)
    mask = torch.tensor([[bool(sees(at, at, i, j)) for j in at] for i in at])

    def mistral(module: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = repeat_kv(k, 3), repeat_kv(v, 3)
        return F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2)

    module = random(ComposedAttention(E, H, pattern=partial(Window, size=3), kv_heads=2))
    agree(module, mistral, is_causal=True)


def test_gate_and_rms_are_those_of_qwen_3_next() -> None:
    from transformers import Qwen3NextConfig
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention

    config = Qwen3NextConfig(
        hidden_size=E,
        num_attention_heads=H,
        num_key_value_heads=2,
        head_dim=D,
        attention_bias=True,
        attn_implementation="sdpa",
    )
    theirs = Qwen3NextAttention(config, 0).double()
    ours = random(ComposedAttention(E, H, kv_heads=2, qk_norm="rms", gate=True))
    with torch.no_grad():
        w_q, w_k, w_v = ours.in_proj_weight.split([E, 2 * D, 2 * D])
        b_q, b_k, b_v = ours.in_proj_bias.split([E, 2 * D, 2 * D])
        pairs = [(w_q, ours.gate_proj.weight), (b_q, ours.gate_proj.bias)]
        both = [torch.stack([q.view(H, D, -1), g.view(H, D, -1)], 1) for q, g in pairs]
        theirs.q_proj.weight.copy_(both[0].reshape(2 * E, E))
        theirs.q_proj.bias.copy_(both[1].reshape(2 * E))
        for linear, weight, bias in ((theirs.k_proj, w_k, b_k), (theirs.v_proj, w_v, b_v)):
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        theirs.o_proj.load_state_dict(ours.out_proj.state_dict())
        theirs.q_norm.weight.copy_(ours.qk_norm.q_norm.weight - 1)
        theirs.k_norm.weight.copy_(ours.qk_norm.k_norm.weight - 1)
    for norm in (theirs.q_norm, theirs.k_norm):  # theirs rounds to float32
        norm.forward = lambda x, norm=norm: F.rms_norm(x, (D,), norm.weight + 1, norm.eps)
    still = (torch.ones(N, L, D, dtype=torch.float64), torch.zeros(N, L, D, dtype=torch.float64))
    mask = CAUSAL.expand(N, 1, L, L)
    agree_as_a_whole(ours, lambda x: theirs(x, still, mask)[0], is_causal=True)


def test_differential_is_that_of_diffllama() -> None:
    from transformers import DiffLlamaConfig
    from transformers.models.diffllama.modeling_diffllama import DiffLlamaAttention

    d = D // 2
    config = DiffLlamaConfig(
        hidden_size=E,
        num_attention_heads=2 * H,
        num_key_value_heads=2 * H,
        head_dim=d,
        attention_bias=True,
        rms_norm_eps=1e-5,
        attn_implementation="sdpa",
    )
    theirs = DiffLlamaAttention(config, 3).double()
    mixing = partial(Differential, lambda_init=theirs.lambda_init)
    ours = random(ComposedAttention(E, H, mixing=mixing))
    order = [h * D + m * d + i for m in range(2) for h in range(H) for i in range(d)]
    with torch.no_grad():
        chunks = zip(ours.in_proj_weight.chunk(3), ours.in_proj_bias.chunk(3), strict=True)
        for linear, (weight, bias) in zip(
            (theirs.q_proj, theirs.k_proj, theirs.v_proj), chunks, strict=True
        ):
            linear.weight.copy_(weight[order])
            linear.bias.copy_(bias[order])
        theirs.o_proj.load_state_dict(ours.out_proj.state_dict())
    for m in (0, 1):
        setattr(theirs, f"lambda_q{m + 1}", nn.Parameter(ours.mixing.lambda_q[m].detach()))
        setattr(theirs, f"lambda_k{m + 1}", nn.Parameter(ours.mixing.lambda_k[m].detach()))
    still = (torch.ones(N, L, d, dtype=torch.float64), torch.zeros(N, L, d, dtype=torch.float64))
    x = torch.randn(N, L, E, dtype=torch.float64)
    ours_x, their_x = x.clone().requires_grad_(), x.clone().requires_grad_()
    output = ours(ours_x, ours_x, ours_x, is_causal=True, need_weights=False)[0]
    expected = theirs(their_x, still, CAUSAL.expand(N, 1, L, L))[0]
    # λ is rounded to float32 there.
    assert_close(output, expected, rtol=1e-6, atol=1e-6)
    for one in (output, expected):
        one.square().sum().backward()
    assert_close(ours_x.grad, their_x.grad, rtol=1e-5, atol=1e-5)
    lam = [getattr(theirs, f"lambda_{n}") for n in ("q1", "q2", "k1", "k2")]
    assert_close(
        ours.mixing.lambda_q.grad, torch.stack([x.grad for x in lam[:2]]), rtol=1e-5, atol=1e-4
    )
    assert_close(
        ours.mixing.lambda_k.grad, torch.stack([x.grad for x in lam[2:]]), rtol=1e-5, atol=1e-4
    )


def test_differential_written_out() -> None:
    def paper(module: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        lam = (module.mixing.lambda_q * module.mixing.lambda_k).sum(-1).exp()
        maps = [
            (a @ b.transpose(-1, -2) / math.sqrt(D / 2)).softmax(-1)
            for a, b in zip(q.chunk(2, -1), k.chunk(2, -1), strict=True)
        ]
        heads = (maps[0] - (lam[0] - lam[1] + 0.8) * maps[1]) @ v
        heads = heads / (heads.square().mean(-1, keepdim=True) + 1e-5).sqrt() * (1 - 0.8)
        return heads.transpose(1, 2)

    agree(random(ComposedAttention(E, H, mixing=Differential)), paper)


@pytest.mark.parametrize("is_causal", [True, False])
def test_talking_heads_are_those_of_x_transformers(is_causal: bool) -> None:
    from x_transformers.attend import Attend

    def x_transformers(module: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        attend = Attend(
            heads=H, causal=is_causal, pre_talking_heads=True, post_talking_heads=True
        ).double()
        attend.attn_fn = partial(F.softmax, dim=-1)  # theirs rounds to float32
        before = module.mixing.before - torch.eye(H, dtype=torch.float64)  # theirs is added
        for name, matrix in (("pre", before), ("post", module.mixing.after)):
            conv = getattr(attend, f"{name}_softmax_talking_heads")
            del conv.weight
            conv.weight = matrix[:, :, None, None]
        return attend(q, k, v)[0].transpose(1, 2)

    agree(random(ComposedAttention(E, H, mixing=TalkingHeads)), x_transformers, is_causal=is_causal)


def test_top_k_is_that_of_x_transformers() -> None:
    from x_transformers.attend import Attend

    def x_transformers(module: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return Attend(heads=H, causal=True, sparse_topk=3)(q, k, v)[0].transpose(1, 2)

    module = random(ComposedAttention(E, H, weighting=partial(TopK, k=3)))
    agree(module, x_transformers, is_causal=True)


def test_off_by_one_is_torchs_zero_key() -> None:
    module = random(ComposedAttention(E, H, weighting=OffByOne))
    torchs = nn.MultiheadAttention(E, H, add_zero_attn=True, batch_first=True).double()
    torchs.load_state_dict(module.state_dict())
    padding = torch.zeros(N, L, dtype=torch.bool)
    padding[1, 7:] = True
    call = {"key_padding_mask": padding}
    agree_as_a_whole(module, lambda x: torchs(x, x, x, **call)[0], **call)


WEIGHTINGS: dict[str, tuple[Any, Callable[..., Tensor]]] = {}


def by_hand(weighting: Any) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    def keep(row_of: Callable[..., Tensor]) -> Callable[..., Tensor]:
        WEIGHTINGS[row_of.__name__] = (weighting, row_of)
        return row_of

    return keep


# Each is given the scores of the allowed keys of a query alone, its head, and the weighting.


@by_hand(Sparsemax)
def sparsemax_row(z: Tensor, head: int, module: Any) -> Tensor:
    import entmax

    return entmax.sparsemax(z, dim=-1)


@by_hand(Entmax15)
def entmax15_row(z: Tensor, head: int, module: Any) -> Tensor:
    import entmax

    return entmax.entmax15(z, dim=-1)


@by_hand(AdaptiveEntmax)
def adaptive_entmax_row(z: Tensor, head: int, module: Any) -> Tensor:
    import entmax

    beta = (1 + module.raw_beta[head].exp()).log()
    scale = 1 + beta * math.log(max(2, len(z))) ** module.gamma[head]
    return entmax.entmax15(scale * z, dim=-1)


@by_hand(ScalableSoftmax)
def scalable_softmax_row(z: Tensor, head: int, module: Any) -> Tensor:
    n = torch.tensor(float(len(z)), dtype=torch.float64)
    powers = n ** (module.factor[head] * z)
    return powers / powers.sum()


@by_hand(Sigmoid)
def sigmoid_row(z: Tensor, head: int, module: Any) -> Tensor:
    return 1 / (1 + len(z) * (-z).exp())


@by_hand(StickBreaking)
def stick_breaking_row(z: Tensor, head: int, module: Any) -> Tensor:
    left, taken = torch.ones((), dtype=torch.float64), []
    for share in z.sigmoid().flip(0):
        taken.append(left * share)
        left = left * (1 - share)
    return torch.stack(taken).flip(0)


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_weighting_row_by_row(name: str) -> None:
    """Causal and with padding, against rows of different lengths, each computed alone."""
    weighting, row_of = WEIGHTINGS[name]
    padding = torch.zeros(N, L, dtype=torch.bool)
    padding[1, 8:] = True

    def rows(module: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        heads = []
        for n in range(N):
            for i in range(L):
                seen = [j for j in range(i + 1) if not padding[n, j]]
                for h in range(H):
                    z = (k[n, h, seen] @ q[n, h, i]) / math.sqrt(D)
                    heads.append(row_of(z, h, module.weighting) @ v[n, h, seen])
        return torch.stack(heads).view(N, L, H, D)

    module = random(ComposedAttention(E, H, weighting=weighting))
    agree(module, rows, is_causal=True, key_padding_mask=padding)


def test_cosine_scores() -> None:
    def cosines(module: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = F.cosine_similarity(q.unsqueeze(3), k.unsqueeze(2), dim=-1)
        temperature = module.qk_norm.log_temperature.exp()[:, None, None]
        return ((scores * temperature).softmax(-1) @ v).transpose(1, 2)

    agree(random(ComposedAttention(E, H, qk_norm="cosine")), cosines)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 2, 7, 1009])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 30.0])
def test_sparse_rows_are_those_of_entmax(spread: float, size: int, dtype: torch.dtype) -> None:
    import entmax

    z = spread * torch.randn(5, 3, size, dtype=dtype)
    if size > 2:
        z[0, 0, 1:] = z[0, 0, 0]  # all the same
        z[1, 1, 2:] = -torch.inf
    grad = torch.randn_like(z)
    for ours, theirs in ((sparsemax, entmax.sparsemax), (entmax15, entmax.entmax15)):
        outcomes = []
        for function in (ours, partial(theirs, dim=-1)):
            given = z.clone().requires_grad_()
            weights = function(given)
            weights.backward(grad)
            outcomes.append((weights.detach(), given.grad))
        exact = 1e-10 if dtype == torch.float64 else 2e-5
        for one, other in zip(*outcomes, strict=True):
            assert_close(one, other.nan_to_num(), rtol=exact, atol=exact)
        assert_close(outcomes[0][0].sum(-1), torch.ones(5, 3, dtype=dtype))


@pytest.mark.parametrize("offset", [-1e4, 1e4, 3e8])
def test_sparse_rows_far_from_0_are_as_exact(offset: float) -> None:
    """Only how far scores are from each other matters; float32 holds that, but not their τ."""
    import entmax

    z = (torch.randn(13, 67) + offset).requires_grad_()
    z[3, 5:].detach().fill_(-torch.inf)
    grad = torch.randn(13, 67)
    for ours, theirs in ((sparsemax, entmax.sparsemax), (entmax15, entmax.entmax15)):
        exact = theirs(z.detach().double() - offset, dim=-1)
        weights = ours(z)
        assert_close(weights.double(), exact, rtol=0, atol=1e-6)
        (found,) = torch.autograd.grad(weights, z, grad)
        mapped, back = torch.func.vjp(ours, z.detach())
        assert_close(mapped.double(), exact, rtol=0, atol=1e-6)
        assert_close(back(grad)[0], found, rtol=1e-4, atol=1e-4)


def test_sparse_gradients_are_those_of_differences() -> None:
    z = torch.randn(2, 7, dtype=torch.float64, requires_grad=True)
    for function in (sparsemax, entmax15):
        assert torch.autograd.gradcheck(function, z)


PATTERNS: dict[str, tuple[Any, Callable[[int, int], bool]]] = {
    "window": (Window(num_heads=H, size=3), lambda i, j: -3 < i - j < 3),
    "dilated": (
        DilatedWindow(size=2, dilation=3),
        lambda i, j: i - j in (-3, 0, 3),
    ),
    "global": (GlobalWindow(size=2, global_tokens=2), lambda i, j: -2 < i - j < 2 or min(i, j) < 2),
    "prefix": (Prefix(size=4), lambda i, j: j < 4 or j <= i),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_pair_by_pair(name: str) -> None:
    pattern, allows = PATTERNS[name]
    expected = torch.tensor([[allows(i, j) for j in range(L)] for i in range(L)])
    assert torch.equal(pattern(L, L, torch.device("cpu")), expected)
    assert not expected.all()
    module = ComposedAttention(E, H, pattern=pattern)
    x = torch.randn(N, L, E)
    weights = module(x, x, x)[1]
    assert torch.equal(weights > 0, expected.expand_as(weights))


def test_a_window_a_head() -> None:
    sizes = [1, 2, 3, 4, 5, None]
    pattern = Window(num_heads=H, size=sizes)(L, L, torch.device("cpu"))
    for head, size in enumerate(sizes):
        alone = Window(num_heads=H, size=size or L)(L, L, torch.device("cpu"))
        assert torch.equal(pattern[head], alone)
