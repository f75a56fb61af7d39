"""Operators that compile themselves, cond, while_loop, map, scan and flex_attention, in a block."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mha_lab import record_attention

FRESH = """
import sys, torch, torch.nn.functional as F
from torch import nn
from mha_lab import record_attention

def attend(x):
    return F.scaled_dot_product_attention(x, x, x)

class Cond(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() < 1e9, attend, torch.sin, (x,))

class Loop(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop
        start = (torch.tensor(0), x)
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, attend(x)), start)[1]

class Map(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.map import map
        return map(attend, x)

class Flex(nn.Module):
    def forward(self, x):
        from torch.nn.attention.flex_attention import flex_attention
        return flex_attention(x, x, x)

model, x = globals()[sys.argv[1]](), torch.randn(2, 3, 5, 7)
assert "torch._dynamo" not in sys.modules
finders = list(sys.meta_path)
with record_attention(model) as maps:
    output = model(x)
assert sys.meta_path == finders
assert "torch._dynamo" in sys.modules
assert torch._dynamo.eval_frame._stance.stance == "default"
assert torch.equal(output, model(x))
print(len(maps))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("model", "calls"), [("Cond", 1), ("Loop", 3), ("Map", 2), ("Flex", 1)])
def test_operators_that_compile_themselves_answer_as_unrecorded(model, calls):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FRESH, model], capture_output=True, text=True
    )
    assert run.stdout.split() == [str(calls)], run.stderr[-2000:]


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(7, 7)

    def forward(self, x, is_first):
        def attend(x):
            return F.scaled_dot_product_attention(x, x, x)

        return torch.cond(is_first, attend, lambda x: x * 2, (self.inner(x),))


@pytest.mark.parametrize("is_first", [True, False])
def test_only_the_branch_that_runs_is_recorded(is_first):
    model, x = Branches().requires_grad_(False), torch.randn(2, 3, 5, 7)
    expected = model(x, torch.tensor(is_first))
    with record_attention(model) as maps:
        output = model(x, torch.tensor(is_first))
    assert torch.equal(output, expected)
    assert len(maps) == is_first


def test_with_a_gradient_they_answer_as_unrecorded_and_are_recorded():
    model, x = Branches(), torch.randn(2, 3, 5, 7)
    first = torch.tensor(True)
    expected = model(x, first)
    (gradient,) = torch.autograd.grad(expected.sum(), model.inner.weight)
    with record_attention(model) as maps:
        output = model(x, first)
    assert torch.equal(output, expected)
    assert torch.equal(torch.autograd.grad(output.sum(), model.inner.weight)[0], gradient)
    inner = model.inner(x)
    (one,) = maps
    torch.testing.assert_close(one.weights, (inner @ inner.mT / 7**0.5).softmax(-1))


class Each(nn.Module):
    """The samples of a batch one by one."""

    def __init__(self, how):
        super().__init__()
        self.inner = nn.Linear(7, 7)
        self.how = how

    def attend(self, x):
        x = self.inner(x)
        return F.scaled_dot_product_attention(x, x, x)

    def forward(self, x):
        if self.how == "map":
            from torch._higher_order_ops.map import map

            return map(self.attend, x)
        from torch._higher_order_ops.scan import scan

        return scan(lambda carry, x: (carry + 1, self.attend(x)), torch.zeros(1), x)[1]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["map", "scan"])
@pytest.mark.parametrize("learns", [False, True])
def test_each_step_of_map_and_scan_is_recorded(how, learns):
    model, x = Each(how).requires_grad_(learns), torch.randn(2, 3, 5, 7)
    expected = model(x)
    with record_attention(model) as maps:
        output = model(x)
    assert torch.equal(output, expected)
    if learns:
        weight = model.inner.weight
        gradient, other = (torch.autograd.grad(y.sum(), weight)[0] for y in (expected, output))
        assert torch.equal(gradient, other)
    inner = model.inner(x)
    weights = torch.stack([one.weights[:, 0] for one in maps])
    torch.testing.assert_close(weights, (inner @ inner.mT / 7**0.5).softmax(-1))
