"""Hydra's override syntax as Optuna's distributions."""

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from mha_lab import config
from mha_lab.errors import UserError
from mha_lab.sweeping.space import grid_point, grid_size, override, read_space


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("2,3,5", CategoricalDistribution([2, 3, 5])),
        ("choice(2,3,5)", CategoricalDistribution([2, 3, 5])),
        ("choice(a,'b c',[1,2])", CategoricalDistribution(["a", r"b\ c", "[1,2]"])),
        ("choice(true,false)", CategoricalDistribution([True, False])),
        ("range(2,7)", IntDistribution(2, 6)),
        ("range(2,11,3)", IntDistribution(2, 8, step=3)),
        ("range(7,2,-1)", IntDistribution(3, 7)),
        ("range(0,1,0.25)", FloatDistribution(0.0, 0.75, step=0.25)),
        ("tag(log,range(1,8))", IntDistribution(1, 7, log=True)),
        ("interval(2,3)", FloatDistribution(2.0, 3.0)),
        ("int(interval(2,7))", IntDistribution(2, 7)),
        ("tag(log,interval(1e-4,1e-2))", FloatDistribution(1e-4, 1e-2, log=True)),
        ("tag(log,int(interval(16,256)))", IntDistribution(16, 256, log=True)),
    ],
)
def test_each_syntax(text: str, distribution: object):
    assert read_space({"key": text})["key"].distribution == distribution


def test_a_glob_is_every_option_of_a_group():
    distribution = read_space({"position": "glob(*)"})["position"].distribution
    assert distribution == CategoricalDistribution(list(config.options("position")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5", "is one value, 5"),
        ("[2,3]", "is one value"),
        ("interval(3,2)", "the interval is empty: 3.0 is above 2.0"),
        ("range(3,3)", "the range is empty"),
        ("range(3,7,0)", "step of a range cannot be 0"),
        ("choice(2,3,2)", "holds a value twice"),
        ("choice()", "key=choice()"),
        ("tag(log,interval(0,1))", "begins above 0"),
        ("tag(log,choice(1,2))", "needs interval"),
        ("tag(lgo,interval(1,2))", "did you mean 'log'"),
        ("interval(1", "key=interval(1"),
    ],
)
def test_what_is_no_space(text: str, said: str):
    with pytest.raises(UserError) as caught:
        read_space({"key": text})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_space():
    with pytest.raises(UserError, match="the search space is empty"):
        read_space({})


def test_the_grid_is_every_combination_once_as_train_m_counts():
    space = read_space({"a": "2,3,5", "b": "x,y", "c": "range(0,1,0.5)"})
    assert grid_size(space) == 12
    points = [tuple(grid_point(space, index).values()) for index in range(12)]
    assert points[:5] == [(2, "x", 0.0), (2, "x", 0.5), (2, "y", 0.0), (2, "y", 0.5), (3, "x", 0.0)]
    assert len(set(points)) == 12


def test_a_grid_cannot_hold_an_interval():
    space = read_space({"a": "2,3", "optimizer.lr": "interval(0,1)"})
    with pytest.raises(UserError, match=r"optimizer.lr=interval\(0,1\) is continuous"):
        grid_size(space)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2,3", 2), ("choice(true,false)", True), ("choice([0.9,0.95],[0.8,0.9])", [0.9, 0.95]),
     ("choice('a b',c)", "a b"), ("range(0,1,0.25)", 0.0)],
)  # fmt: skip
def test_a_value_comes_back_from_its_override(text: str, value: object):
    from mha_lab.sweeping.plan import parse

    parameter = read_space({"key": text})["key"]
    assert parse([override("key", parameter.first)])[0].value() == value


def test_a_trial_gets_values_of_each_kind():
    space = read_space({"a": "2,3", "b": "range(2,11,3)", "c": "tag(log,interval(1e-4,1e-2))"})
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(20):
        trial = study.ask()
        a, b, c = (parameter.suggest(trial) for parameter in space.values())
        assert a in (2, 3)
        assert b in (2, 5, 8)
        assert 1e-4 <= c <= 1e-2
