import itertools

import pytest
import torch

from mha_lab.tasks.sequence_space import SequenceSpace, even_shares
from mha_lab.tasks.splits import is_in


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def lengths_of(rows: torch.Tensor) -> torch.Tensor:
    return (rows != 0).sum(1)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_members_are_all_sequences_of_the_split(length: int) -> None:
    space = SequenceSpace(1, 3, 7)
    everything = torch.tensor(list(itertools.product(range(5, 12), repeat=length)))
    for split in ("train", "validation", "test"):
        members = space.members(split, length)
        assert members.shape[1] == 3
        expected = {tuple(row) for row in everything[is_in(split, everything)].tolist()}
        assert {tuple(row[:length]) for row in members.tolist()} == expected
        assert len(members) == len(expected)


def test_draw_keeps_lengths_and_split() -> None:
    space = SequenceSpace(2, 11, 10)
    lengths = torch.randint(2, 12, (5003,), generator=generator())
    for split in ("train", "validation", "test"):
        rows = space.draw(split, lengths, generator())
        assert torch.equal(lengths_of(rows), lengths)
        assert is_in(split, rows).all()
        symbols = rows[rows != 0]
        assert symbols.min() == 5
        assert symbols.max() == 14


def test_symbols_of_training_are_uniform() -> None:
    rows = SequenceSpace(4, 4, 3).draw("train", torch.full((30011,), 4), generator())
    members = SequenceSpace(4, 4, 3).members("train", 4)
    _, counts = torch.unique(rows, dim=0, return_counts=True)
    expected = len(rows) / len(members)
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert len(counts) == len(members)
    assert chi_square < len(members) + 5 * (2 * len(members)) ** 0.5


def test_sample_is_distinct_mixed_and_even() -> None:
    space = SequenceSpace(1, 10, 10)
    rows = space.sample("test", 2000, generator())
    assert rows.shape == (2000, 10)
    assert is_in("test", rows).all()
    assert len(torch.unique(rows, dim=0)) == 2000
    counts = lengths_of(rows).bincount(minlength=11)[1:]
    few = [len(space.members("test", n)) for n in (1, 2, 3)]
    assert counts[:3].tolist() == few  # all there are
    assert counts[3:].max() - counts[3:].min() <= 1
    assert not torch.equal(lengths_of(rows), lengths_of(rows).sort().values)


def test_sample_of_a_large_share_of_a_large_space_ends() -> None:
    # 3^11 = 177147 sequences, too many to list; 5535 of them may be asked for.
    space = SequenceSpace(11, 11, 3)
    rows = space.sample("validation", 5535, generator())
    assert len(torch.unique(rows, dim=0)) == 5535
    assert len(space.sample("validation", 10**6, generator())) == 5535


def test_sample_of_a_small_space_is_all_of_it() -> None:
    space = SequenceSpace(1, 3, 7)
    rows = space.sample("validation", 1000, generator())
    assert len(rows) == sum(len(space.members("validation", n)) for n in (1, 2, 3))


def test_lengths_without_a_member_are_left_out() -> None:
    space = SequenceSpace(1, 4, 2)
    for split in ("train", "validation", "test"):
        expected = [n for n in (1, 2, 3, 4) if len(space.members(split, n))]
        assert space.lengths(split).tolist() == expected
    assert space.lengths("validation").tolist() != [1, 2, 3, 4]


def test_a_space_too_small_to_split_is_refused() -> None:
    with pytest.raises(ValueError, match=r"split is empty: vocab_size=1.* 2 sequences.*raise voc"):
        [SequenceSpace(1, 2, 1).lengths(split) for split in ("train", "validation", "test")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0, 3, 5), "min_length must be at least 1, got 0"),
        ((4, 3, 5), "max_length=3 and min_length=4"),
        ((1, 3, 0), "vocab_size must be at least 1, got 0"),
    ],
)
def test_arguments_are_checked(arguments: tuple[int, int, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SequenceSpace(*arguments)


@pytest.mark.parametrize(
    ("size", "room", "shares"),
    [
        (10, {1: 1, 2: 3, 3: 99}, {1: 1, 2: 3, 3: 6}),
        (11, {1: 99, 2: 2, 3: 99}, {1: 4, 2: 2, 3: 5}),
        (5, {1: 0, 2: 3}, {1: 0, 2: 3}),
        (2, {1: 9, 2: 9, 3: 9}, {1: 0, 2: 1, 3: 1}),
    ],
)
def test_even_shares(size: int, room: dict[int, int], shares: dict[int, int]) -> None:
    assert even_shares(size, room) == shares
