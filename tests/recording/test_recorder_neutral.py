"""The recorder changes nothing, keeps nothing, and says so when it recorded nothing."""

import gc
import subprocess
import sys
import warnings
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from mha_lab import record_attention

N, L, E, H = 3, 5, 22, 2


class Block(nn.Module):
    """Attention with dropout, of torch and of plain code."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(E, H, dropout=0.3, batch_first=True)
        self.plain = Plain()

    def forward(self, x):
        return self.plain(self.attention(x, x, x, need_weights=False)[0])


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(E, 3 * E)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, H, -1)).permute(2, 0, 3, 1, 4)
        dropout = 0.3 if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout).transpose(1, 2).flatten(2)


def train_step(model, x):
    torch.manual_seed(7)
    model.zero_grad()
    output = model(x)
    output.square().mean().backward()
    state = torch.get_rng_state()
    return output.detach(), [p.grad.clone() for p in model.parameters()], state


def test_outputs_gradients_and_random_state_are_bit_for_bit_the_same():
    model, x = Block(), torch.randn(N, L, E)
    output, gradients, state = train_step(model, x)
    with record_attention(model, softmax=True, max_size=2) as maps:
        output2, gradients2, state2 = train_step(model, x)
    assert len(maps) == 2
    assert torch.equal(output, output2)
    assert torch.equal(state, state2)
    for a, b in zip(gradients, gradients2, strict=True):
        assert torch.equal(a, b)


def snapshot(model):
    """Everything of the modules that a recorder could leave something in."""
    return [
        (
            name,
            module.training,
            dict(module.__dict__)["_forward_hooks"].copy(),
            sorted(module.__dict__),
        )
        for name, module in model.named_modules()
    ]


def test_nothing_is_left_on_the_model_even_after_an_exception():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(E, H, 13, batch_first=True), 2)
    encoder.layers[1].eval()
    before = snapshot(encoder)
    maps = []

    def run_and_raise():
        with record_attention(encoder) as recorded:
            maps.append(recorded)
            encoder(torch.randn(N, L, E))
            raise KeyError

    with pytest.raises(KeyError):
        run_and_raise()
    assert snapshot(encoder) == before
    encoder(torch.randn(N, L, E))
    assert len(maps[0]) == 2
    assert torch.overrides._get_current_function_mode_stack() == []


def test_an_exception_in_the_model_is_the_models_own():
    module = nn.MultiheadAttention(E, H)
    with pytest.raises(AssertionError, match="embedding dimension"), record_attention(module):
        module(*[torch.randn(L, N, 3)] * 3)


def test_a_forward_of_the_users_own_is_put_back():
    layer = nn.MultiheadAttention(E, H, batch_first=True).eval()
    layer.forward = own = lambda *args, **kwargs: nn.MultiheadAttention.forward(
        layer, *args, **kwargs
    )
    x = torch.randn(N, L, E)
    with torch.no_grad(), record_attention(layer) as maps:
        layer(x, x, x)
    assert layer.forward is own
    assert len(maps) == 1


def test_nested_and_repeated_use():
    model, x = Block().eval(), torch.randn(N, L, E)
    with torch.no_grad():
        expected = model(x)
        with record_attention(model) as outer:
            model(x)
            with record_attention(model, modules="plain") as inner:
                output = model(x)
            model(x)
    names = ["attention", "plain"]
    assert [one.name for one in outer] == [
        *names,
        "attention#2",
        "plain#2",
        "attention#3",
        "plain#3",
    ]
    assert [one.name for one in inner] == ["plain"]
    assert torch.equal(inner[0].weights, outer[3].weights)
    assert torch.equal(output, expected)
    with record_attention(model) as again:
        model(x)
    assert [one.name for one in again] == names


def test_two_models_are_kept_apart():
    a, b, x = Block(), Block(), torch.randn(N, L, E)
    with record_attention(a) as of_a, record_attention(b) as of_b:
        a(x)
        b(b(x))
    assert len(of_a) == 2
    assert len(of_b) == 4


def test_nothing_is_kept_alive():
    model, x = Block(), torch.randn(N, L, E)
    with record_attention(model, softmax=True) as maps:
        output = model(x)
    died = [weakref.ref(model), weakref.ref(x), weakref.ref(output), weakref.ref(model.attention)]
    del model, x, output
    gc.collect()
    assert [reference() for reference in died] == [None] * 4
    for one in maps:
        # The storage is that of the chosen weights alone.
        assert one.weights.untyped_storage().nbytes() == one.weights.numel() * 4


def test_weights_do_not_change_when_the_model_changes_its_own():
    class InPlace(nn.Module):
        def forward(self, x):
            weights = (x @ x.mT).softmax(-1)
            output = weights @ x
            weights.mul_(0.5)
            return output

    x = torch.randn(N, L, E)
    module = InPlace()
    with record_attention(module, softmax=True) as maps:
        module(x)
    assert_close(maps[0].weights[:, 0], (x @ x.mT).softmax(-1))


# --- what is chosen ---------------------------------------------------------------------------


def test_samples_heads_and_averages():
    model, x = Block().eval(), torch.randn(7, L, E)
    with record_attention(model) as whole:
        model(x)
    with record_attention(model, samples=3, heads=[1]) as part:
        model(x)
    with record_attention(model, samples=[6, 0], average_heads=True) as averaged:
        model(x)
    with record_attention(model, samples=99, heads=99) as most:
        model(x)
    assert torch.equal(part[0].weights, whole[0].weights[:3, [1]])
    assert (part[0].samples, part[0].heads) == ((0, 1, 2), (1,))
    assert_close(averaged[1].weights, whole[1].weights[[6, 0]].mean(1, keepdim=True))
    assert (averaged[1].samples, averaged[1].heads) == ((6, 0), None)
    assert most[0].weights.shape == whole[0].weights.shape


@pytest.mark.parametrize(
    ("modules", "names"),
    [
        (
            "encoder",
            ["encoder.0.attention", "encoder.0.plain", "encoder.1.attention", "encoder.1.plain"],
        ),
        ("encoder.*.plain", ["encoder.0.plain", "encoder.1.plain"]),
        ("0.attention", ["encoder.0.attention"]),
        (["decoder.plain", "*1.plain"], ["encoder.1.plain", "decoder.plain"]),
    ],
)  # fmt: skip
def test_modules(modules, names):
    model = nn.ModuleDict({"encoder": nn.Sequential(Block(), Block()), "decoder": Block()})
    with record_attention(model, modules=modules) as maps:
        model["decoder"](model["encoder"](torch.randn(N, L, E)))
    assert [one.name for one in maps] == names


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"modules": "decoder"}, ValueError, r"modules='decoder' matches no module.*attention"),
        ({"modules": 3}, TypeError, "modules=3"),
        ({"samples": 0}, ValueError, "samples=0 must be at least 1"),
        ({"samples": True}, TypeError, "samples=True must be an int"),
        ({"samples": [-1]}, ValueError, "counted from 0"),
        ({"samples": []}, ValueError, "at least one"),
        ({"heads": [0.5]}, TypeError, "must hold ints"),
        ({"heads": "all"}, TypeError, "heads='all'"),
        ({"max_size": 0}, ValueError, "max_size=0 must be at least 1"),
        ({"pool": "sum"}, ValueError, "pool='sum' must be 'mean' or 'max'"),
    ],
)
def test_options_that_cannot_be(options, error, match):
    with pytest.raises(error, match=match), record_attention(Block(), **options):
        pass


def test_a_model_that_is_none():
    with pytest.raises(TypeError, match=r"needs a torch\.nn\.Module"), record_attention(len):
        pass


def test_a_sample_or_head_that_a_call_lacks():
    model = Block()
    sentence = r"samples=\[9\].*'attention'.*samples 0 to 2"
    with pytest.raises(ValueError, match=sentence), record_attention(model, samples=[9]):
        model(torch.randn(N, L, E))
    sentence = r"heads=\[2\].*heads 0 to 1"
    with pytest.raises(ValueError, match=sentence), record_attention(model, heads=[2]):
        model(torch.randn(N, L, E))


# --- wrappers: compile, checkpoint ------------------------------------------------------------


def test_checkpointed_layers_are_recorded_once():
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x):
            return checkpoint(self.block, x, use_reentrant=False)

    model = Checkpointed()
    with record_attention(model) as maps:
        model(torch.randn(N, L, E)).sum().backward()
    assert [one.name for one in maps] == ["block.attention", "block.plain"]


@pytest.mark.parametrize("how", ["function", "method", "inside"])
def test_compiled_models_run_uncompiled_while_they_are_recorded(how):
    model, x, compilations = Block().eval(), torch.randn(N, L, E), []

    def backend(graph, inputs):
        compilations.append(1)
        return graph.forward

    target = model
    if how == "function":
        target = torch.compile(model, backend=backend)
    elif how == "method":
        model.compile(backend=backend)
    else:
        model.plain = torch.compile(model.plain, backend=backend)
    expected = target(x)
    before = len(compilations)
    assert before > 0
    with record_attention(target) as maps:
        output = target(x)
    assert [one.name for one in maps] == ["attention", "plain"]
    assert_close(output, expected)
    target(x)
    assert len(compilations) == before


@pytest.mark.slow
def test_a_model_that_is_compiled_inside_the_block_is_not_silently_empty():
    code = """
