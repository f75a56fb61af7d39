"""Nothing goes on recording: after an error, a skipped epoch, or beside a second callback."""

import gc
import weakref

import pytest
import torch
from tiny_modules import (
    PACKAGES,
    Encoder,
    fit,
    logged_steps,
    module_class,
)
from torch import nn
from torch.overrides import _get_current_function_mode_stack

from mha_lab import AttentionMapLogger
from mha_lab.maps.attention_map import AttentionMap

LAYER = "encoder.layers.0.self_attn"


def encoder(steps=Encoder, package=PACKAGES[0]):
    return module_class(package, steps)()


def assert_nothing_records(module):
    assert _get_current_function_mode_stack() == []
    assert not any("forward" in vars(part) for part in module.modules())
    torch.compiler.reset()
    compiled = torch.compile(nn.Linear(2, 2), backend=_counting)
    _counting.graphs = 0
    compiled(torch.ones(1, 2))
    assert _counting.graphs == 1, "models are no longer compiled"


def _counting(graph, example_inputs):
    _counting.graphs += 1
    return graph.forward


class Failing(Encoder):
    """Fails in its second validation, after the attention."""

    def step(self, stage, batch, dataloader_idx=0):
        loss = super().step(stage, batch, dataloader_idx)
        if stage == self.failing_stage and self.trainer.global_step >= 4:
            raise RuntimeError("the user's own error")
        return loss


without_a_word = pytest.mark.filterwarnings("error:no attention")


@without_a_word
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("stage", ["validation", "train"])
def test_an_error_in_a_step_comes_out_as_it_is(tmp_path, stage, package):
    module = encoder(Failing, package)
    module.failing_stage = stage
    loggers = [AttentionMapLogger(stage=stage), AttentionMapLogger(stage=stage, samples=[1])]
    with pytest.raises(RuntimeError, match=r"^the user's own error$") as caught:
        fit(tmp_path, *loggers, module=module, package=package)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert_nothing_records(module)


@without_a_word
def test_an_error_before_the_attention_is_not_called_a_model_without(tmp_path):
    class FailsFirst(Encoder):
        def validation_step(self, batch, batch_idx):
            raise RuntimeError("before the attention")

    with pytest.raises(RuntimeError, match=r"^before the attention$"):
        fit(tmp_path, AttentionMapLogger(), module=encoder(FailsFirst))


def test_training_goes_on_after_an_error_that_was_caught(tmp_path):
    module = encoder(Failing)
    module.failing_stage = "validation"
    logger = AttentionMapLogger()
    with pytest.raises(RuntimeError, match="own error"):
        fit(tmp_path / "first", logger, module=module)
    module.failing_stage = None
    fit(tmp_path / "second", logger, module=module)
    assert logged_steps(tmp_path / "second")[f"attention/{LAYER}"] == [4, 8]


def test_an_interrupt_leaves_nothing_recording(tmp_path):
    class Interrupted(Encoder):
        def validation_step(self, batch, batch_idx):
            self(batch)
            raise KeyboardInterrupt

    module = encoder(Interrupted)
    with pytest.raises(SystemExit):
        fit(tmp_path, AttentionMapLogger(), module=module)
    assert_nothing_records(module)


@without_a_word
def test_an_epoch_that_the_module_skips(tmp_path):
    class Skips(Encoder):
        def on_train_batch_start(self, batch, batch_idx):
            return -1 if self.current_epoch == 0 else None

        def on_train_epoch_start(self):
            if self.current_epoch == 1:
                assert _get_current_function_mode_stack() == []

    module = encoder(Skips)
    fit(tmp_path, AttentionMapLogger(stage="train"), module=module)
    assert logged_steps(tmp_path)[f"attention_train/{LAYER}"][-1] == 0
    assert_nothing_records(module)


@pytest.mark.parametrize("stage", ["validation", "train"])
def test_two_callbacks_may_record_one_batch(tmp_path, stage):
    """They end in the order in which they began."""
    module = encoder()
    fit(
        tmp_path,
        AttentionMapLogger(stage=stage, modules="layers.0"),
        AttentionMapLogger(stage=stage, modules="layers.1"),
        module=module,
    )
    prefix = "attention" if stage == "validation" else "attention_train"
    steps = {"validation": [4, 8], "train": [0, 4]}[stage]
    assert logged_steps(tmp_path) == {
        f"{prefix}/{LAYER}": steps,
        f"{prefix}/{LAYER.replace('0', '1')}": steps,
    }
    assert_nothing_records(module)


def test_nothing_is_kept_alive(tmp_path):
    """Lightning ties a callback to its module; once both are dropped, both are gone."""

    def maps_alive() -> int:  # another test's may be, in what is kept of a failure
        return sum(type(one) is AttentionMap for one in gc.get_objects())

    gc.collect()
    before = maps_alive()
    logger = AttentionMapLogger()
    module = fit(tmp_path, logger)
    assert maps_alive() <= before
    gone = [weakref.ref(module), weakref.ref(logger)]
    del module, logger
    gc.collect()
    assert [one() for one in gone] == [None, None]
