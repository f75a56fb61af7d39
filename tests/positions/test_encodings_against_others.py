"""Encodings against other libraries, and against the papers' equations written a second time.

Outputs and gradients, to 1e-5 in float32 and 1e-10 in float64; where a library computes in float32
whatever it is given, the second algorithm stands for float64.
"""

import importlib.util
import math
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers import GPTNeoXConfig, T5Config, Wav2Vec2BertConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert
from x_transformers import x_transformers

from mha_lab.positions.alibi import AlibiPositions
from mha_lab.positions.cope import CopePositions
from mha_lab.positions.fire import FirePositions
from mha_lab.positions.forgetting import ForgettingPositions
from mha_lab.positions.hard_alibi import HardAlibiPositions
from mha_lab.positions.nape import NapePositions
from mha_lab.positions.rotary import RotaryPositions
from mha_lab.positions.shaw import ShawPositions
from mha_lab.positions.t5 import T5Positions

N, H, L, D = 2, 3, 11, 14
E = H * D
PLACES = torch.arange(L)
LATER = torch.ones(L, L, dtype=torch.bool).triu(1)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    limit = 1e-5 if dtype == torch.float32 else 1e-10
    return {"atol": limit, "rtol": limit}


def heads(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    q, k = (torch.randn(N, H, L, D, dtype=dtype, requires_grad=True) for _ in range(2))
    return q, k


def agree(ours: Tensor, theirs: Tensor, wanted: list[tuple[Tensor, Tensor]]) -> None:
    """Compare below the diagonal, and the gradients of pairs of tensors (ours, theirs)."""
    limit = tolerance(theirs.dtype)
    ours, theirs = (x.masked_fill(LATER, 0.0) for x in (ours, theirs))
    assert_close(ours, theirs, **limit, check_dtype=False)
    weight = torch.randn_like(theirs)
    made = torch.autograd.grad((ours * weight).sum(), [pair[0] for pair in wanted])
    expected = torch.autograd.grad((theirs * weight).sum(), [pair[1] for pair in wanted])
    for one, other in zip(made, expected, strict=True):
        scale = max(1.0, float(other.abs().max()))  # of what was summed
        assert_close(one / scale, other / scale, **limit)


@pytest.mark.parametrize("num_heads", [1, 2, 3, 8, 11])
def test_alibi_is_blooms_and_the_papers(num_heads: int) -> None:
    bias = AlibiPositions(E, num_heads=num_heads).bias(PLACES, PLACES)
    bloom = build_alibi_tensor(torch.ones(1, L), num_heads, torch.float32)
    scores = torch.randn(num_heads, L, L).masked_fill(LATER, -torch.inf)
    # Bloom's grows with the key alone, which a softmax cannot tell from growing with the distance.
    assert_close((scores + bias).softmax(-1), (scores + bloom).softmax(-1), atol=1e-5, rtol=1e-5)
    theirs = x_transformers.AlibiPositionalBias(num_heads)(L, L)
    assert_close(bias, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("num_heads", "slopes"),
    [(4, [1 / 4, 1 / 16, 1 / 64, 1 / 256]), (3, [1 / 16, 1 / 256, 1 / 4]), (1, [1 / 256])],
)
@DTYPES
def test_alibi_by_hand(num_heads: int, slopes: list[float], dtype: torch.dtype) -> None:
    bias = AlibiPositions(E, num_heads=num_heads).to(dtype).bias(torch.tensor([2]), PLACES)
    expected = [[[-m * abs(2 - j) for j in range(L)]] for m in slopes]
    assert_close(bias, torch.tensor(expected, dtype=dtype), **tolerance(dtype))


def test_alibi_in_half_precision_keeps_its_slopes() -> None:
    whole, half = (AlibiPositions(E, num_heads=11).to(t) for t in (torch.float32, torch.bfloat16))
    far = torch.tensor([3001])
    assert_close(half.bias(far, PLACES), whole.bias(far, PLACES), atol=0, rtol=0)


@DTYPES
def test_nape_by_hand(dtype: torch.dtype) -> None:
    bias = NapePositions(E, num_heads=7).to(dtype).bias(PLACES, PLACES)
    slopes = [1.0, 1 / 2, 1 / 3, 0, 0, 0, 0]
    expected = [[[-m * abs(i - j) for j in range(L)] for i in range(L)] for m in slopes]
    assert_close(bias, torch.tensor(expected, dtype=dtype), **tolerance(dtype))


@pytest.mark.parametrize(("windowed", "expected"), [(None, 3), (2, 2), (5, 5)])
def test_hard_alibi_lets_head_h_see_the_last_h(windowed: int | None, expected: int) -> None:
    bias = HardAlibiPositions(E, num_heads=5, windowed_heads=windowed).bias(PLACES, PLACES)
    for h in range(5):
        for i in range(L):
            seen = {j for j in range(i + 1) if bias[h, i, j] == 0}
            window = range(max(0, i - h), i + 1) if h < expected else range(i + 1)
            assert seen == set(window)
    assert set(bias.unique().tolist()) <= {0.0, -math.inf}


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize(("buckets", "longest"), [(32, 128), (8, 20), (4, 5)])
@DTYPES
def test_t5_is_transformers(
    is_causal: bool, buckets: int, longest: int, dtype: torch.dtype
) -> None:
    config = T5Config(
        d_model=E,
        d_kv=D,
        num_heads=H,
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=longest,
        is_decoder=is_causal,
    )
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).to(dtype)
    ours = T5Positions(
        E, num_heads=H, is_causal=is_causal, num_buckets=buckets, max_distance=longest
    ).to(dtype)
    ours.table.load_state_dict(theirs.relative_attention_bias.state_dict())
    places = torch.arange(307)
    bias, expected = ours.bias(places, places), theirs.compute_bias(307, 307)[0]
    assert_close(bias, expected, **tolerance(dtype))
    weight = torch.rand_like(bias)
    grad, wanted = (
        torch.autograd.grad((made * weight).mean(), table)[0]
        for made, table in (
            (bias, ours.table.weight),
            (expected, theirs.relative_attention_bias.weight),
        )
    )
    assert_close(grad, wanted, **tolerance(dtype))


