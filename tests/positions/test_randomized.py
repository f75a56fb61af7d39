"""Positions that are drawn: by ``randomized``, and by an offset into a learned table."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from mha_lab.positions import LearnedPositions, NoPositions, SinusoidalPositions
from mha_lab.positions.alibi import AlibiPositions
from mha_lab.positions.cope import CopePositions
from mha_lab.positions.drawn import Drawn
from mha_lab.positions.fire import FirePositions
from mha_lab.positions.randomized import randomized
from mha_lab.positions.rotary import RotaryPositions
from mha_lab.positions.shaw import ShawPositions

E, H, L = 12, 2, 5
PLACES = torch.arange(L)


def test_training_draws_increasing_positions_from_the_whole_range() -> None:
    drawn = Drawn(17, L)  # no longer sequence: as in the paper, L of 17
    seen = torch.zeros(17)
    for _ in range(400):
        (positions,) = drawn(PLACES)
        assert (positions.diff() > 0).all()
        assert 0 <= positions[0] <= positions[-1] < 17
        seen[positions] += 1
    # Each position is as likely as another: 400 · 5 / 17 = 118 times, within 5 standard deviations.
    assert ((seen - 400 * L / 17).abs() < 5 * (400 * (L / 17) * (1 - L / 17)) ** 0.5).all()


def test_training_draws_dense_and_wide_ones() -> None:
    drawn = Drawn(101, 50)
    rows = torch.stack([drawn(PLACES)[0] for _ in range(400)])
    assert (rows.diff() > 0).all()
    # The last of 5 among n of 101 is about 5 · 102 / (n + 1): 10 for n = 50, 85 for n = 5.
    assert rows[:, -1].min() <= 10
    assert rows[:, -1].max() >= 85


def test_queries_and_keys_of_one_call_share_the_draw() -> None:
    drawn = Drawn(101, 11)
    for _ in range(10):
        q, k = drawn(torch.tensor([3, 4]), PLACES)
        assert_close(q, k[3:])


def test_evaluation_spreads_evenly_and_agrees_with_itself() -> None:
    drawn = Drawn(100, 11).eval()
    assert drawn(PLACES)[0].tolist() == [0, 9, 18, 27, 36]
    assert drawn(torch.tensor([10]))[0].item() < 100
    assert drawn(PLACES[:3])[0].tolist() == [0, 9, 18]  # a later token moves no earlier one


@pytest.mark.parametrize(
    "encoding", [SinusoidalPositions, AlibiPositions, RotaryPositions, ShawPositions, FirePositions]
)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_encoding_inside_is_told_what_is_drawn(encoding, mode) -> None:
    made = randomized(E, num_heads=H, encoding=encoding, positions=23, max_length=11)
    made.train(mode == "train")
    x, q, k = torch.randn(3, L, E), torch.randn(3, H, L, 6), torch.randn(3, H, L, 6)
    inner, state = made.encoding, torch.get_rng_state()
    (at,) = made.drawn(PLACES)
    torch.set_rng_state(state)
    assert (made.acts_on, made.is_shared) == (inner.acts_on, getattr(inner, "is_shared", True))
    if made.acts_on == "embeddings":
        assert_close(made(x), inner(x, at))
    elif made.acts_on == "queries and keys":
        assert_close(made.rotate(q, k, PLACES, PLACES), inner.rotate(q, k, at, at))
    elif hasattr(inner, "bias"):
        assert not hasattr(made, "score_bias")
        assert_close(made.bias(PLACES, PLACES), inner.bias(at, at))
    else:
        assert not hasattr(made, "bias")
        expected = inner.score_bias(q, k, x, at, at)
        assert_close(made.score_bias(q, k, x, PLACES, PLACES), expected)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"positions": 0}, "positions must be at least 1, got 0"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"positions": 10, "max_length": 11}, "max_length must be at most positions=10"),
        ({"encoding": NoPositions}, "NoPositions reads no positions"),
        ({"encoding": CopePositions}, "CopePositions reads no positions"),
        ({"encoding": partial(LearnedPositions, max_length=9)}, "choose position.encoding.max_len"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, said) -> None:
    with pytest.raises(ValueError, match=said):
        randomized(E, **{"num_heads": H, "encoding": SinusoidalPositions, **options})


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_no_longer_sequence_than_was_said(mode) -> None:
    made = randomized(
        E, num_heads=H, encoding=SinusoidalPositions, positions=20, max_length=4
    ).train(mode == "train")
    with pytest.raises(ValueError, match=r"length 5 is longer than position\.max_length=4; train"):
        made(torch.zeros(1, L, E))


def test_a_learned_table_from_a_random_place_on() -> None:
    encoding = LearnedPositions(1, max_length=8, random_offset=True)
    encoding.table.weight.data[:, 0] = torch.arange(8.0)
    x = torch.zeros(2, L, 1)
    starts = set()
    for _ in range(100):
        rows = encoding(x)[..., 0]
        starts.add(int(rows[0, 0]))
        assert_close(rows, (rows[:1, :1] + torch.arange(5.0)).expand(2, -1))
    assert starts == {0, 1, 2, 3}
    assert_close(encoding.eval()(x)[0, :, 0], torch.arange(5.0))
    assert_close(encoding.train()(x, PLACES + 1)[0, :, 0], torch.arange(5.0) + 1)
    full = LearnedPositions(3, max_length=L, random_offset=True)
    assert full(torch.zeros(1, L, 3)).shape == (1, L, 3)  # only one place is left


@pytest.mark.slow
@pytest.mark.parametrize("encoding", [SinusoidalPositions, RotaryPositions, AlibiPositions])
def test_randomized_compiles(encoding) -> None:
    made = randomized(E, num_heads=H, encoding=encoding).eval()
    call: nn.Module | object = made
    if made.acts_on == "embeddings":
        call, given = made, (torch.randn(3, L, E),)
    elif made.acts_on == "scores":
        call, given = made.bias, (PLACES, PLACES)
    else:
        call, given = made.rotate, (*torch.randn(2, 3, H, L, 6).unbind(), PLACES, PLACES)
    assert_close(torch.compile(call, fullgraph=True)(*given), call(*given))
