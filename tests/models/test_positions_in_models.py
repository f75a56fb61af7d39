"""How encodings reach models: by the embeddings, inside self-attention, or by the float mask."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from mha_lab import MultiheadAttention, record_attention
from mha_lab.attention.composed import ComposedAttention
from mha_lab.attention.functional import attention_weights
from mha_lab.models.blocks import DecoderBlock, EncoderBlock
from mha_lab.models.decoder import Decoder
from mha_lab.models.embedding import TokenEmbedding
from mha_lab.models.encoder import Encoder
from mha_lab.models.encoder_decoder import EncoderDecoder
from mha_lab.models.positioned import place
from mha_lab.models.sequences import causal_mask
from mha_lab.positions import LearnedPositions, NoPositions, SinusoidalPositions
from mha_lab.positions.alibi import AlibiPositions
from mha_lab.positions.cope import CopePositions
from mha_lab.positions.fire import FirePositions
from mha_lab.positions.forgetting import ForgettingPositions
from mha_lab.positions.hard_alibi import HardAlibiPositions
from mha_lab.positions.nape import NapePositions
from mha_lab.positions.rotary import RotaryPositions
from mha_lab.positions.shaw import ShawPositions
from mha_lab.positions.t5 import T5Positions
from mha_lab.tasks.vocabulary import Vocabulary

N, S, T, E, H, V = 3, 11, 7, 20, 4, 17
BUILTIN = partial(nn.MultiheadAttention, batch_first=True)
ATTENTIONS = pytest.mark.parametrize(
    "attention", [BUILTIN, MultiheadAttention], ids=["builtin", "custom"]
)
BIASES = [AlibiPositions, NapePositions, HardAlibiPositions, T5Positions, FirePositions]
MODELS = [Encoder, Decoder, EncoderDecoder]


def make(model: type, position, attention=MultiheadAttention, **options) -> nn.Module:
    sizes = {"embed_dim": E, "num_heads": H, "num_layers": 2, **options}
    return model(V, attention=attention, position=position, **sizes)


def sequences(width: int) -> torch.Tensor:
    ids = torch.randint(5, V, (N, width))
    ids[:, -1] = Vocabulary.EOS
    ids[1, width - 2 :] = torch.tensor([Vocabulary.EOS, Vocabulary.PAD])
    return ids


def self_attentions(model: nn.Module) -> dict[str, nn.Module]:
    return {n: m for n, m in model.named_modules() if n.endswith("self_attn")}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("position", [LearnedPositions, SinusoidalPositions, NoPositions])
@pytest.mark.filterwarnings("ignore:an encoder without positions")
def test_encodings_of_embeddings_are_made_as_ever(model, position) -> None:
    """The same random numbers in the same order, under the same names, as before others came."""
    torch.manual_seed(5)
    made = make(model, position)
    assert not [n for n, _ in made.named_parameters() if "layers" in n and "position" in n]
    torch.manual_seed(5)
    attention = {"attention": MultiheadAttention}
    expected = nn.Module()
    if model is not Decoder:
        expected.encoder = nn.Module()
        expected.encoder.layers = nn.ModuleList(EncoderBlock(E, H, **attention) for _ in range(2))
        expected.encoder.norm = nn.LayerNorm(E)
    if model is not Encoder:
        block = EncoderBlock if model is Decoder else DecoderBlock
        expected.decoder = nn.Module()
        expected.decoder.layers = nn.ModuleList(block(E, H, **attention) for _ in range(2))
        expected.decoder.norm = nn.LayerNorm(E)
    if model is EncoderDecoder:
        expected.source_embedding = TokenEmbedding(V, E, position=position)
        expected.target_embedding = TokenEmbedding(V, E, position=position)
    else:
        expected.embedding = TokenEmbedding(V, E, position=position)
    expected.output = nn.Linear(E, V)
    named = dict(expected.named_parameters())
    assert list(named) == [n for n, _ in made.named_parameters()]
    for name, parameter in made.named_parameters():
        assert torch.equal(parameter, named[name]), name


def test_a_factory_of_embeddings_alone_goes_on_working() -> None:
    class Mine(nn.Module):
        def forward(self, embeddings):
            return embeddings * 2

    model = make(Encoder, lambda embed_dim: Mine())
    assert isinstance(model.embedding.position, Mine)
    assert model(sequences(S), sequences(S)).shape == (N, S, V)


@pytest.mark.parametrize("position", BIASES)
@ATTENTIONS
@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
def test_a_bias_is_added_to_the_scores(position, attention, mode) -> None:
    places = place(position, E, H, is_causal=True)
    block = EncoderBlock(E, H, attention=attention, is_causal=True, encoding=places.layers)
    block.train(mode == "train")
    x = torch.randn(N, S, E)
    with torch.set_grad_enabled(mode != "no_grad"), record_attention(block) as maps:
        output = block(x, attn_mask=causal_mask(S, x.device), is_causal=True)
    y = block.self_residual.norm(x)
    q, k, v = nn.functional.linear(
        y, block.self_attn.in_proj_weight, block.self_attn.in_proj_bias
    ).chunk(3, -1)
    q, k, v = (t.unflatten(-1, (H, E // H)).transpose(1, 2) for t in (q, k, v))
    bias = block.position.bias(torch.arange(S), torch.arange(S))
    scores = q @ k.mT / (E // H) ** 0.5 + bias
    weights = attention_weights(scores.masked_fill(causal_mask(S, x.device), -torch.inf))
    x = x + block.self_attn.out_proj((weights @ v).transpose(1, 2).flatten(2))
    x = x + block.feedforward(block.feedforward_residual.norm(x))
    assert_close(output, x, atol=1e-5, rtol=1e-5)
    # What is shown is what was applied.
    assert [m.name for m in maps] == ["self_attn"]
    assert_close(maps[0].weights, weights.detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("position", BIASES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.filterwarnings("error")
def test_builtin_and_custom_agree(position, model) -> None:
    if position is HardAlibiPositions and model is not Decoder:
        pytest.skip("causal only")
    nets = [make(model, position, attention) for attention in (BUILTIN, MultiheadAttention)]
    nets[1].load_state_dict(nets[0].state_dict())
    source, target = sequences(S), sequences(S if model is Encoder else T)
    if model is Encoder:
        target = source
    logits = [net(source, target) for net in nets]
    real = target != Vocabulary.PAD
    assert_close(logits[1][real], logits[0][real], atol=1e-5, rtol=1e-5)
    for made in logits:
        made[real].square().sum().backward()
    for (name, one), (_, other) in zip(*(net.named_parameters() for net in nets), strict=True):
        if one.grad is None:
            continue
        scale = max(1.0, float(one.grad.abs().max()))
        assert_close(other.grad / scale, one.grad / scale, atol=1e-5, rtol=1e-5, msg=name)


@pytest.mark.parametrize("position", [AlibiPositions, T5Positions])
@ATTENTIONS
def test_cross_attention_gets_no_position(position, attention) -> None:
    net = make(EncoderDecoder, position, attention).eval()
    source = sequences(S)
    with record_attention(net) as maps:
        net(source, sequences(T))
    for cross in (m for m in maps if m.name.endswith("cross_attn")):
        module = net.get_submodule(cross.name)
        assert not hasattr(module, "position")
    # The memory in another order: cross-attention tells no order, so the output is the same.
    block, x, memory = net.decoder.layers[0], torch.randn(N, T, E), torch.randn(N, S, E)
    mask = causal_mask(T, x.device)
    outputs = [block(x, m, attn_mask=mask, is_causal=True) for m in (memory, memory.flip(1))]
    assert_close(outputs[1], outputs[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("position", "is_shared"), [(T5Positions, True), (AlibiPositions, True), (FirePositions, False)]
)
def test_shared_by_the_layers_as_its_source_has_it(position, is_shared) -> None:
    net = make(EncoderDecoder, position)
    first, second = (layer.position for layer in net.decoder.layers)
    assert (first is second) == is_shared
    assert first is not net.encoder.layers[0].position
    if position is T5Positions:
        assert first.is_causal
        assert not net.encoder.layers[0].position.is_causal
    assert len(list(net.parameters())) == len({id(p) for p in net.parameters()})


@pytest.mark.parametrize(
    "position", [RotaryPositions, ShawPositions, CopePositions, ForgettingPositions]
)
@ATTENTIONS
def test_what_reads_inside_attention_needs_one_that_lets_it_in(position, attention) -> None:
    said = f"{position.__name__} acts on .* lets nothing in; choose attention=composed, or a posit"
    with pytest.raises(ValueError, match=said):
        make(Decoder, position, attention)


@pytest.mark.parametrize("position", [HardAlibiPositions, CopePositions, ForgettingPositions])
@pytest.mark.parametrize("model", [Encoder, EncoderDecoder])
def test_causal_encodings_are_refused_where_the_future_is_seen(position, model) -> None:
    with pytest.raises(ValueError, match=r"needs a causal mask; choose model=decoder, or position"):
        make(model, position)


def test_attention_that_takes_an_encoding_is_handed_one() -> None:
    class Takes(nn.MultiheadAttention):
        def __init__(self, *sizes, dropout, position=None):
            super().__init__(*sizes, dropout=dropout, batch_first=True)
            self.position = position

    net = make(EncoderDecoder, RotaryPositions, Takes)
    handed = [m.position for m in self_attentions(net).values()]
    assert [type(p) for p in handed] == [RotaryPositions] * 4
    assert handed[0] is handed[1]
    assert handed[1] is not handed[2]
    assert net.decoder.layers[0].cross_attn.position is None
    net = make(Decoder, ShawPositions, Takes)
    one, other = (m.position for m in self_attentions(net).values())
    assert one is not other
    assert isinstance(make(Decoder, LearnedPositions, Takes).embedding.position, LearnedPositions)


@pytest.mark.parametrize("position", [AlibiPositions, NapePositions, T5Positions, FirePositions])
def test_longer_than_ever_met(position) -> None:
    net = make(Decoder, position).eval()
    source = torch.randint(5, V, (1, 150))
    source[:, -1] = Vocabulary.EOS
    assert net(source, source).isfinite().all()


def test_heads_that_do_not_divide_are_told_before_the_encoding_is_made() -> None:
    with pytest.raises(ValueError, match="embed_dim must be divisible by num_heads"):
        make(Decoder, RotaryPositions, num_heads=3)
    with pytest.raises(ValueError, match="num_heads must be at least 1, got 0"):
        make(Decoder, RotaryPositions, num_heads=0)


@pytest.mark.parametrize("model", [Decoder, EncoderDecoder, partial(Encoder, is_causal=True)])
@pytest.mark.filterwarnings("error")
def test_other_models_need_no_positions(model) -> None:
    make(model, NoPositions)


def test_an_encoder_that_is_told_no_positions_is_told_of() -> None:
    with pytest.warns(UserWarning, match=r"equal tokens .* equal outputs.*choose position=learned"):
        net = make(Encoder, NoPositions)
    source = sequences(S)
    source[0, :4] = torch.tensor([5, 6, 5, 7])
    logits = net(source, source)
    assert_close(logits[0, 0], logits[0, 2])  # the warning is right


@pytest.mark.parametrize(
    "position",
    [RotaryPositions, ShawPositions, CopePositions, ForgettingPositions, *BIASES],
)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_what_composed_shows_is_what_it_applied(position, mode) -> None:
    places = place(position, E, H, is_causal=True)
    block = EncoderBlock(
        E, H, attention=ComposedAttention, is_causal=True, encoding=places.layers
    ).train(mode == "train")
    module = block.self_attn
    for parameter in module.position.parameters():
        nn.init.normal_(parameter)  # some start at 0 and would show nothing
    x, at = torch.randn(N, S, E), torch.arange(S)
    with record_attention(block) as maps:
        output = block(x, attn_mask=causal_mask(S, x.device), is_causal=True)
    y = block.self_residual.norm(x)
    q, k, v = nn.functional.linear(y, module.in_proj_weight, module.in_proj_bias).chunk(3, -1)
    q, k, v = (t.unflatten(-1, (H, E // H)).transpose(1, 2) for t in (q, k, v))
    bias = 0.0
    if hasattr(module.position, "rotate"):
        q, k = module.position.rotate(q, k, at, at)
    elif hasattr(module.position, "bias"):
        bias = module.position.bias(at, at)
    else:
        bias = module.position.score_bias(q, k, y, at, at)
    scores = q @ k.mT / (E // H) ** 0.5 + bias
    weights = attention_weights(scores.masked_fill(causal_mask(S, x.device), -torch.inf))
    assert [m.name for m in maps] == ["self_attn"]
    assert_close(maps[0].weights, weights.detach(), atol=1e-5, rtol=1e-5)
    x = x + module.out_proj((weights @ v).transpose(1, 2).flatten(2))
    x = x + block.feedforward(block.feedforward_residual.norm(x))
    assert_close(output, x, atol=1e-5, rtol=1e-5)