import sys, warnings, torch
from torch import nn
from mha_lab import record_attention
assert "torch._dynamo" not in sys.modules
model, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(2, 3, 8)
with warnings.catch_warnings(record=True) as caught, record_attention(model) as maps:
    torch.compile(model, backend="eager")(x, x, x)
print(len(maps), [str(w.message) for w in caught if "was recorded" in str(w.message)])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("1 []") or "no attention" in run.stdout


# --- when nothing was recorded ----------------------------------------------------------------


def record(model, *args, **options):
    with record_attention(model, **options) as maps:
        if args:
            model(*args)
    return maps


def why_empty(model, *args, **options):
    with pytest.warns(UserWarning, match="no attention of") as caught:
        assert record(model, *args, **options) == []
    return str(caught[0].message)


def test_reasons_why_nothing_was_recorded():
    class Softmax(nn.Module):
        def forward(self, x):
            return (x @ x.mT).softmax(-1) @ x

    x = torch.randn(N, L, E)
    assert "it was not called" in why_empty(Block())
    assert "1 softmax multiplied with values by hand, in Softmax" in why_empty(Softmax(), x)
    assert "flash_attn" in why_empty(nn.Linear(E, 3), x)
    assert "modules=" in why_empty(Block(), x, modules="plain.qkv")
    assert "TorchScript" in why_empty(torch.jit.trace(Plain().eval(), x), x)
    assert "meta" in why_empty(Block().to("meta"), x.to("meta"))


