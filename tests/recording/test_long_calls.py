"""A long call is recorded in memory linear in its length."""

import subprocess
import sys

import pytest

MEASURED = """
import resource
import torch
import torch.nn.functional as F
from torch import nn
from mha_lab import record_attention

class Attention(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

x = torch.randn(1, 1, 24_576, 4)
with record_attention(Attention(), max_size=128):
    Attention()(x[:, :, :200])
model = Attention()
model(x)
before = peak()
with record_attention(model, max_size=128) as maps:
    model(x)
assert maps[0].size == (24_576, 24_576)
print(peak() - before)
"""


@pytest.mark.slow
def test_a_long_call_needs_a_tenth_of_its_map():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURED], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert float(run.stdout) < 24_576**2 * 4 / 2**20 / 10  # MiB
