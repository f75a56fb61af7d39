"""Our module under what people put around modules: compilers, exporters, adapters, processes."""

import copy
import socket
import warnings

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

from mha_lab import MultiheadAttention, swap_attention

N, L, S, E, H = 2, 5, 7, 6, 3


def make(**options):
    module = MultiheadAttention(E, H, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    query, memory = torch.randn(N, L, E), torch.randn(N, S, E)
    return module, (query, memory, memory)


def masks(kind):
    padding = torch.zeros(N, S, dtype=torch.bool)
    padding[-1] = True
    padding[0, -1] = True
    band = torch.zeros(L, S).masked_fill(torch.rand(L, S) < 0.3, -torch.inf)
    return {
        "none": {},
        "padding": {"key_padding_mask": padding},
        "causal": {"is_causal": True},
        "all": {"key_padding_mask": padding, "attn_mask": band, "is_causal": True},
    }[kind]


MASKS = pytest.mark.parametrize("kind", ["none", "padding", "causal", "all"])
WEIGHTS = pytest.mark.parametrize("need_weights", [True, False])


class Call(nn.Module):
    """The module with the arguments that are no tensors fixed, as an exporter wants it."""

    def __init__(self, module, **fixed) -> None:
        super().__init__()
        self.module = module
        self.fixed = fixed

    def forward(self, query, memory, padding=None, attn_mask=None):
        masks = {"key_padding_mask": padding, "attn_mask": attn_mask}
        results = self.module(query, memory, memory, **masks, **self.fixed)
        return results if self.fixed["need_weights"] else results[0]


# Compilers


def check_compiled(backend, kind, need_weights):
    # The gradient of a key's bias is 0 in exact arithmetic: what is left is the rounding of what
    # was summed, which only double precision puts far below the tolerance.
    module, inputs = make()
    module, inputs = module.double(), [x.double() for x in inputs]
    given = masks(kind) | {"need_weights": need_weights}
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    results = []
    for run in (module, compiled):
        module.zero_grad()
        output, weights = run(*inputs, **given)
        loss = output.square().sum() + (weights.square().sum() if need_weights else 0)
        loss.backward()
        results.append((output, weights, *(p.grad.clone() for p in module.parameters())))
    assert_close(results[1], results[0], rtol=1e-5, atol=1e-5)


@MASKS
@WEIGHTS
def test_compile_in_one_graph(kind, need_weights):
    torch._dynamo.reset()
    check_compiled("aot_eager", kind, need_weights)


@pytest.mark.slow
@MASKS
@WEIGHTS
def test_compile_with_inductor(kind, need_weights):
    torch._dynamo.reset()
    check_compiled("inductor", kind, need_weights)


# Exporters


def exported_call(is_masked, need_weights):
    module, (query, memory, _) = make()
    call = Call(module.eval(), need_weights=need_weights, is_causal=not is_masked)
    given = masks("all") if is_masked else {}
    args = (query, memory, given.get("key_padding_mask"), given.get("attn_mask"))
    return call, args if is_masked else args[:2]


def dynamic(is_masked):
    batch, length, size = (torch.export.Dim(name, min=2, max=64) for name in ("N", "L", "S"))
    shapes = [{0: batch, 1: length}, {0: batch, 1: size}]
    return tuple(shapes + [{0: batch, 1: size}, {0: length, 1: size}] * is_masked)


def others(is_masked):
    """Inputs of another batch and other lengths."""
    n, length, size = 3, 11, 13
    padding = torch.rand(n, size) < 0.4
    padding[0] = True
    band = torch.zeros(length, size).masked_fill(torch.rand(length, size) < 0.3, -torch.inf)
    inputs = torch.randn(n, length, E), torch.randn(n, size, E)
    return (*inputs, padding, band) if is_masked else inputs


@pytest.mark.parametrize("is_masked", [False, True])
@WEIGHTS
def test_export_with_dynamic_batch_and_lengths(is_masked, need_weights):
    call, args = exported_call(is_masked, need_weights)
    program = torch.export.export(call, args, dynamic_shapes=dynamic(is_masked))
    for inputs in (args, others(is_masked)):
        assert_close(program.module()(*inputs), call(*inputs), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("is_masked", [False, True])
@WEIGHTS
def test_onnx_with_dynamic_batch_and_lengths(is_masked, need_weights, tmp_path):
    import onnxruntime

    call, args = exported_call(is_masked, need_weights)
    path = tmp_path / "attention.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            call, args, path, dynamo=True, dynamic_shapes=dynamic(is_masked), verbose=False
        )
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for inputs in (args, others(is_masked)):
        names = [each.name for each in session.get_inputs()]
        feed = {name: x.numpy() for name, x in zip(names, inputs, strict=True)}
        wanted = call(*inputs)
        for got, want in zip(
            session.run(None, feed), wanted if need_weights else [wanted], strict=True
        ):
            assert_close(torch.from_numpy(got), want.detach(), rtol=1e-4, atol=1e-5)


# Half precision


@pytest.mark.parametrize("tracing_mode", ["real", "fake", "symbolic"])
@MASKS
@WEIGHTS
def test_traced_with_values(tracing_mode, kind, need_weights):
    module, inputs = make()
    given = masks(kind) | {"need_weights": need_weights}

    def call(*inputs):
        return [x for x in module(*inputs, **given) if x is not None]

    with torch.no_grad():
        traced = make_fx(call, tracing_mode=tracing_mode, _allow_non_fake_inputs=True)(*inputs)
        assert_close(traced(*inputs), call(*inputs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@MASKS
@WEIGHTS
def test_autocast(dtype, kind, need_weights):
    module, inputs = make()
    exact, exact_weights = module(*inputs, **masks(kind))
    torch.manual_seed(0)
    module, inputs = make()
    with torch.autocast("cpu", dtype):
        output, weights = module(*inputs, **masks(kind), need_weights=need_weights)
    assert output.dtype == dtype
    assert_close(output.float(), exact, rtol=0.05, atol=0.08)
    if need_weights:
        assert_close(weights.float(), exact_weights, rtol=0.05, atol=0.08)
    output.float().square().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.dtype == p.dtype for p in module.parameters())


# The module's parts


def test_out_proj_is_called_as_a_module():
    module, inputs = make()
    seen = []
    module.out_proj.register_forward_hook(lambda _, args, output: seen.append(output))
    for need_weights in (True, False):
        output, _ = module.eval()(*inputs, need_weights=need_weights)
        assert seen.pop() is output
    module.out_proj = nn.Sequential(module.out_proj, nn.Tanh())
    assert_close(module(*inputs)[0], output.tanh())


def test_a_loss_on_the_weights_trains():
    module, (query, memory, _) = make()
    wanted = torch.eye(L, S)[None, None].expand(N, H, L, S)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        _, weights = module(query, memory, memory)
        losses.append((weights - wanted).square().mean())
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 3
    assert module.out_proj.weight.grad is None or not module.out_proj.weight.grad.any()


def encoder():
    layer = nn.TransformerEncoderLayer(12, 2, 17, dropout=0.0, batch_first=True)
    return swap_attention(nn.TransformerEncoder(layer, 1))


class Block(nn.Module):
    """The least that people write around an attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = MultiheadAttention(12, 2)

    def forward(self, x):
        return x + self.attn(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize(
    ("build", "targets"),
    [
        (encoder, {"target_modules": ["out_proj"]}),
        (Block, {"target_modules": ["out_proj"]}),
        (Block, {"target_modules": [], "target_parameters": ["attn.in_proj_weight"]}),
        (Block, {"target_modules": ["out_proj"], "target_parameters": ["attn.in_proj_weight"]}),
    ],
    ids=["out_proj in torch's encoder", "out_proj", "in_proj_weight", "both"],
)
def test_lora_of_peft_trains(build, targets):
    from peft import LoraConfig, get_peft_model

    stock = build()
    x, target = torch.randn(N, L, 12), torch.randn(N, L, 12)
    before = stock(x)
    model = get_peft_model(copy.deepcopy(stock), LoraConfig(r=2, **targets))
    assert_close(model(x), before)  # an adapter starts as nothing
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained
    assert all("lora_" in name for name in trained)
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=0.02)
    losses = []
    for _ in range(30):
        losses.append((model(x) - target).square().mean())
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.97 * losses[0]
    for name, p in model.named_parameters():
        assert (p.grad is not None and p.grad.any()) == (name in trained), name
    adapted = model.eval()(x)
    assert not torch.allclose(adapted, before, atol=1e-3)
    assert_close(model.merge_and_unload()(x), adapted, rtol=1e-4, atol=1e-5)


# Processes


def _train_on_one_of_two(rank, port, path):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
    )
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Block())
    x = torch.randn(4, L, 12)[rank * 2 : rank * 2 + 2]
    model(x).square().mean().backward()
    if rank == 0:
        torch.save([p.grad for p in model.parameters()], path)
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_get_the_gradients_of_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = tmp_path / "gradients.pt"
    torch.multiprocessing.spawn(_train_on_one_of_two, (port, path), nprocs=2)
    torch.manual_seed(0)
    model = Block()
    model(torch.randn(4, L, 12)).square().mean().backward()
    wanted = [p.grad for p in model.parameters()]
    assert_close(torch.load(path), wanted)
