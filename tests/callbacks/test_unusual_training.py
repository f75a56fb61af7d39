"""Mixed precision, compiled models, several processes, own optimisation, both Lightnings."""

import copy
import json
import os
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from tiny_modules import (
    PACKAGES,
    Encoder,
    N,
    fit,
    logged_steps,
    module_class,
)
from torch.testing import assert_close

from mha_lab import AttentionMapLogger
from mha_lab.callbacks import any_lightning
from mha_lab.tensorboard.reader import read_attention

FIRST = "encoder.layers.0.self_attn"


# --- precision, compilation, optimisation -------------------------------------------------------


@pytest.mark.parametrize("stage", ["validation", "train"])
def test_bf16_mixed_on_the_cpu(tmp_path, stage):
    logger = AttentionMapLogger(stage=stage, samples=N)
    module = fit(tmp_path, logger, precision="bf16-mixed")
    first_of = {}
    for of, step, _, weights in module.seen:
        if of == stage:
            first_of.setdefault(step, weights)
    maps = read_attention(tmp_path, name=FIRST)
    assert [one.step for one in maps] == ([4, 8] if stage == "validation" else [0, 4])
    for one in maps:
        weights = torch.tensor(one.weights)
        assert_close(weights, first_of[one.step].float(), rtol=0, atol=2e-2)
        assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), rtol=0, atol=1e-4)


def counting(graph, example_inputs):
    """A backend of torch.compile that counts the calls of what it compiled."""

    def run(*args):
        counting.calls += 1
        return graph.forward(*args)

    return run


@pytest.mark.parametrize("stage", ["validation", "train"])
def test_a_compiled_part_is_recorded_and_compiled_again_afterwards(tmp_path, stage):
    class Compiled(Encoder):
        def __init__(self):
            super().__init__()
            self.encoder = torch.compile(self.encoder, backend=counting)

    torch.compiler.reset()
    counting.calls = 0
    logger = AttentionMapLogger(stage=stage, samples=N)
    module = fit(tmp_path, logger, module=module_class(PACKAGES[0], Compiled)(), validation=3)
    assert counting.calls >= 12, "of 14 batches 2 are recorded"
    first_of = {}
    for of, step, _, weights in module.seen:
        if of == stage:
            first_of.setdefault(step, weights)
    maps = read_attention(tmp_path, name=FIRST)
    assert [one.step for one in maps] == ([4, 8] if stage == "validation" else [0, 4])
    for one in maps:
        assert_close(torch.tensor(one.weights), first_of[one.step], rtol=0, atol=3e-5)


