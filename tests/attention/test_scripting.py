"""torch.jit.script says in one sentence that it cannot, and what can."""

import pytest
import torch
from torch import nn

from mha_lab import MultiheadAttention


@pytest.mark.parametrize("inside", [False, True])
def test_script_names_the_ways_that_work(inside):
    module = MultiheadAttention(16, 4)
    with pytest.raises(TypeError, match=r"^MultiheadAttention cannot be compiled by torch\.jit"):
        torch.jit.script(nn.Sequential(module) if inside else module)


def test_its_twin_is_scripted():
    module = MultiheadAttention(16, 4, average_attn_weights=True)
    x = torch.randn(3, 5, 16)
    torch.testing.assert_close(torch.jit.script(module.to_torch())(x, x, x)[0], module(x, x, x)[0])