@pytest.mark.parametrize("fraction", [1.0, 0.6, 0.25])
def test_rotary_is_gpt_neox(fraction: float) -> None:
    config = GPTNeoXConfig(
        hidden_size=E,
        num_attention_heads=H,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 500.0,
            "partial_rotary_factor": 2 * int(fraction * D / 2) / D,
        },
    )
    q, k = heads(torch.float32)
    width = 2 * int(fraction * D / 2)
    cos, sin = modeling_gpt_neox.GPTNeoXRotaryEmbedding(config)(q, PLACES[None] + 5)
    turned = [
        torch.cat([part, x[..., width:]], -1)
        for part, x in zip(
            modeling_gpt_neox.apply_rotary_pos_emb(q[..., :width], k[..., :width], cos, sin),
            (q, k),
            strict=True,
        )
    ]
    ours = RotaryPositions(E, num_heads=H, base=500.0, fraction=fraction)
    made = ours.rotate(q, k, PLACES + 5, PLACES + 5)
    for one, other in zip(made, turned, strict=True):
        assert_close(one, other, **tolerance(torch.float32))
    agree(made[0] @ made[1].mT, turned[0] @ turned[1].mT, [(q, q), (k, k)])


@pytest.mark.parametrize("fraction", [1.0, 0.6])
def test_rotary_is_a_product_of_complex_numbers(fraction: float) -> None:
    q, k = heads(torch.float64)
    half = int(fraction * D) // 2

    def turned(x: Tensor, places: list[int]) -> Tensor:
        rows = []
        for i, p in enumerate(places):
            angles = [p * 70.0 ** (-2 * c / (2 * half)) for c in range(half)]
            unit = torch.tensor([complex(math.cos(a), math.sin(a)) for a in angles])
            row = torch.complex(x[:, :, i, :half], x[:, :, i, half : 2 * half])
            row = row * unit.to(row.dtype)
            rows.append(torch.cat([row.real, row.imag, x[:, :, i, 2 * half :]], -1))
        return torch.stack(rows, 2)

    places = [0, 1, 2, 5, 7, 8, 9, 20, 21, 33, 1001]
    ours = RotaryPositions(E, num_heads=H, base=70.0, fraction=fraction)
    made = ours.rotate(q, k, torch.tensor(places), torch.tensor(places))
    # complex() literals are single precision in torch.tensor unless told; angles are exact here.
    torch.set_default_dtype(torch.float64)
    try:
        expected = turned(q, places) @ turned(k, places).mT
    finally:
        torch.set_default_dtype(torch.float32)
    agree(made[0] @ made[1].mT, expected, [(q, q), (k, k)])


