"""Mechanism × encoding × model: each trains, or is refused before training in one sentence."""

from functools import cache
from itertools import product

import pytest
import torch
from omegaconf import DictConfig, OmegaConf

from mha_lab import config
from mha_lab.build import build_parts
from mha_lab.errors import UserError
from mha_lab.tasks.vocabulary import Vocabulary

MODELS = ("encoder", "decoder", "encoder_decoder")
ATTENTIONS = tuple(config.options("attention"))
POSITIONS = tuple(config.options("position"))
SMALL = ("task=sort", "model.embed_dim=8", "model.num_heads=2", "data.train_size=8")


@cache
def composed(*words: str) -> DictConfig:
    return config.compose([*SMALL, *words], run_dir="RUN")


def combined(attention: str, position: str, model: str) -> DictConfig:
    """A config made from two that are composed once: composing takes longer than two steps."""
    cfg = composed(f"attention={attention}", f"model={model}").copy()
    cfg.position = OmegaConf.to_container(composed(f"position={position}").position)
    return cfg


def outcome(cfg: DictConfig) -> str:
    """``trained``, or the sentence by which it is refused."""
    try:
        parts = build_parts(cfg)
    except UserError as refusal:
        return str(refusal)
    model = parts.module.model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [p.detach().clone() for p in model.parameters()]
    ids = torch.randint(5, 9, (3, 7))
    ids[:, -1] = Vocabulary.EOS
    ids[1, 4:] = torch.tensor([Vocabulary.EOS, Vocabulary.PAD, Vocabulary.PAD])
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            model(ids, ids).flatten(0, 1), ids.flatten(), ignore_index=Vocabulary.PAD
        )
        torch.autograd.backward(loss)
        assert loss.isfinite()
        optimizer.step()
    assert all(p.isfinite().all() for p in model.parameters())
    assert any(not torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    return "trained"


def walk(attentions: tuple[str, ...], positions: tuple[str, ...]) -> dict[tuple[str, ...], str]:
    outcomes = {}
    for names in product(attentions, positions, MODELS):
        outcomes[names] = said = outcome(combined(*names))
        if said != "trained":
            assert "choose" in said, f"{names}: {said}"
            assert "\n" not in said
            assert len(said) < 350, f"{names}: {said}"
    return outcomes


@pytest.mark.parametrize("attention", ["builtin", "custom", "composed"])
def test_encodings_with_the_three_that_all_is_compared_with(attention: str) -> None:
    outcomes = walk((attention,), POSITIONS)
    inside = {"rotary", "shaw", "cope", "forgetting"}
    causal = {"hard_alibi", "cope", "forgetting"}
    for (_, position, model), said in outcomes.items():
        is_refused = position in causal and model != "decoder"
        is_refused |= position in inside and attention != "composed"
        if position in inside | causal:
            assert (said != "trained") == is_refused, (position, model, said)


@pytest.mark.slow
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_combination(attention: str) -> None:
    outcomes = walk((attention,), POSITIONS)
    for model in MODELS:  # no mechanism is refused with every encoding in all of the models
        trained = [said for (_, _, m), said in outcomes.items() if m == model and said == "trained"]
        assert trained or "choose" in outcomes[attention, "none", model]
    assert "trained" in outcomes.values()


@pytest.mark.parametrize("inside", ["rotary", "alibi", "learned", "t5", "shaw", "fire"])
@pytest.mark.parametrize("model", MODELS)
def test_randomized_around_any_that_reads_positions(inside: str, model: str) -> None:
    words = ("position=randomized", f"position@position.encoding={inside}", f"model={model}")
    assert outcome(composed("attention=composed", *words)) == "trained"


@pytest.mark.parametrize("inside", ["none", "cope", "forgetting", "randomized"])
def test_randomized_around_what_reads_none_is_refused(inside: str) -> None:
    words = ("position=randomized", f"position@position.encoding={inside}", "model=decoder")
    said = outcome(composed("attention=composed", *words))
    assert "choose another encoding inside" in said


def test_sorting_without_positions_in_an_encoder_is_told_before_training(capsys) -> None:
    build_parts(config.compose(["+experiment=sort", "model=encoder"], run_dir="RUN"))
    said = capsys.readouterr().err
    assert said.startswith("mha_lab: an encoder without positions gives equal tokens")
    assert said.count("\n") == 1
    build_parts(config.compose(["+experiment=sort"], run_dir="RUN"))
    assert capsys.readouterr().err == ""


def test_the_encoding_inside_another_is_among_the_choices() -> None:
    cfg = composed("position=randomized", "position@position.encoding=rotary")
    assert cfg.choices.position == "randomized"
    assert cfg.choices["position@position.encoding"] == "rotary"