class Bare(Encoder):
    """Steps that compile as one."""

    def step(self, stage, batch, dataloader_idx=0):
        return self(batch).square().mean()

    def forward(self, batch):
        return self.encoder(self.embedding(batch["ids"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "package"), list(zip(["validation", "train"], PACKAGES, strict=True))
)
def test_a_compiled_lightning_module(tmp_path, stage, package):
    torch.compiler.reset()
    module = torch.compile(module_class(package, Bare)())
    fit(tmp_path, AttentionMapLogger(stage=stage), module=module, package=package)
    prefix, steps = {"validation": ("attention", [4, 8]), "train": ("attention_train", [0, 4])}[
        stage
    ]
    assert logged_steps(tmp_path)[f"{prefix}/{FIRST}"] == steps


def test_own_optimisation_with_two_optimizers(tmp_path):
    """Lightning counts the steps of both."""

    class Own(Encoder):
        automatic_optimization = False

        def configure_optimizers(self):
            return [torch.optim.SGD(self.parameters(), lr=0.1) for _ in range(2)]

        def training_step(self, batch, batch_idx):
            loss = super().training_step(batch, batch_idx)
            self.manual_backward(loss)
            for optimizer in self.optimizers():
                optimizer.step()

    logger = AttentionMapLogger(stage="train", every_n_steps=3)
    fit(tmp_path, logger, AttentionMapLogger(), module=module_class(PACKAGES[0], Own)())
    assert logged_steps(tmp_path, name=FIRST) == {
        f"attention_train/{FIRST}": [0, 4, 8, 12],
        f"attention/{FIRST}": [8, 16],
    }


def test_a_step_that_calls_the_model_several_times(tmp_path):
    """An optimizer that evaluates its closure three times; each call has a name of its own."""

    class Thrice(torch.optim.SGD):
        def step(self, closure=None):
            for _ in range(3):
                super().step(closure)

    class Closure(Encoder):
        def configure_optimizers(self):
            return Thrice(self.parameters(), lr=0.1)

    logger = AttentionMapLogger(stage="train", modules="layers.0", scores=False, images=False)
    fit(tmp_path, logger, module=module_class(PACKAGES[0], Closure)(), max_epochs=1)
    names = [one.name for one in read_attention(tmp_path)]
    assert names == [FIRST, f"{FIRST}#2", f"{FIRST}#3"]


# --- both packages of Lightning -----------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
def test_a_callback_for_one_package_only(tmp_path, package, monkeypatch):
    """As it is made where the other package is not imported."""
    monkeypatch.setattr(any_lightning, "_PACKAGES", (package,))
    logger = AttentionMapLogger()
    others = {f"{other}.Callback" for other in PACKAGES if other != package}
    assert isinstance(logger, import_module(package).Callback)
    assert isinstance(logger, AttentionMapLogger)
    assert not any(f"{one.__module__}.{one.__name__}" in others for one in type(logger).__mro__)
    fit(tmp_path, logger, package=package, enable_checkpointing=True)
    assert logged_steps(tmp_path)[f"attention/{FIRST}"] == [4, 8]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_is_the_same_callback(tmp_path, again):
    logger = again(AttentionMapLogger(samples=[1], modules="layers.1", every_n_epochs=2))
    assert isinstance(logger, AttentionMapLogger)
    fit(tmp_path, logger)
    assert logged_steps(tmp_path) == {f"attention/{FIRST.replace('0', '1')}": [4]}
    assert read_attention(tmp_path)[0].header.samples == [1]


def test_its_options_can_be_asked_for():
    import inspect

    assert {"every_n_epochs", "tokens", "stage"} <= set(
        inspect.signature(AttentionMapLogger).parameters
    )


def run(package, strategy, folder):
    script = Path(__file__).with_name("run_in_process.py")
    done = subprocess.run(
        [sys.executable, str(script), package, strategy, str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1]), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "loaded"),
    [
        ("pytorch_lightning", ["pytorch_lightning"]),
        ("lightning.pytorch", ["lightning.pytorch"]),
        ("late", ["pytorch_lightning", "lightning.pytorch"]),
    ],
)
def test_only_the_package_in_use_is_imported(tmp_path, package, loaded):
    known, _ = run(package, "auto", tmp_path)
    assert known == loaded
    assert logged_steps(tmp_path) == {"attention/attention": [8, 16]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "package"), list(zip(["ddp", "ddp_spawn"], PACKAGES, strict=True))
)
def test_of_two_processes_the_first_writes_and_both_run(tmp_path, strategy, package):
    _, errors = run(package, strategy, tmp_path)
    steps = {(rank, step) for rank in "01" for step in ("0", "4", "8")}  # 0: the sanity check
    assert {tuple(mark.name.split()) for mark in tmp_path.glob("[01] *")} == steps
    maps = read_attention(tmp_path)
    assert [(one.tag, one.step) for one in maps] == [
        ("attention/attention", 4),
        ("attention/attention", 8),
    ]
    assert {one.weights.shape for one in maps} == {(2, 2, 5, 5)}
    assert len(list(tmp_path.rglob("*tfevents*"))) == 1
    assert list(tmp_path.rglob("*.npz")) == []
    assert "no attention" not in errors
