"""The schedule, against numbers worked by hand."""

import math

import pytest
import torch
from torch import nn

from mha_lab.training.optimizer import AdamWRecipe


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("constant", [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.25, 0.5, 0.75, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2, 0.0]),
        ("inverse_sqrt", [0.25, 0.5, 0.75, 1.0, *(math.sqrt(4 / n) for n in range(5, 11))]),
    ],
)
def test_factor(decay: str, expected: list[float]):
    recipe = AdamWRecipe(lr=1.0, warmup_steps=4, decay=decay, decay_steps=9)
    assert [recipe.factor(step) for step in range(10)] == pytest.approx(expected)


def test_cosine_is_half_way_down_in_the_middle():
    recipe = AdamWRecipe(lr=1.0, warmup_steps=4, decay="cosine", decay_steps=14)
    assert [recipe.factor(s) for s in (4, 9, 14, 99)] == pytest.approx([1.0, 0.5, 0.0, 0.0])


def test_vectors_do_not_decay():
    model = nn.Linear(3, 5)
    optimizer, _ = AdamWRecipe(lr=1.0, weight_decay=0.5).build(model)
    decays = {id(p): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    assert decays == {id(model.weight): 0.5, id(model.bias): 0.0}


def test_the_first_step_uses_the_warmed_up_rate():
    model = nn.Linear(3, 5, bias=False)
    optimizer, schedule = AdamWRecipe(lr=0.1, warmup_steps=5).build(model)
    before = model.weight.detach().clone()
    model.weight.grad = torch.ones_like(model.weight)
    optimizer.step()
    schedule.step()
    # Adam's first step moves every weight by the learning rate: 0.1 / 5.
    torch.testing.assert_close(before - model.weight.detach(), torch.full((5, 3), 0.02))
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"lr": 0.0}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"betas": (0.9,)}, "betas"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"warmup_steps": -1}, "warmup_steps"),
        ({"decay": "cubic"}, "decay"),
    ],
)
def test_values_out_of_range_are_named(wrong: dict, named: str):
    with pytest.raises(ValueError, match=f"optimizer.{named}"):
        AdamWRecipe(**{"lr": 1.0, **wrong})
