"""Attention rollout on numbers worked by hand."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from mha_lab import AttentionMap, record_attention
from mha_lab.maps.attention_maps import AttentionMaps
from mha_lab.maps.rollout import attention_rollout


def one_map(name, *heads, **options):
    return AttentionMap(name, torch.tensor([heads], dtype=torch.float64), **options)


def test_two_layers_by_hand():
    # The mean of the first layer's heads is [[1, 0], [0.5, 0.5]].
    first = one_map("0", [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    second = one_map("1", [[0.0, 1.0], [1.0, 0.0]])
    rolled = attention_rollout([first, second])
    assert_close(rolled[0].weights[0, 0], torch.tensor([[1, 0], [0.25, 0.75]]).double())
    # [[.5, .5], [.5, .5]] · [[1, 0], [.25, .75]]
    assert_close(rolled[1].weights[0, 0], torch.tensor([[0.625, 0.375]] * 2).double())
    assert [one.name for one in rolled] == ["0", "1"]
    assert rolled[1].heads is None
    without = attention_rollout([first, second], residual=0.0)
    assert_close(without[1].weights[0, 0], torch.tensor([[0.5, 0.5], [1.0, 0.0]]).double())


def test_a_recorded_encoder_rolls_out_to_distributions():
    layer = nn.TransformerEncoderLayer(6, 3, 7, batch_first=True)
    model = nn.TransformerEncoder(layer, 3).eval()
    with torch.no_grad(), record_attention(model) as maps:
        model(torch.randn(2, 5, 6))
    rolled = attention_rollout(maps)
    assert [one.weights.shape for one in rolled] == [(2, 1, 5, 5)] * 3
    for one in rolled:
        assert_close(one.weights.sum(-1), torch.ones(2, 1, 5))


@pytest.mark.parametrize(
    ("maps", "options", "said"),
    [
        ([], {}, "maps is empty"),
        ([one_map("a", [[1.0]])], {"residual": 2}, "residual=2 must be"),
        ([one_map("a", [[1.0]], size=(2, 2))], {}, "'a' is pooled"),
        ([one_map("a", [[1.0]], kind="cross")], {}, "'a' is cross attention"),
        ([one_map("a", [[1.0]]), one_map("b", [[1.0, 0], [1, 0]])], {}, "'b' is self attention"),
        (
            [one_map("a", [[1.0]], measure="rollout")],
            {},
            "'a' is rollout; rollout needs",
        ),
        ([one_map("a", [[1.0]], measure="value-weighted")], {}, "'a' is value-weighted; rollout"),
        (
            [one_map("encoder.layers.0.a", [[1.0]]), one_map("decoder.layers.0.a", [[1.0]])],
            {},
            r"two stacks; roll out one, as with maps.rollout\('encoder.layers.\*'\)",
        ),
    ],
)
def test_what_cannot_be_rolled_out(maps, options, said):
    with pytest.raises(ValueError, match=said):
        attention_rollout(maps, **options)


def test_layers_with_numbers_anywhere_are_one_stack():
    for names in (("attn1", "attn2"), ("0.a", "1.b"), ("s.0.b.1.a", "s.1.b.0.c"), ("a", "a#2")):
        assert len(attention_rollout([one_map(name, [[1.0]]) for name in names])) == 2


def test_half_precision_is_rolled_out_in_float32():
    one = replace(one_map("a", [[0.3, 0.7], [0.1, 0.9]]))
    half = replace(one, weights=one.weights.half())
    assert attention_rollout([half])[0].weights.dtype == torch.float32


def test_arguments_of_other_types():
    with pytest.raises(TypeError, match="residual='half' must be a number"):
        attention_rollout([one_map("a", [[1.0]])], residual="half")
    with pytest.raises(TypeError, match="must be a glob of module paths"):
        AttentionMaps([one_map("a", [[1.0]])]).rollout(["a"])
