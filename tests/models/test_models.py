"""What every model promises: causality, padding that does not matter, greedy = teacher-forced."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from mha_lab import MultiheadAttention
from mha_lab.models.decoder import Decoder, join
from mha_lab.models.encoder import Encoder
from mha_lab.models.encoder_decoder import EncoderDecoder
from mha_lab.models.recurrent import Recurrent
from mha_lab.models.sequences import causal_mask, padding_mask, shift_right
from mha_lab.positions import LearnedPositions
from mha_lab.tasks.vocabulary import Vocabulary

N, S, T, E, H, V = 5, 11, 7, 21, 3, 17
PAD, BOS, EOS, SEP = Vocabulary.PAD, Vocabulary.BOS, Vocabulary.EOS, Vocabulary.SEP
BUILTIN = partial(nn.MultiheadAttention, batch_first=True)
MODELS = [Encoder, Decoder, EncoderDecoder, Recurrent]
CAUSAL = [Decoder, EncoderDecoder, Recurrent]


class ThirdParty(nn.MultiheadAttention):
    """Takes the call at its word: a plain softmax over what the masks leave, no safe kernel."""

    def __init__(self, embed_dim, num_heads, *, dropout):
        super().__init__(embed_dim, num_heads, dropout=dropout, batch_first=True)

    def forward(self, *args, need_weights, is_causal=False, **masks):
        output, _ = super().forward(*args, need_weights=True, **masks)
        return output, None


ATTENTIONS = {"builtin": BUILTIN, "custom": MultiheadAttention, "third_party": ThirdParty}


def make(model, attention="custom", **options):
    options = {"embed_dim": E, "num_layers": 2, **options}
    if model.uses_attention:
        options = {
            "num_heads": H,
            "attention": ATTENTIONS[attention],
            "position": LearnedPositions,
            **options,
        }
    return model(V, **options)


def every_model(models=MODELS):
    cases = [(m, a) for m in models for a in ATTENTIONS if m.uses_attention or a == "custom"]
    ids = [f"{m.__name__}-{a}" if m.uses_attention else m.__name__ for m, a in cases]
    return pytest.mark.parametrize(("model", "attention"), cases, ids=ids)


def rows(lengths, width):
    """Random rows of so many symbols, each with its <eos>, padded to the width."""
    ids = torch.randint(5, V, (len(lengths), width))
    column, length = torch.arange(width), torch.tensor(lengths)[:, None]
    return ids.masked_fill(column == length, EOS).masked_fill(column > length, PAD)


@pytest.fixture
def source():
    return rows([10, 6, 9, 7, 8], S)


@pytest.fixture
def target():
    return rows([4, 6, 0, 5, 3], T)


@every_model()
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_logits_and_gradients(model, attention, norm, source, target):
    options = {"norm": norm, "activation": "gelu"} if model.uses_attention else {}
    net = make(model, attention, dropout=0.1, **options)
    logits = net(source, target)
    assert logits.shape == (N, T, V)
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


@every_model(CAUSAL)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_later_token_never_changes_an_earlier_output(model, attention, mode, source):
    net = make(model, attention).train(mode == "train")
    target = rows([6] * N, T)
    before = net(source, target)
    for t in range(T):
        changed = target.clone()
        changed[:, t] = (target[:, t] + 1 - 5) % (V - 5) + 5
        after = net(source, changed)
        assert_close(after[:, : t + 1], before[:, : t + 1], rtol=0, atol=1e-6)
        if t + 1 < T:
            assert (after[:, t + 1] - before[:, t + 1]).abs().amax(-1).min() > 1e-4


@every_model()
def test_every_output_depends_on_every_source_token(model, attention, source, target):
    net = make(model, attention).double().eval()
    before = net(source, target)
    changed = source.clone()
    changed[:, 2] = (source[:, 2] + 1 - 5) % (V - 5) + 5
    assert (net(changed, target) - before).abs().amax(-1).min() > 1e-9


@every_model()
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_batch_mates_do_not_matter(model, attention, mode, source, target):
    net = make(model, attention).train(mode == "train")
    with torch.set_grad_enabled(mode == "train"):
        together = net(source, target)
        for n in range(N):
            s, t = (int((ids[n] != PAD).sum()) for ids in (source, target))
            alone = net(source[n : n + 1, :s], target[n : n + 1, :t])
            assert_close(together[n, :t], alone[0], rtol=1e-5, atol=1e-5)


@every_model()
def test_more_padding_does_not_matter(model, attention, source, target):
    net = make(model, attention)
    wider = net(nn.functional.pad(source, (0, 3)), nn.functional.pad(target, (0, 2)))
    real = target != PAD
    assert_close(wider[:, :T][real], net(source, target)[real], rtol=1e-5, atol=1e-5)


@every_model()
def test_what_padding_is_embedded_as_does_not_matter(model, attention, source, target):
    net = make(model, attention)
    real = target != PAD
    before = net(source, target)[real]
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.Embedding) and module.num_embeddings == V:
                module.weight[PAD] = 1e3
    assert_close(net(source, target)[real], before, rtol=1e-5, atol=1e-5)


@every_model()
@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
def test_an_empty_row_spreads_no_nan(model, attention, mode, source, target):
    net = make(model, attention).train(mode == "train")
    with torch.set_grad_enabled(mode != "no_grad"):
        expected = net(source, target)
        source, target = source.clone(), target.clone()
        source[1], target[1] = PAD, PAD
        logits = net(source, target)
    others = [0, 2, 3, 4]
    assert_close(logits[others], expected[others], rtol=1e-5, atol=1e-5)
    assert logits.isfinite().all()
    if mode != "no_grad":
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
        loss.backward()
        assert all(p.grad.isfinite().all() for p in net.parameters())


@every_model()
def test_generate_is_what_teacher_forcing_predicts(model, attention, source):
    net = make(model, attention, dropout=0.5)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(3)  # outputs that differ from row to row
    for _ in range(100):  # make <eos> ever more likely, until some rows end before others
        with torch.no_grad():
            net.output.bias[EOS] += 0.2
        output = net.generate(source, max_length=T)
        if len(set((output != PAD).sum(1).tolist())) > 1:
            break
    else:
        pytest.fail("no rows of different lengths")
    assert net.training, "generate must leave the mode as it was"
    assert torch.equal(output, net.generate(source, max_length=T)), "no dropout when generating"
    net.eval()
    forced = net(source, output).argmax(-1)
    ends = (output == EOS).cumsum(1) - (output == EOS).int()
    before_end = ends == 0
    assert torch.equal(output[before_end], forced[before_end])
    assert (output[~before_end] == PAD).all()


@every_model()
def test_generate_stops_when_all_rows_have_ended(model, attention, source):
    net = make(model, attention)
    with torch.no_grad():
        net.output.bias[EOS] = 1e3
    assert net.generate(source, max_length=T).tolist() == [[EOS]] * N
    with pytest.raises(ValueError, match="max_length must be at least 1, got 0"):
        net.generate(source, max_length=0)


def test_join_writes_source_sep_target_without_gaps():
    source = torch.tensor([[5, 6, 7, EOS], [8, EOS, PAD, PAD], [PAD] * 4])
    target = torch.tensor([[7, EOS, PAD], [9, 10, EOS], [PAD] * 3])
    expected = [
        [5, 6, 7, SEP, 7, EOS],
        [8, SEP, 9, 10, PAD, PAD],
        [SEP, PAD, PAD, PAD, PAD, PAD],
    ]
    assert join(source, target).tolist() == expected


def test_decoder_reads_its_logits_where_the_target_is_predicted(source, target):
    net = make(Decoder)
    logits = net(source, target)
    row = [*source[1, :6].tolist(), SEP, *target[1, :3].tolist()]
    x = net.embedding(torch.tensor([row]))
    mask = torch.ones(10, 10, dtype=torch.bool).triu(1)
    by_hand = net.output(net.decoder(x, attn_mask=mask, is_causal=True))
    assert_close(logits[1, :4], by_hand[0, 6:10], rtol=1e-5, atol=1e-5)


def test_encoder_sees_both_directions_and_no_target(source, target):
    net = make(Encoder)
    before = net(source, target)
    assert_close(net(source, target.flip(0)), before)
    changed = source.clone()
    changed[:, 5] = (source[:, 5] + 1 - 5) % (V - 5) + 5
    assert (net(changed, target)[:, 0] - before[:, 0]).abs().amax(-1).min() > 1e-6


def test_encoder_refuses_a_target_longer_than_its_source(source):
    net = make(Encoder)
    for target in (rows([S] * N, S + 1), rows([9] * N, S)):
        with pytest.raises(ValueError, match=r"model=encoder .* choose model=encoder_decoder or"):
            net(source, target)


def test_causal_mask():
    expected = [[False, True, True], [False, False, True], [False, False, False]]
    assert causal_mask(3, torch.device("cpu")).tolist() == expected


def test_shift_right_and_padding_mask():
    ids = torch.tensor([[5, 6, EOS], [7, EOS, PAD], [PAD, PAD, PAD]])
    assert shift_right(ids).tolist() == [[BOS, 5, 6], [BOS, 7, EOS], [BOS, PAD, PAD]]
    assert padding_mask(ids).tolist() == [
        [False, False, False],
        [False, False, True],
        [False, True, True],
    ]


@pytest.mark.parametrize("model", [Encoder, Decoder, EncoderDecoder])
def test_attention_axes_name_every_attention_call(model, source, target):
    from fnmatch import fnmatch

    from mha_lab import record_attention

    net = make(model)
    axes = net.attention_axes(source, target)
    with record_attention(net) as maps:
        net(source, target)
    kinds = {Encoder: 1, Decoder: 1, EncoderDecoder: 3}
    assert len(axes) == kinds[model]
    assert len(maps) == 2 * kinds[model]
    for map_ in maps:
        (fitting,) = [ids for glob, ids in axes.items() if fnmatch(map_.name, glob)]
        assert tuple(map_.weights.shape) == (N, H, fitting[0].size(1), fitting[1].size(1))


def test_recurrent_has_no_attention_axes(source, target):
    assert make(Recurrent).attention_axes(source, target) == {}


def test_module_names():
    names = {name for name, _ in make(EncoderDecoder).named_modules()}
    assert {
        "encoder.layers.0.self_attn",
        "encoder.layers.1.self_attn",
        "decoder.layers.0.self_attn",
        "decoder.layers.0.cross_attn",
    } <= names
    assert "decoder.layers.0.self_attn" in dict(make(Decoder).named_modules())
    assert "encoder.layers.0.self_attn" in dict(make(Encoder).named_modules())


@pytest.mark.parametrize(("embed_dim", "num_layers"), [(64, 1), (64, 3), (128, 2), (31, 1)])
def test_recurrent_has_about_as_many_parameters(embed_dim, num_layers):
    def count(net):
        return sum(p.numel() for p in net.parameters())

    options = {"embed_dim": embed_dim, "num_layers": num_layers}
    reference = make(EncoderDecoder, "builtin", num_heads=1, position=nn.Identity, **options)
    assert count(make(Recurrent, **options)) == pytest.approx(count(reference), rel=0.02)


def test_parameter_count_of_the_transformer():
    net = make(EncoderDecoder, "builtin", num_layers=1)
    attention, linear = 4 * E * (E + 1), E * 4 * E + 4 * E + 4 * E * E + E
    norms = 2 * E
    blocks = (attention + linear + 2 * norms) + (2 * attention + linear + 3 * norms)
    ends = 2 * (V + 256) * E + 2 * norms + (E + 1) * V
    assert sum(p.numel() for p in net.parameters()) == blocks + ends


@pytest.mark.parametrize("model", [Encoder, Decoder, EncoderDecoder])
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"embed_dim": 10}, r"embed_dim=10 and num_heads=3"),
        ({"embed_dim": 0}, "embed_dim must be at least 1, got 0"),
        ({"num_heads": 0}, "num_heads must be at least 1, got 0"),
        ({"num_layers": 0}, "num_layers must be at least 1, got 0"),
        ({"feedforward_dim": 0}, "feedforward_dim must be at least 1, got 0"),
        ({"dropout": 1.5}, r"dropout must be in \[0, 1\), got 1.5"),
        ({"norm": "mid"}, "norm must be one of pre, post, got 'mid'"),
        ({"activation": "tanh"}, "activation must be one of relu, gelu, got 'tanh'"),
    ],
)
def test_what_cannot_be_built_is_refused_in_a_sentence(model, attention, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(model, attention, **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"embed_dim": 0}, "embed_dim must be at least 1, got 0"),
        ({"num_layers": -1}, "num_layers must be at least 1, got -1"),
        ({"hidden_dim": 0}, "hidden_dim must be at least 1, got 0"),
        ({"dropout": -0.5}, r"dropout must be in \[0, 1\), got -0.5"),
    ],
)
def test_what_recurrent_refuses(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(Recurrent, **options)


def test_a_layer_stack_starts_with_different_weights():
    first, second = make(EncoderDecoder).encoder.layers
    assert not torch.equal(first.self_attn.in_proj_weight, second.self_attn.in_proj_weight)


@every_model()
@pytest.mark.slow
def test_compiled_equals_eager(model, attention, source, target):
    net = make(model, attention)
    # One graph, except for the LSTM, which needs the lengths on the CPU.
    compiled = torch.compile(net, backend="aot_eager", fullgraph=model.uses_attention)
    assert_close(compiled(source, target), net(source, target), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_compiled_to_machine_code_trains_as_eager(source, target):
    net = make(EncoderDecoder, num_layers=1)
    expected = torch.autograd.grad(net(source, target).logsumexp(-1).sum(), net.parameters())
    compiled = torch.compile(net, fullgraph=True)
    actual = torch.autograd.grad(compiled(source, target).logsumexp(-1).sum(), net.parameters())
    assert_close(actual, expected, rtol=1e-3, atol=1e-4)
