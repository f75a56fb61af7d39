"""Batches without samples: the first one that has some is watched."""

from collections import UserDict
from dataclasses import dataclass

import pytest
import torch
from tiny_modules import PACKAGES, VOCAB, Encoder, L, N, fit, loader, logged_steps, module_class
from torch.testing import assert_close

from mha_lab import AttentionMapLogger
from mha_lab.callbacks.batch_recording import is_empty
from mha_lab.tensorboard.reader import read_attention

NAME = "encoder.layers.0.self_attn"


class Skipping(Encoder):
    """Steps over empty batches, as most modules that can meet them do."""

    def step(self, stage, batch, dataloader_idx=0):
        return super().step(stage, batch, dataloader_idx) if len(batch["ids"]) else None


def batches(*sizes):
    torch.manual_seed(3)
    return loader([{"ids": torch.randint(VOCAB, (size, L))} for size in sizes])


@pytest.mark.filterwarnings("error:no attention of:UserWarning")
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("steps", [Encoder, Skipping])
def test_a_validation_waits_for_samples(tmp_path, package, steps):
    module = module_class(package, steps)()
    logger = AttentionMapLogger(samples=None, max_size=None)
    fit(tmp_path, logger, module=module, validation=batches(0, 0, N, 2), package=package)
    maps = read_attention(tmp_path, name=NAME)
    assert [(one.step, one.shape[0]) for one in maps] == [(4, N), (8, N)]
    first = {}
    for stage, step, _, weights in module.seen:
        if stage == "validation" and len(weights):
            first.setdefault(step, weights)
    for one in maps:
        assert_close(torch.tensor(one.weights), first[one.step], rtol=0, atol=3e-5)


def test_training_waits_for_samples(tmp_path):
    module = module_class(PACKAGES[0], Skipping)()
    logger = AttentionMapLogger(stage="train")
    fit(tmp_path, logger, module=module, train=batches(0, N, N), max_epochs=2)
    assert [step for stage, step, *_ in module.seen if stage == "train"] == [1, 2, 4, 5]
    assert logged_steps(tmp_path, name=NAME) == {f"attention_train/{NAME}": [1, 4]}


def test_only_empty_batches_log_nothing_and_the_next_loader_is_watched(tmp_path):
    module = module_class(PACKAGES[0], Skipping)()
    loaders = [batches(0, 0), batches(N, N)]
    fit(tmp_path, AttentionMapLogger(), module=module, validation=loaders)
    assert set(logged_steps(tmp_path, name=NAME)) == {f"attention_dataloader_1/{NAME}"}


@dataclass
class Pair:
    """A batch of a class of one's own."""

    x: torch.Tensor


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (torch.zeros(0, 5), True),
        ([torch.zeros(0, 5), torch.zeros(0)], True),
        ({"a": {"b": torch.zeros(0, 5)}, "n": torch.tensor(3), "names": []}, True),
        (UserDict(ids=torch.zeros(0, 5)), True),
        ({"x": torch.zeros(0, 5), "adjacency": torch.zeros(5, 5)}, False),
        ((torch.zeros(2, 0), torch.zeros(2, 3)), False),
        ([], False),
        (["text"], False),
        (Pair(torch.zeros(0, 5)), False),
    ],
)
def test_which_batches_are_empty(batch, expected):
    assert is_empty(batch) is expected
