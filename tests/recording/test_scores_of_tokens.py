"""What is padding counts in no score, and a pooled map keeps the scores of the whole one."""

import pytest
import torch
from torch import nn

from mha_lab import record_attention
from mha_lab.maps.attention_map import AttentionMap
from mha_lab.tasks.vocabulary import Vocabulary
from mha_lab.training.module import TokenRows
from mha_lab.view.pooling import PADDING

N, H, L, S, KEPT = 2, 3, 11, 13, 7


def distribution(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(3)).softmax(-1)


@pytest.mark.parametrize("pad", PADDING)
@pytest.mark.parametrize("kind", ["self", "cross"])
def test_scores_are_those_without_the_padded_queries(pad, kind):
    weights = distribution(N, H, L, S if kind == "cross" else L)
    tokens = ["a", "b", "a", "c", "b", "a", "d"]
    keys = weights.shape[-1]
    padded = AttentionMap("x", weights, kind).with_tokens(
        [[*tokens, *[pad] * (L - KEPT)]] * N, [[*tokens, *["k"] * (keys - KEPT)]] * N
    )
    # Without tokens every query counts: the rows that are padding are cut off beforehand.
    cut = AttentionMap("x", weights[:, :, :KEPT], kind)
    ours, expected = padded.scores(), cut.scores()
    for name in ("entropy", "confidence", "sparsity", "previous_token", "diagonal"):
        torch.testing.assert_close(ours[name], expected[name])
    assert ("induction" in ours) == (kind == "self")


def test_our_own_labels_write_no_padding():
    vocabulary = Vocabulary(("x", "y"))
    ids = torch.tensor([[*vocabulary.encode(["y", "x"]), Vocabulary.EOS, Vocabulary.PAD]])
    assert TokenRows(vocabulary, ids)[0] == ["y", "x", "<eos>", ""]


@pytest.mark.parametrize("average_heads", [False, True])
def test_a_pooled_map_has_the_scores_of_the_whole_one(average_heads):
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(6, 2, batch_first=True), torch.randn(N, 41, 6)
    tokens = [[f"t{(i * (n + 3)) % 7}" for i in range(37)] for n in range(N)]  # then padding
    with record_attention(module, tokens=tokens, average_heads=average_heads) as whole:
        module(x, x, x)
    with record_attention(module, tokens=tokens, max_size=5, average_heads=average_heads) as pooled:
        module(x, x, x)
    assert pooled[0].is_pooled
    assert pooled[0].whole is None
    assert set(pooled[0].scores()) >= {"duplicate_token", "induction", "entropy"}
    torch.testing.assert_close(pooled[0].scores(), whole[0].scores())


def test_a_whole_map_is_not_kept_where_it_is_large(monkeypatch):
    monkeypatch.setattr("mha_lab.recording.choice._SMALL", 2 * 2 * 41 * 41 - 1)
    module, x = nn.MultiheadAttention(6, 2, batch_first=True), torch.randn(N, 41, 6)
    with record_attention(module, max_size=5) as maps:
        module(x, x, x)
    assert maps[0].whole.weights is None
    assert "entropy" in maps[0].scores()
    assert "induction" not in maps[0].with_tokens([["a"] * 41] * N, None).scores()


def test_padding_counts_in_no_score_of_a_large_map_either(monkeypatch):
    monkeypatch.setattr("mha_lab.recording.choice._SMALL", 1)
    module, x = nn.MultiheadAttention(6, 2, batch_first=True), torch.randn(N, 41, 6)
    tokens = [["a"] * 37 + ["[PAD]"] * 4, ["a"] * 29]
    with record_attention(module, tokens=tokens) as whole:
        module(x, x, x)
    with record_attention(module, tokens=tokens, max_size=5) as pooled:
        module(x, x, x)
    expected = whole[0].scores()
    for name in ("entropy", "confidence", "sparsity", "previous_token", "diagonal"):
        torch.testing.assert_close(pooled[0].scores()[name], expected[name])


def test_heads_that_share_keys_are_told():
    q, k = torch.randn(N, 6, L, 5), torch.randn(N, 2, L, 5)

    class Grouped(nn.Module):
        def forward(self):
            return nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)

    model = Grouped()
    with record_attention(model, heads=[1, 4, 5]) as maps:
        model()
    assert maps[0].key_heads == (0, 1, 1)
    with record_attention(model, average_heads=True) as maps:
        model()
    assert maps[0].key_heads is None
