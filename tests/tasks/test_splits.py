"""The hash that decides what is trained on and what is tested."""

import subprocess
import sys

import pytest
import torch

from mha_lab.tasks.splits import batch_seed, is_in, sequence_hash

MASK = 2**64 - 1


def splitmix(value: int) -> int:
    """SplitMix64 in Python's own integers, from the paper."""
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def reference_hash(ids: list[int]) -> int:
    return splitmix(sum(id_ * (splitmix(i + 1) | 1) for i, id_ in enumerate(ids)) & MASK)


def test_splitmix_reference_is_the_published_generator() -> None:
    # The first outputs of SplitMix64 from seed 1234567, as published with its C source.
    assert splitmix(1234567) == 6457827717110365317
    assert splitmix(1234567 + 0x9E3779B97F4A7C15) == 3203168211198807973


def test_hash_agrees_with_plain_integers() -> None:
    rows = torch.randint(5, 1000, (13, 7))
    expected = [reference_hash(row) for row in rows.tolist()]
    assert sequence_hash(rows).tolist() == expected


def test_padding_does_not_count() -> None:
    short, long = torch.tensor([[5, 7]]), torch.tensor([[5, 7, 0, 0, 0]])
    assert sequence_hash(short) == sequence_hash(long)


def test_hash_depends_on_order_and_length() -> None:
    rows = torch.tensor([[5, 7, 0], [7, 5, 0], [5, 7, 5], [5, 0, 0]])
    assert len(set(sequence_hash(rows).tolist())) == 4


def test_each_sequence_is_in_one_split() -> None:
    rows = torch.randint(5, 15, (10007, 5))
    counts = sum(is_in(split, rows).int() for split in ("train", "validation", "test"))
    assert (counts == 1).all()


@pytest.mark.parametrize("vocab_size", [2, 3, 10, 101])
@pytest.mark.parametrize("length", [4, 11])
def test_a_sixteenth_each_is_held_out(vocab_size: int, length: int) -> None:
    rows = torch.unique(torch.randint(5, 5 + vocab_size, (20011, length)), dim=0)
    n = len(rows)
    spread = 5 * (n * 15 / 256) ** 0.5  # five standard deviations
    for split in ("validation", "test"):
        assert abs(int(is_in(split, rows).sum()) - n / 16) < spread


@pytest.mark.slow
def test_split_is_the_same_in_another_process() -> None:
    code = (
        "import torch; from mha_lab.tasks.splits import sequence_hash;"
        "print(sequence_hash(torch.arange(5, 17).view(3, 4)).tolist())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    expected = [reference_hash(row) for row in torch.arange(5, 17).view(3, 4).tolist()]
    assert outputs == {f"{expected}\n"}


def test_batch_seeds_differ() -> None:
    # 32 bits are what torch's CPU generator uses of a seed.
    seeds = {batch_seed(seed, index) & 0xFFFFFFFF for seed in range(10) for index in range(500)}
    assert len(seeds) == 5000
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert batch_seed(2**32 - 1, 10**9) >= 0
