"""Claims against numbers worked by hand."""

import math
from fractions import Fraction
from math import comb

import pytest

from mha_lab.studies.claims import by_seed, judge, p_value, verdict
from mha_lab.studies.spec import Claim

ROWS = [
    {"arm": arm, "seed": seed, "lengths": lengths, "accuracy": accuracy}
    for arm, lengths, column in (
        ("a", "1-5", (0.9, 1.0, 0.8, 0.9, 0.9)),
        ("a", "6-9", (0.7, 0.8, 0.6, 0.7, 0.7)),
        ("b", "1-5", (0.5, 0.6, 0.4, 0.5, 0.5)),
    )
    for seed, accuracy in enumerate(column)
]


def test_a_seed_is_the_mean_of_its_selected_rows() -> None:
    assert by_seed(ROWS, "accuracy", {"arm": "a"})[1] == pytest.approx(0.9)
    assert by_seed(ROWS, "accuracy", {"arm": ["a", "b"], "lengths": "1-5"})[2] == pytest.approx(0.6)
    assert by_seed(ROWS, "accuracy", {"arm": "c"}) == {}
    assert by_seed(ROWS, "loss", {"arm": "a"}) == {}


def test_five_pairs_that_all_agree_are_one_of_32_ways() -> None:
    # Every sign can be swapped: of 2^5 ways only the one observed has so large a mean. Equal
    # differences, which a rank test would call ties, change nothing.
    assert p_value([1.0] * 5, [0.0] * 5, "paired") == pytest.approx(1 / 32)
    assert p_value([1, 1, 1, 1, 0], [0, 0, 0, 0, 1], "paired") == pytest.approx(6 / 32)


def test_ten_values_in_two_halves_are_one_of_252_orders() -> None:
    high, low = [6.0, 7, 8, 9, 10], [1.0, 2, 3, 4, 5]
    assert p_value(high, low, "rank") == pytest.approx(float(Fraction(1, comb(10, 5))))


@pytest.mark.parametrize(
    ("by", "lower", "holds"),
    [(0.0, "b", True), (0.39, "b", True), (0.41, "b", False), (0.0, "c", None)],
)
def test_an_ordering(by: float, lower: str, holds: bool | None) -> None:
    at = {"lengths": "1-5"}
    claim = Claim("a is more", "accuracy", at, {"arm": "a"}, {"arm": lower}, by=by)
    assert judge(claim, ROWS).holds is holds


def test_the_wrong_order_does_not_hold_and_shows_both_numbers() -> None:
    claim = Claim("b is more", "accuracy", {}, {"arm": "b"}, {"arm": "a", "lengths": "1-5"})
    judged = judge(claim, ROWS)
    assert judged.holds is False
    assert judged.ours.startswith("0.5000 ± 0.0707 against 0.9000 ± 0.0707 (p = ")
    assert judged.p is not None
    assert judged.p > 0.9


def test_four_seeds_are_compared_and_not_tested() -> None:
    few = [row for row in ROWS if row["seed"] < 4]
    judged = judge(Claim("", "accuracy", {}, {"arm": "a"}, {"arm": "b"}), few)
    assert (judged.holds, judged.p) == (True, None)


@pytest.mark.parametrize(
    ("least", "most", "holds"),
    [(0.9 - 1e-9, None, True), (0.91, None, False), (None, 0.9 + 1e-9, True), (None, 0.8, False)],
)
def test_a_limit(least: float | None, most: float | None, holds: bool) -> None:
    selector = {"arm": "a", "lengths": "1-5"}
    claim = Claim("", "accuracy", of=selector, at_least=least, at_most=most)
    assert judge(claim, ROWS).holds is holds


def test_a_number_that_is_none_reaches_no_limit() -> None:
    rows = [{"arm": "a", "seed": 0, "accuracy": math.nan}]
    for claim in (
        Claim("", "accuracy", of={"arm": "a"}, at_least=0.0),
        Claim("", "accuracy", of={"arm": "a"}, at_most=1.0),
    ):
        assert judge(claim, rows).holds is False


def test_the_verdict() -> None:
    yes, no = (Claim("", "accuracy", of={"arm": "a"}, at_least=x) for x in (0.1, 0.99))
    missing = Claim("", "loss", of={"arm": "a"}, at_least=0.0)
    for claims, word in (
        ([yes, missing], "reproduced"),
        ([yes, no], "partly"),
        ([no], "not reproduced"),
        ([missing], "not measured"),
    ):
        assert verdict([judge(claim, ROWS) for claim in claims]) == word
