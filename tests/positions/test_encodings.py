"""The positional encodings, against numbers worked by hand and a plain loop."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from mha_lab.positions import LearnedPositions, NoPositions, SinusoidalPositions
from mha_lab.positions.sinusoidal import sinusoids


def test_none_changes_nothing() -> None:
    x = torch.randn(2, 5, 7)
    encoding = NoPositions(7)
    assert encoding(x) is x
    assert list(encoding.parameters()) == []


@pytest.mark.parametrize("embed_dim", [1, 2, 7, 14])
def test_sinusoids_are_those_of_the_paper(embed_dim: int) -> None:
    expected = torch.empty(53, embed_dim)
    for position in range(53):
        for column in range(embed_dim):
            wave = math.sin if column % 2 == 0 else math.cos
            exponent = (column - column % 2) / embed_dim
            expected[position, column] = wave(position / 10000**exponent)
    assert_close(sinusoids(torch.arange(53), embed_dim), expected, atol=1e-5, rtol=0)


def test_sinusoids_by_hand() -> None:
    # Width 4: frequencies 1 and 1/100.
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [0.841471, 0.540302, 0.0099998, 0.99995],
        [0.909297, -0.416147, 0.0199987, 0.99980],
    ]
    assert_close(sinusoids(torch.arange(3), 4), torch.tensor(expected), atol=1e-5, rtol=0)


def test_sinusoidal_adds_to_any_length() -> None:
    encoding = SinusoidalPositions(7)
    for length in (3, 5, 3001):
        x = torch.randn(2, length, 7)
        assert_close(
            encoding(x) - x, sinusoids(torch.arange(length), 7).expand(2, -1, -1), atol=1e-5, rtol=0
        )
    assert not encoding.state_dict()


def test_learned_adds_its_rows() -> None:
    encoding = LearnedPositions(7, max_length=11)
    x = torch.randn(2, 5, 7, requires_grad=True)
    assert_close(encoding(x), x + encoding.table.weight[:5])
    encoding(x).sum().backward()
    assert_close(x.grad, torch.ones(2, 5, 7))
    expected = torch.zeros(11, 7)
    expected[:5] = 2.0  # once for each sample
    assert_close(encoding.table.weight.grad, expected)


def test_learned_holds_max_length_and_no_more() -> None:
    encoding = LearnedPositions(3, max_length=11)
    assert encoding.max_length == 11
    assert encoding(torch.zeros(1, 11, 3)).shape == (1, 11, 3)
    said = "length 12 is longer than position.max_length=11, .*position.max_length=12 or more"
    with pytest.raises(ValueError, match=said):
        encoding(torch.zeros(1, 12, 3))


def test_default_length() -> None:
    assert LearnedPositions(3).max_length == 256


@pytest.mark.parametrize("encoding", [LearnedPositions, SinusoidalPositions])
def test_positions_are_told_apart(encoding: type[nn.Module]) -> None:
    rows = encoding(14)(torch.zeros(1, 97, 14))[0]
    distances = torch.cdist(rows, rows) + 9 * torch.eye(97)
    assert distances.min() > 0.1


@pytest.mark.parametrize("encoding", [LearnedPositions, SinusoidalPositions, NoPositions])
def test_dtype_and_meta_device(encoding: type[nn.Module]) -> None:
    assert encoding(6).to(torch.bfloat16)(torch.zeros(1, 3, 6, dtype=torch.bfloat16)).dtype == (
        torch.bfloat16
    )
    with torch.device("meta"):
        assert encoding(6)(torch.zeros(1, 3, 6)).is_meta


@pytest.mark.parametrize("encoding", [LearnedPositions, SinusoidalPositions])
def test_embed_dim_is_checked(encoding: type[nn.Module]) -> None:
    with pytest.raises(ValueError, match="embed_dim must be at least 1, got 0"):
        encoding(0)


def test_max_length_is_checked() -> None:
    with pytest.raises(ValueError, match="max_length must be at least 1, got 0"):
        LearnedPositions(3, max_length=0)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", [LearnedPositions, SinusoidalPositions, NoPositions])
def test_compiles_and_exports(encoding: type[nn.Module]) -> None:
    module, x = encoding(6), torch.randn(2, 5, 6)
    assert_close(torch.compile(module, fullgraph=True)(x), module(x))
    assert_close(torch.export.export(module, (x,)).module()(x), module(x))


@pytest.mark.gpu
@pytest.mark.parametrize("encoding", [LearnedPositions, SinusoidalPositions, NoPositions])
def test_on_a_gpu(encoding: type[nn.Module]) -> None:
    module, x = encoding(6), torch.randn(2, 5, 6)
    expected = module(x)
    assert_close(module.cuda()(x.cuda()).cpu(), expected, atol=1e-5, rtol=0)
