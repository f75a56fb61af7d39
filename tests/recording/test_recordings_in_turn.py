"""Recordings that are entered again, that end in any order, in threads; models copied meanwhile."""

import asyncio
import copy
import pickle
import sys
import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mha_lab import record_attention

N, L, E, H = 3, 5, 22, 2


def encoder():
    layer = nn.TransformerEncoderLayer(E, H, 13, batch_first=True)
    return nn.TransformerEncoder(layer, 2).eval()


@pytest.fixture
def x():
    return torch.randn(N, L, E)


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert torch.overrides._get_current_function_mode_stack() == []
    if "torch._dynamo" in sys.modules:
        from torch._dynamo import eval_frame

        assert eval_frame._stance.stance == "default"


def test_a_recording_entered_again_is_another_one(x):
    model, one = encoder(), record_attention(encoder())
    one = record_attention(model, tokens={"*": [["a"] * L] * N})
    with one as first:
        model(x)
    with one as second:
        model(x)
        with one as inner:
            model(x)
    assert [len(first), len(second), len(inner)] == [2, 4, 2]
    assert inner[0].key_tokens == [["a"] * L] * N
    assert second[0].name == "layers.0.self_attn"
    assert "forward" not in vars(model)


def test_as_a_decorator_it_may_be_used_again_too(x):
    model, calls = encoder(), []

    @record_attention(model)
    def run():
        calls.append(len(torch.overrides._get_current_function_mode_stack()))
        model(x)

    run()
    run()
    assert calls == [1, 1]


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_generators_that_end_in_any_order(x, first_to_end):
    def recorded(model):
        with record_attention(model) as maps:
            yield maps

    model = encoder()
    generators = [recorded(model), recorded(model)]
    maps = [next(one) for one in generators]
    with torch.no_grad():
        model(x)
        generators.pop(first_to_end).close()
        ended, going_on = maps.pop(first_to_end), maps[0]
        model(x)
        assert [len(ended), len(going_on)] == [2, 4]
        generators[0].close()
        model(x)
    assert [len(ended), len(going_on)] == [2, 4]
    assert "forward" not in vars(model)


def test_tasks_that_take_turns(x):
    model = encoder()

    async def record(times):
        with record_attention(model) as maps:
            for _ in range(times):
                model(x)
                await asyncio.sleep(0)
        return len(maps)

    async def together():
        return await asyncio.gather(record(1), record(2))

    one, two = asyncio.run(together())  # a mode sees the whole thread: each has its own, at least
    assert one >= 2
    assert two >= 4
    assert "forward" not in vars(model)


def test_threads_record_one_model_at_a_time_each_their_own_calls(x):
    model, lengths = encoder(), []

    def work():
        with record_attention(model) as maps, torch.no_grad():
            for _ in range(3):
                model(x)
        lengths.append(len(maps))

    threads = [threading.Thread(target=work) for _ in range(4)]
    with record_attention(model) as own:
        for thread in threads:
            thread.start()
        model(x)
        for thread in threads:
            thread.join()
    assert lengths == [6] * 4
    assert len(own) == 2
    assert "forward" not in vars(model)


def test_a_recording_that_ends_in_another_thread_is_blind_from_then_on(x):
    model = encoder()
    one = record_attention(model)
    maps = one.__enter__()
    model(x)
    thread = threading.Thread(target=one.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    model(x)
    assert len(maps) == 2
    (left,) = torch.overrides._get_current_function_mode_stack()
    left.leave()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_made_inside_is_a_model_of_its_own(x, copied):
    model = encoder()
    with record_attention(model), torch.no_grad():
        other = copied(model)
        expected = model(x)
    for parameter in other.parameters():
        parameter.data.add_(1)
    with torch.no_grad():
        assert torch.equal(model(x), expected)
        assert not torch.allclose(other(x), expected)
        with record_attention(other) as maps:
            other(x)
    assert len(maps) == 2


def test_a_shared_module_is_chosen_by_any_of_its_paths(x):
    class Shares(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.ModuleDict({"attention": nn.MultiheadAttention(E, H)})
            self.second = self.first

        def forward(self, x):
            for part in (self.first, self.second):
                x = part["attention"](x, x, x)[0]
            return x

    model = Shares()
    for modules in (None, "second", "first.*", "second.attention"):
        with record_attention(model, modules=modules) as maps:
            model(x)
        assert [one.name for one in maps] == ["first.attention", "first.attention#2"]


def test_an_exported_program_made_inside_is_that_of_the_model(x):
    model = encoder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with record_attention(model):
            program = torch.export.export(model, (x,))
    torch.testing.assert_close(program.module()(x), model(x))


class Fused(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x)


class ByHand(nn.Module):
    def forward(self, x):
        return torch.softmax(x @ x.mT, -1) @ x


@torch.jit.script
def scripted_softmax(x: torch.Tensor):
    return torch.softmax(x @ x.transpose(-1, -2), -1) @ x


class CallsScript(nn.Module):
    def forward(self, x):
        return scripted_softmax(x)


def told(model, x, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with record_attention(model, **options):
            model(x)
    return [str(one.message) for one in caught]


def test_scripted_parts_are_told_by_their_names(x):
    traced = torch.jit.trace(Fused(), x)
    model = nn.Sequential(
        Fused(), torch.jit.script(ByHand()), traced, torch.jit.script(nn.Linear(E, E))
    )
    (sentence,) = told(model, x)
    assert "1 attention map" in sentence
    assert "what ran in 1, 2, TorchScript" in sentence
    assert told(model, x, modules="0") == []
    (sentence,) = told(nn.Sequential(CallsScript()), x)
    assert "scripted_softmax in 0, TorchScript" in sentence
    assert told(nn.Sequential(Fused(), torch.jit.script(nn.Linear(E, E))), x) == []
