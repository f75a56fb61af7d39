"""Pooling while computing: the same as pooling the whole map, in memory linear in its length."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from mha_lab.recording import distribution
from mha_lab.recording.calls.scores import Scores
from mha_lab.recording.distribution import attention_distribution
from mha_lab.recording.pooling import pool_map

N, H, L, S, D = 2, 3, 29, 37, 5


@pytest.fixture
def scores():
    return Scores(
        torch.randn(N, H, L, D),
        torch.randn(N, H, S, D),
        scale=0.7,
        biases=(torch.randn(N, 1, L, S),),
        allowed=(torch.rand(1, 1, L, S) > 0.2, torch.rand(N, 1, 1, S) > 0.1),
        is_causal=True,
    )


@pytest.mark.parametrize("block_elements", [1, 500, 2**22])
@pytest.mark.parametrize("max_size", [1, 7, 29, 31, 37])
@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("average", [False, True])
def test_pooled_in_blocks(scores, monkeypatch, block_elements, max_size, pool, average):
    monkeypatch.setattr(distribution, "_BLOCK_ELEMENTS", block_elements)
    whole = attention_distribution(scores)
    if average:
        whole = whole.mean(1, keepdim=True)
    pooled = F.adaptive_avg_pool2d if pool == "mean" else F.adaptive_max_pool2d
    expected = pooled(whole, (min(L, max_size), min(S, max_size)))
    visited = []
    result = attention_distribution(
        scores,
        average_heads=average,
        max_size=max_size,
        pool=pool,
        visit=lambda block, start: visited.append((start, block)),
    )
    assert_close(result, expected)
    if max_size < S:
        assert [start for start, _ in visited] == list(
            range(0, L, max(1, block_elements // (N * H * S)))
        )
        assert_close(torch.cat([block for _, block in visited], dim=2), whole)


def test_blocks_of_a_pooled_map_by_hand():
    whole = torch.arange(16.0).view(1, 1, 4, 4)
    assert pool_map(whole, 2, "mean")[0, 0].tolist() == [[2.5, 4.5], [10.5, 12.5]]
    assert pool_map(whole, 2, "max")[0, 0].tolist() == [[5.0, 7.0], [13.0, 15.0]]
    assert pool_map(whole, 4, "max") is whole


MEASURE = """
import re, sys, torch, torch.nn.functional as F
from torch import nn
from mha_lab import record_attention

class Sdpa(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, is_causal=True)

def peak():
    # Not getrusage: its maximum is also that of the process that started this one.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024

length, module = int(sys.argv[1]), Sdpa()
q, k = torch.randn(1, 1, length, 8), torch.randn(1, 1, length, 8)
with torch.no_grad():
    module(q[:, :, :512], k[:, :, :512])
    with record_attention(module, max_size=128) as maps:
        module(q[:, :, :512], k[:, :, :512])
    module(q, k)
    before = peak()
    with record_attention(module, max_size=128, values=True) as maps:
        module(q, k)
    after = peak()
one, block = maps[0], length // 128
assert one.weights.shape == (1, 1, 128, 128)
assert one.size == (length, length)
assert one.value_norms.shape == (1, 1, length)
assert set(one.scores()) >= {"entropy", "previous_token"}
# The last row of blocks by hand: its queries' weights, the mean of each block.
last = (q[0, 0, -block:] @ k[0, 0].T / 8**0.5).masked_fill(
    torch.ones(block, length, dtype=torch.bool).triu(length - block + 1), -torch.inf
).softmax(-1)
by_hand = last.view(block, 128, block).mean((0, 2))
torch.testing.assert_close(one.weights[0, 0, -1], by_hand, rtol=1e-3, atol=1e-9)
print(after - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
def test_32768_tokens_in_memory_linear_in_length():
    """The whole map would take 4 GiB; 16 MiB a block of scores, a few times over, is allowed."""
    used = {
        length: float(
            subprocess.run(
                [sys.executable, "-c", MEASURE, str(length)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for length in (8192, 32768)
    }
    print(used)
    assert used[32768] < 256
    assert used[32768] < 4.2 * used[8192] + 16