def test_rotary_is_rotary_embedding_torch_in_another_order() -> None:
    from rotary_embedding_torch import RotaryEmbedding

    q, k = heads(torch.float32)
    neighbours = torch.arange(D).view(2, D // 2).t().flatten()  # halves apart -> side by side
    theirs = RotaryEmbedding(dim=D)
    a, b = (theirs.rotate_queries_or_keys(x[..., neighbours]) for x in (q, k))
    made = RotaryPositions(E, num_heads=H).rotate(q, k, PLACES, PLACES)
    assert_close(made[0][..., neighbours], a, **tolerance(torch.float32))
    agree(made[0] @ made[1].mT, a @ b.mT, [(q, q), (k, k)])


@DTYPES
def test_shaw_is_the_relative_key_of_transformers(dtype: torch.dtype) -> None:
    config = Wav2Vec2BertConfig(
        hidden_size=E,
        num_attention_heads=H,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=4,
        right_max_position_embeddings=4,
    )
    theirs = modeling_wav2vec2_bert.Wav2Vec2BertSelfAttention(config).to(dtype)
    ours = ShawPositions(E, num_heads=H, max_distance=4).to(dtype)
    table = theirs.distance_embedding.weight
    ours.table.data.copy_(table.data)
    q, k = heads(dtype)
    bias = ours.score_bias(q, k, torch.empty(0), PLACES, PLACES)
    expected = modeling_wav2vec2_bert._apply_relative_key_position_encoding(theirs, q, k)[1]
    assert_close(bias, expected, **tolerance(dtype))  # after the query too
    agree(bias, expected, [(q, q), (ours.table, table)])


@pytest.mark.parametrize("count", [4, 64])
@DTYPES
def test_cope_is_x_transformers(count: int, dtype: torch.dtype) -> None:
    theirs = x_transformers.CoPE(dim=D, heads=H, max_pos=count).to(dtype)
    torch.nn.init.normal_(theirs.pos_emb)
    ours = CopePositions(E, num_heads=H, max_positions=count).to(dtype)
    ours.table.data.copy_(theirs.pos_emb.data)
    q, k = heads(dtype)
    scores = (q @ k.mT / math.sqrt(D)).masked_fill(LATER, -torch.inf)
    expected = theirs(q, scores)
    made = ours.score_bias(q, k, torch.empty(0), PLACES, PLACES)
    agree(made, expected, [(q, q), (k, k), (ours.table, theirs.pos_emb)])


def test_cope_by_the_papers_equations() -> None:
    q, k = (x.detach()[:1].requires_grad_() for x in heads(torch.float64))
    ours = CopePositions(E, num_heads=H, max_positions=5).double()
    torch.nn.init.normal_(ours.table)
    rows = []
    for n in range(1):
        for h in range(H):
            for i in range(L):
                for j in range(L):
                    p = sum(
                        (
                            torch.sigmoid(q[n, h, i] @ k[n, h, between] / math.sqrt(D))
                            for between in range(j, i + 1)
                        ),
                        torch.zeros((), dtype=torch.float64),
                    ).clamp(max=4)
                    low, high = int(p.floor()), int(p.ceil())
                    e = (p - low) * ours.table[high] + (1 - p + low) * ours.table[low]
                    rows.append(q[n, h, i] @ e)
    expected = torch.stack(rows).view(1, H, L, L)
    made = ours.score_bias(q, k, torch.empty(0), PLACES, PLACES)
    agree(made, expected, [(q, q), (k, k), (ours.table, ours.table)])


def published_fire(ours: FirePositions, length: int, epsilon: float = 1e-6) -> Tensor:
    """The listing of the paper's appendix, in its order."""
    positions = torch.arange(length, dtype=ours.curvature.dtype)
    rel_distance = positions[:, None] - positions[None, :]
    threshold = torch.abs(ours.threshold_factor * ours.threshold)
    pos_normalizer = torch.max(positions, threshold)[:, None]
    rel_distance = torch.log(torch.abs(ours.curvature * rel_distance) + 1)
    pos_normalizer = torch.log(torch.abs(ours.curvature * pos_normalizer) + 1) + epsilon
    return ours.network((rel_distance / pos_normalizer).unsqueeze(-1)).permute(2, 0, 1)


@pytest.mark.parametrize("threshold", [512.0, 6.5])
@DTYPES
def test_fire_is_the_published_listing(threshold: float, dtype: torch.dtype) -> None:
    ours = FirePositions(E, num_heads=H, threshold=threshold).to(dtype)
    parameters = list(ours.parameters())
    agree(ours.bias(PLACES, PLACES), published_fire(ours, L), [(p, p) for p in parameters])


def naive(name: str) -> ModuleType:
    """A plain file of flash-linear-attention, without the kernels that its package imports."""
    origin = importlib.util.find_spec("fla").origin  # type: ignore[union-attr]
    assert origin is not None
    file = Path(origin).parent / "ops" / name / "naive.py"
    spec = importlib.util.spec_from_file_location(f"naive_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_forgetting_is_that_of_fla() -> None:
    ours = ForgettingPositions(E, num_heads=H)
    x, v = torch.randn(N, L, E), torch.randn(N, H, L, D)
    q, k = heads(torch.float32)
    gates = torch.nn.functional.logsigmoid(ours.gate(x))
    by_time = (t.transpose(1, 2) for t in (q, k, v))
    expected = naive("forgetting_attn").naive_forgetting_attn(*by_time, gates).transpose(1, 2)
    scores = q @ k.mT / math.sqrt(D) + ours.score_bias(q, k, x, PLACES, PLACES)
    made = scores.masked_fill(LATER, -torch.inf).softmax(-1) @ v
    assert_close(made, expected, **tolerance(torch.float32))
    wanted = [q, k, *ours.parameters()]
    grads, expected_grads = (
        torch.autograd.grad(y.square().sum(), wanted, retain_graph=True) for y in (made, expected)
    )
    for one, other in zip(grads, expected_grads, strict=True):
        assert_close(one, other, atol=1e-4, rtol=1e-5)


@DTYPES
def test_forgetting_is_x_transformers(dtype: torch.dtype) -> None:
    theirs = x_transformers.DataDependentAlibi(E, H).to(dtype)
    ours = ForgettingPositions(E, num_heads=H).to(dtype)
    ours.gate.load_state_dict(theirs.to_forget_gates[0].state_dict())
    x = torch.randn(N, L, E, dtype=dtype)
    same = SimpleNamespace(shape=(N, H, L, D))
    made = ours.score_bias(same, same, x, PLACES, PLACES)  # type: ignore[arg-type]
    wanted = [
        (ours.gate.weight, theirs.to_forget_gates[0].weight),
        (ours.gate.bias, theirs.to_forget_gates[0].bias),
    ]
    agree(made, theirs(x), wanted)


def test_a_constant_forgetting_gate_is_alibi() -> None:
    ours = ForgettingPositions(E, num_heads=1).double()
    slope = AlibiPositions(E, num_heads=1).double().bias(torch.tensor([1]), torch.tensor([0]))
    torch.nn.init.zeros_(ours.gate.weight)
    ours.gate.bias.data.fill_(float(slope.exp().logit()))
    empty = torch.empty(N, 1, L, D)
    made = ours.score_bias(empty, empty, torch.randn(N, L, E).double(), PLACES, PLACES)
    expected = AlibiPositions(E, num_heads=1).double().bias(PLACES, PLACES).tril()
    assert_close(made, expected.expand(N, 1, L, L), atol=1e-10, rtol=1e-10)
