"""Weights as codes: how exact, and what comes back exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_lab.view.codec import TWO_BYTES_UP_TO, decode, encode

ONE_BYTE = (1, 1, 131, 139)  # 18,209 weights
TWO_BYTES = (2, 3, 5, 7)


def softmax(shape: tuple[int, ...], sharpness: float) -> np.ndarray:
    scores = np.random.default_rng(0).normal(size=shape) * sharpness
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return (exponentials / exponentials.sum(-1, keepdims=True)).astype(np.float32)


def round_trip(weights: np.ndarray) -> np.ndarray:
    return decode(*encode(weights))


@pytest.mark.parametrize(("shape", "levels"), [(ONE_BYTE, 254), (TWO_BYTES, 65534)])
@pytest.mark.parametrize("sharpness", [0.0, 1.0, 10.0])
def test_error_is_within_the_documented_bound(shape, levels, sharpness):
    weights = softmax(shape, sharpness)
    scale = weights.max()
    bound = np.sqrt(weights * scale) / levels + scale / levels**2
    assert np.all(np.abs(round_trip(weights) - weights) <= bound * 1.001 + 1e-7)


@pytest.mark.parametrize(("shape", "atol"), [(ONE_BYTE, 0.02), (TWO_BYTES, 5e-5)])
def test_rows_still_sum_to_one(shape, atol):
    np.testing.assert_allclose(round_trip(softmax(shape, 2.0)).sum(-1), 1, atol=atol)


def test_hand_worked_codes():
    # scale 1, two bytes: code = round(65534 √w)
    coding, codes = encode(np.array([0.0, 0.25, 1.0, 1e-12]))
    assert (coding.bits, coding.zero, coding.levels, coding.scale) == (16, 0, 65534, 1.0)
    assert codes.tolist() == [0, 32767, 65534, 1]
    np.testing.assert_allclose(decode(coding, codes), [0, 0.25, 1, 1 / 65534**2], rtol=1e-6)


@pytest.mark.parametrize("shape", [ONE_BYTE, TWO_BYTES])
def test_zero_and_the_largest_are_exact_and_nothing_else_becomes_zero(shape):
    weights = softmax(shape, 3.0)
    weights[..., 1] = 0
    weights[..., 2] = 1e-30
    back = round_trip(weights)
    assert np.array_equal(back == 0, weights == 0)
    assert back.max() == weights.max()


def test_the_size_of_a_map_decides_between_one_byte_and_two():
    assert encode(np.ones(TWO_BYTES_UP_TO))[1].dtype == np.dtype("<u2")
    assert encode(np.ones(TWO_BYTES_UP_TO + 1))[1].dtype == np.uint8


@pytest.mark.parametrize("shape", [ONE_BYTE, TWO_BYTES])
def test_not_a_number_and_infinity_come_back_as_nan(shape):
    weights = softmax(shape, 1.0)
    weights[..., 0, 0], weights[..., 0, 1] = np.nan, np.inf
    back = round_trip(weights)
    assert np.isnan(back[..., 0, :2]).all()
    assert np.isfinite(back).sum() == np.isfinite(weights).sum()
    assert np.nanmax(back) == np.nanmax(softmax(shape, 1.0))


def test_signs_are_kept():
    weights = np.array([-0.5, -0.125, 0.0, 0.25, 0.5], dtype=np.float32)
    np.testing.assert_allclose(round_trip(weights), weights, atol=1e-4)


def test_empty_and_all_zero_maps():
    assert round_trip(np.zeros((2, 3, 0, 5))).shape == (2, 3, 0, 5)
    assert np.array_equal(round_trip(np.zeros((1, 1, 2, 3))), np.zeros((1, 1, 2, 3)))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=20))
def test_any_weights_come_back_within_half_a_level(values):
    weights = np.array(values, dtype=np.float32)
    coding, codes = encode(weights)
    bound = (
        np.sqrt(np.abs(weights) * coding.scale) / coding.levels + coding.scale / coding.levels**2
    )
    assert np.all(np.abs(decode(coding, codes) - weights) <= bound * 1.001 + 1e-7 * coding.scale)
