"""`bench solve`: the demo written again is the demo described, and both racers are timed alike."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from mha_lab import cli
from mha_lab.bench import solve, sort_demo
from mha_lab.errors import UserError


def test_the_model_is_gpt_2_of_its_size() -> None:
    torch.manual_seed(0)
    ours = sort_demo.Nano().eval()
    config = GPT2Config(
        vocab_size=3, n_positions=11, n_embd=48, n_layer=3, n_head=3,
        activation_function="gelu_new", tie_word_embeddings=False, attn_implementation="eager",
    )  # fmt: skip
    theirs = GPT2LMHeadModel(config).eval()
    names = {
        "tokens": "transformer.wte", "places": "transformer.wpe", "norm": "transformer.ln_f",
        "head": "lm_head", "before_attention": "ln_1", "before_feedforward": "ln_2",
        "qkv": "attn.c_attn", "out": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj",
    }  # fmt: skip
    state = {}
    for key, value in ours.state_dict().items():
        *path, kind = key.split(".")
        inside = path[0] == "blocks"
        name = names[path[-1]]
        is_transposed = inside and name.startswith(("attn", "mlp")) and kind == "weight"
        place = f"transformer.h.{path[1]}.{name}" if inside else name
        state[f"{place}.{kind}"] = value.T if is_transposed else value
    theirs.load_state_dict(state)
    read = torch.randint(3, (7, 11))
    torch.testing.assert_close(ours(read), theirs(read).logits, rtol=1e-4, atol=1e-6)


def test_the_set_is_split_by_sequences_and_asks_for_the_output_alone() -> None:
    read, said = sort_demo.test_pairs()
    assert 130 < len(read) < 235, "about a quarter of 729"
    assert (said[:, :5] == -1).all()
    assert (said[:, 5:] == read[:, :6].sort(1).values).all()
    assert (read[:, 6:] == said[:, 5:-1]).all(), "what is read is what was said"
    held_out = {tuple(row) for row in read[:, :6].tolist()}
    drawn = {tuple(sort_demo.SortSet()[0][0][:6].tolist()) for _ in range(100)}
    assert not held_out & drawn


def test_both_are_timed_until_they_are_done(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sort_demo, "is_solved", lambda *_: True)
    monkeypatch.setattr(solve, "_sorts_all", lambda *_: True)
    for seed in (0, 1):  # either goes first
        one = solve.race(seed, tmp_path / str(seed), every=2, steps=9)
        assert (one["demo_steps"], one["our_steps"]) == (2, 2)
        assert one["ratio"] == one["our_seconds"] / one["demo_seconds"]


def test_all_sequences_are_asked_of_ours(tmp_path, monkeypatch) -> None:
    asked = []

    def look(logits, target):
        asked.append(target)
        right = torch.ones(len(target), dtype=torch.bool)
        return right, right

    monkeypatch.setattr("mha_lab.training.module.accuracies", look)
    solve.ours(0, tmp_path, [], every=1, steps=1)
    (target,) = asked
    assert len(target.unique(dim=0)) == 28, "three digits share six places in 28 ways"
    assert target.shape == (729, 7)


def test_one_that_is_not_done_is_told(tmp_path, capsys) -> None:
    with pytest.raises(UserError, match="the demo is not done after steps=1"):
        solve.demo(0, 1, 1)
    assert cli.run(["bench", "solve", "rounds=1", "steps=1"]) == 2
    assert "is not done after steps=1" in capsys.readouterr().err