def test_attention_outside_of_the_model_is_not_the_models():
    other, x = Block(), torch.randn(N, L, E)
    warned = pytest.warns(UserWarning, match="none of its modules")
    with warned, record_attention(nn.Linear(3, 3)) as maps:
        other(x)
    assert maps == []


def test_an_exception_is_not_followed_by_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError), record_attention(Block()):
            raise KeyError


# --- functions of our own, and modules that are called in other ways --------------------------


def test_a_function_that_says_its_weights_is_recorded():
    def attend(q, k, v):
        if torch.overrides.has_torch_function((q, k, v)):
            return torch.overrides.handle_torch_function(attend, (q, k, v), q, k, v)
        return attend.attention_weights(q, k, v) @ v

    attend.attention_weights = lambda q, k, v: (
        (q @ k.mT).square() / (q @ k.mT).square().sum(-1, True)
    )

    class Own(nn.Module):
        def forward(self, x):
            return attend(x, x, x)

    x, module = torch.randn(N, H, L, 11), Own()
    with record_attention(module, samples=2, max_size=3, softmax=True) as maps:
        output = module(x)
    weights = attend.attention_weights(x, x, x)
    assert_close(output, weights @ x)
    assert_close(maps[0].weights, F.adaptive_avg_pool2d(weights[:2], (3, 3)))
    assert len(maps) == 1


def test_forward_that_is_called_directly_and_functional_call():
    model, x = Block(), torch.randn(N, L, E)
    with record_attention(model) as maps:
        model.attention.forward(x, x, x)
        torch.func.functional_call(model, dict(model.named_parameters()), (x,))
    assert [one.name for one in maps] == ["attention", "attention#2", "plain"]
    assert [one.kind for one in maps] == ["self"] * 3


@pytest.mark.parametrize("is_padded", [True, False])
def test_hooks_inside_an_encoder_fire_once(is_padded):
    layer = nn.TransformerEncoderLayer(6, 2, 7, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(3, 5, 6)
    padding = torch.arange(5) >= torch.tensor([[5], [3], [2]]) if is_padded else None
    fired = []
    handles = [
        model.layers[0].linear1.register_forward_hook(lambda *_: fired.append("linear1")),
        model.layers[1].register_forward_pre_hook(lambda *_: fired.append("layer")),
        model.layers[1].self_attn.register_forward_hook(lambda *_: fired.append("attention")),
    ]
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        unwatched = list(fired)
        fired.clear()
        with record_attention(model) as maps:
            output = model(x, src_key_padding_mask=padding)
    assert fired == unwatched == ["linear1", "layer", "attention"]
    assert [one.name for one in maps] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert torch.equal(output, expected)
    assert len(handles) == 3
