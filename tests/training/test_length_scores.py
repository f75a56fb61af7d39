"""The measures by length, against what a loop of plain decoding finds."""

import math

import pytest
import torch

from mha_lab.models.encoder_decoder import EncoderDecoder
from mha_lab.tasks.copying.copy import copy_task
from mha_lab.tasks.recall.induction import induction_task
from mha_lab.training.length_scores import MEASURES, by_length, score, summarise
from tests.models.test_models import ATTENTIONS, LearnedPositions

EOS, PAD = 2, 0


def half_trained(task):
    """A model that is right now and then, and does not always end where it should."""
    torch.manual_seed(0)
    net = EncoderDecoder(
        len(task.vocabulary),
        attention=ATTENTIONS["custom"],
        position=LearnedPositions,
        embed_dim=16,
        num_heads=2,
        num_layers=1,
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for step in range(60):
        batch = task.draw(32, torch.Generator().manual_seed(step))
        logits = net(*batch)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), batch.target.flatten(), ignore_index=PAD
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


@pytest.fixture(scope="module", params=["copy", "induction"])
def case(request):
    make = {"copy": copy_task, "induction": induction_task}[request.param]
    task = make(max_length=4, vocab_size=3)
    return half_trained(task), task.at_lengths(min_length=2, max_length=6).fixed_split("test", 31)


@torch.no_grad()
def by_hand(net, source, target):
    """One sequence, one token at a time."""
    net.eval()
    symbols = [i for i in target if i not in (PAD, EOS)]
    end = target.index(EOS)

    def greedy(may_end):
        given, output = torch.tensor([source]), []
        for place in range(len(target)):
            known = torch.tensor([[*output, PAD]])
            logits = net(given, known)[0, -1]
            if not may_end:
                logits[EOS] = -math.inf
            blank = place < end and target[place] == PAD
            output.append(PAD if blank else int(logits.argmax()))
            if output[-1] == EOS:
                break
        return output + [PAD] * (len(target) - len(output))

    free, told = greedy(True), greedy(False)
    forced = net(torch.tensor([source]), torch.tensor([target]))[0].argmax(-1).tolist()
    asked = [i for i, id_ in enumerate(target) if id_ not in (PAD, EOS)]
    share = (lambda out: sum(out[i] == target[i] for i in asked) / len(asked)) if asked else None
    return {
        "sequence_accuracy": float(free[: end + 1] == target[: end + 1]),
        "sequence_accuracy_length_given": float(all(told[i] == target[i] for i in asked)),
        "token_accuracy_forced": share(forced) if symbols else math.nan,
        "token_accuracy_free": share(free) if symbols else math.nan,
    }


def test_each_measure_is_what_plain_decoding_finds(case):
    net, batch = case
    scores = score(net, batch)
    for n, (source, target) in enumerate(zip(*(part.tolist() for part in batch), strict=True)):
        source = [id_ for id_ in source if id_ != PAD]
        for name, value in by_hand(net, source, target).items():
            assert scores[name][n].item() == pytest.approx(value, nan_ok=True), (name, n)
        assert scores["length"][n] == len(source) - 1
    for name in MEASURES:  # otherwise nothing was compared
        assert 0 < scores[name].nanmean() < 1, name


def test_free_running_is_worse_than_forced_and_length_given_is_better(case):
    row = summarise(score(*case))
    assert row["token_accuracy_free"] <= row["token_accuracy_forced"]
    assert row["sequence_accuracy"] <= row["sequence_accuracy_length_given"]


def test_means_and_standard_errors_by_hand():
    scores = {name: torch.tensor([1.0, 0.0, 1.0, math.nan]) for name in MEASURES}
    scores["length"] = torch.tensor([3.0, 3.0, 5.0, 5.0])
    row = summarise(scores)
    assert row["sequences"] == 4
    assert row["token_accuracy_free"] == pytest.approx(2 / 3)
    assert row["token_accuracy_free_error"] == pytest.approx(1 / 3)  # sd 0.57735 over root 3
    three, five = by_length(scores)
    assert (three["length"], three["sequences"], three["sequence_accuracy"]) == (3, 2, 0.5)
    assert three["sequence_accuracy_error"] == pytest.approx(0.5)
    assert five["sequence_accuracy"] == 1
    assert math.isnan(five["sequence_accuracy_error"])


def test_the_mode_of_the_model_is_left_as_it_was(case):
    net, batch = case
    net.train()
    score(net, batch)
    assert net.training
