"""Scores on maps made by hand, where the answer is known."""

import math

import pytest
import torch
from torch.testing import assert_close

from mha_lab.maps.attention_map import AttentionMap
from mha_lab.maps.score_rows import ScoreRows
from mha_lab.maps.scores import SCORE_NAMES, score_weights

L = 5
UNIFORM = torch.full((L, L), 1 / L)
DIAGONAL = torch.eye(L)
PREVIOUS = torch.eye(L).roll(-1, dims=1)  # query 0 looks at the last key
HEADS = torch.stack([UNIFORM, DIAGONAL, PREVIOUS])[None]


def test_patterns_that_a_hand_can_score():
    scores = score_weights(HEADS)
    assert list(scores) == [n for n in SCORE_NAMES if n not in ("duplicate_token", "induction")]
    assert_close(scores["entropy"], torch.tensor([math.log(L), 0.0, 0.0]))
    assert_close(scores["confidence"], torch.tensor([1 / L, 1.0, 1.0]))
    assert_close(scores["sparsity"], torch.tensor([0.0, (L - 1) / L, (L - 1) / L]))
    assert_close(scores["diagonal"], torch.tensor([1 / L, 1.0, 0.0]))
    assert_close(scores["previous_token"], torch.tensor([1 / L, 0.0, 1.0]))


def test_sparsity_counts_keys_below_one_percent_of_the_largest():
    row = torch.tensor([0.9, 0.0091, 0.0089, 0.0])
    assert_close(score_weights(row.view(1, 1, 1, 4))["sparsity"], torch.tensor([0.5]))


def test_weights_below_zero_have_no_entropy():
    """Of retention, the delta rule or a difference of maps."""
    subtracting = torch.tensor([[0.6, -0.2], [0.5, 0.5]])
    scores = score_weights(torch.stack([subtracting, -subtracting + 1])[None])
    # Of the first head, the second row alone is a distribution.
    assert_close(scores["entropy"][0], torch.tensor(math.log(2)))
    assert_close(scores["confidence"], torch.tensor([0.55, 0.85]))
    assert "entropy" not in score_weights(-torch.eye(2)[None, None] + 0.1)


TOKENS = list("abcab")
DUPLICATE = torch.tensor(
    [
        [1.0, 0, 0, 0, 0],
        [0, 1.0, 0, 0, 0],
        [0, 0, 1.0, 0, 0],
        [0.7, 0.2, 0.1, 0, 0],  # the second a gives 0.7 to the first, 0.2 to the b after it
        [0.3, 0.5, 0.2, 0, 0],  # the second b gives 0.5 to the first, 0.2 to the c after it
    ]
)


def test_duplicate_token_and_induction():
    scores = score_weights(DUPLICATE[None, None], [TOKENS])
    assert_close(scores["duplicate_token"], torch.tensor([(0.7 + 0.5) / 2]))
    assert_close(scores["induction"], torch.tensor([(0.2 + 0.2) / 2]))


def test_a_token_twice_in_a_row_and_several_earlier_ones():
    # a a a: query 1 has one earlier a, query 2 two; both followed by keys 1 and (1, 2).
    weights = torch.tensor([[1.0, 0, 0], [0.6, 0.4, 0], [0.2, 0.3, 0.5]])
    scores = score_weights(weights[None, None], [["a", "a", "a"]])
    assert_close(scores["duplicate_token"], torch.tensor([(0.6 + 0.5) / 2]))
    assert_close(scores["induction"], torch.tensor([(0.4 + 0.8) / 2]))


def test_no_repeated_token_has_no_such_score():
    scores = score_weights(UNIFORM[None, None], [list("abcde")])
    assert "duplicate_token" not in scores
    assert "induction" not in scores
    assert "entropy" in scores


def test_cross_attention_has_no_token_scores():
    tokens = [list("aaaaa")]
    cross = AttentionMap("cross", UNIFORM[None, None], "cross", tokens, tokens)
    assert "duplicate_token" not in cross.scores()
    selfs = AttentionMap("self", UNIFORM[None, None], "self", tokens, tokens)
    assert_close(selfs.scores()["duplicate_token"], torch.tensor([(1 + 2 + 3 + 4) / 4 / L]))


def test_padding_and_blocked_rows_do_not_count():
    weights = torch.stack([DIAGONAL, UNIFORM])[:, None]
    weights[0, 0, 4] = 0.0  # blocked
    scores = score_weights(weights)
    assert_close(scores["diagonal"], torch.tensor([(4 * 1 + 5 / L) / 9]))
    padded = score_weights(weights, [["a", "b", "c", "", ""], ["a", "", "", "", ""]])
    assert_close(padded["diagonal"], torch.tensor([(3 * 1 + 1 / L) / 4]))
    assert "duplicate_token" not in padded  # padding repeats itself, which means nothing


def test_rectangular_maps():
    weights = torch.zeros(1, 1, 3, 2)
    weights[0, 0, 0, 0] = weights[0, 0, 1, 1] = weights[0, 0, 2, 1] = 1.0
    scores = score_weights(weights)
    assert_close(scores["diagonal"], torch.tensor([1.0]))  # of queries 0 and 1, which have one
    assert_close(scores["previous_token"], torch.tensor([0.5]))  # of queries 1 and 2


def test_blocks_of_rows_give_what_the_whole_gives():
    weights = torch.rand(2, 3, 11, 13).softmax(-1)
    weights[1, 2, 5] = 0.0
    sums = ScoreRows(11)
    for start, stop in [(0, 4), (4, 5), (5, 11)]:
        sums.add(weights[:, :, start:stop], start)
    assert_close(sums.means(), score_weights(weights))


@pytest.mark.parametrize("shape", [(0, 3, 5, 5), (2, 3, 0, 5), (2, 3, 5, 0)])
def test_empty_maps_have_no_scores(shape):
    assert score_weights(torch.zeros(shape)) == {}


def test_a_map_of_nan_scores_nan():
    assert score_weights(torch.full((1, 1, 2, 2), torch.nan))["entropy"].isnan().all()


def test_a_pooled_map_has_no_scores_of_its_own():
    pooled = AttentionMap("x", UNIFORM[None, None], size=(50, 50))
    assert pooled.is_pooled
    assert pooled.scores() == {}


def test_a_head_that_is_blocked_everywhere_hides_no_other_heads_scores():
    weights = torch.rand(2, 3, 5, 5).softmax(-1)
    alone = score_weights(weights[:, [0, 2]])
    weights[:, 1] = 0.0
    found = score_weights(weights)
    assert set(found) == set(alone)
    for name, score in found.items():
        torch.testing.assert_close(score[[0, 2]], alone[name])
        assert score[1].isnan()
    assert score_weights(torch.zeros(2, 3, 5, 5)) == {}
