"""When AttentionMapLogger logs, what, and under which step."""

import re
import warnings

import pytest
import torch
from tiny_modules import (
    PACKAGES,
    Crossing,
    Encoder,
    H,
    L,
    N,
    NoAttention,
    S,
    batches_of_ids,
    batches_of_pairs,
    fit,
    loader,
    logged_steps,
    make_trainer,
    module_class,
)
from torch.testing import assert_close

from mha_lab import AttentionMapLogger, record_attention
from mha_lab.tensorboard.reader import read_attention

LAYERS = ("encoder.layers.0.self_attn", "encoder.layers.1.self_attn")


def crossing(package=PACKAGES[0]):
    return module_class(package, Crossing)()


# --- it changes nothing -------------------------------------------------------------------------


def trained(folder, *callbacks, **options):
    torch.manual_seed(11)
    module = fit(folder, *callbacks, **options)
    return module, torch.get_rng_state()


@pytest.mark.parametrize("stage", ["validation", "train"])
def test_losses_weights_and_random_state_are_bit_for_bit_those_without_it(tmp_path, stage):
    plain, plain_state = trained(tmp_path / "plain")
    logger = AttentionMapLogger(stage=stage, every_n_steps=1)
    watched, watched_state = trained(tmp_path / "watched", logger)
    assert len(plain.losses) == 10
    assert torch.equal(torch.stack(plain.losses), torch.stack(watched.losses))
    assert torch.equal(plain_state, watched_state)
    for before, after in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(before, after)
    assert logged_steps(tmp_path / "watched")


@pytest.mark.parametrize("stage", ["validation", "train"])
def test_runs_no_forward_of_its_own(tmp_path, stage):
    plain = fit(tmp_path / "plain")
    watched = fit(tmp_path / "watched", AttentionMapLogger(stage=stage, every_n_steps=1))
    assert plain.calls == watched.calls == 10
    assert [one[:3] for one in plain.seen] == [one[:3] for one in watched.seen]


@pytest.mark.parametrize("stage", ["validation", "train"])
def test_leaves_the_module_as_it_was(tmp_path, stage):
    module = module_class(PACKAGES[0], Encoder)()
    before = {name: set(vars(part)) for name, part in module.named_modules() if name}
    fit(tmp_path, AttentionMapLogger(stage=stage), module=module)
    assert {name: set(vars(part)) for name, part in module.named_modules() if name} == before


# --- what is logged -----------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("stage", ["validation", "train"])
def test_maps_are_the_models_own_at_that_step(tmp_path, package, stage):
    """The module computes its weights by hand in the very step that is watched."""
    logger = AttentionMapLogger(stage=stage, every_n_steps=1, samples=N)
    module = fit(tmp_path, logger, package=package)
    by_hand = {step: weights for of, step, _, weights in module.seen if of == stage}
    maps = read_attention(tmp_path, name=LAYERS[0])
    assert [one.step for one in maps] == sorted(by_hand)
    for one in maps:
        assert one.kind == "self"
        assert one.weights.shape == (N, H, L, L)
        assert_close(torch.tensor(one.weights), by_hand[one.step], rtol=0, atol=3e-5)


@pytest.mark.parametrize("package", PACKAGES)
def test_tuple_batches_and_cross_attention(tmp_path, package):
    module = crossing(package)
    fit(
        tmp_path,
        AttentionMapLogger(samples=[2, 0]),
        module=module,
        train=batches_of_pairs(3),
        validation=batches_of_pairs(1, seed=2),
        package=package,
    )
    maps = read_attention(tmp_path)
    assert [(one.name, one.kind, one.step) for one in maps] == [
        ("attention", "cross", 3),
        ("attention", "cross", 6),
    ]
    by_hand = {step: weights for of, step, _, weights in module.seen if of == "validation"}
    for one in maps:
        assert one.weights.shape == (2, H, L, S)
        assert_close(torch.tensor(one.weights), by_hand[one.step][[2, 0]], rtol=0, atol=3e-5)
        assert one.header.samples == [2, 0]


def test_modules_chooses_by_glob(tmp_path):
    fit(tmp_path, AttentionMapLogger(modules="layers.1.*"))
    assert list(logged_steps(tmp_path)) == [f"attention/{LAYERS[1]}"]


def test_unknown_module_is_refused_before_training(tmp_path):
    module = module_class(PACKAGES[0], Encoder)()
    with pytest.raises(ValueError, match=r"modules='decoder\.\*' matches no module of the model"):
        fit(tmp_path, AttentionMapLogger(modules="decoder.*"), module=module)
    assert module.losses == []


def test_unknown_sample_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"samples=\[3\] are not in .* samples 0 to 2"):
        fit(tmp_path, AttentionMapLogger(samples=[3]))


def test_defaults_log_one_sample_and_at_most_64_positions(tmp_path):
    ids = torch.randint(13, (N, 131))
    fit(tmp_path, AttentionMapLogger(), validation=loader([{"ids": ids}]))
    for one in read_attention(tmp_path):
        assert one.weights.shape == (1, H, 64, 64)
        assert one.header.size == [131, 131]


def test_scores_of_long_sequences_are_those_of_whole_maps(tmp_path):
    batch = {"ids": torch.randint(13, (N, 131), generator=torch.Generator().manual_seed(5))}

    def tokens_of(batch):
        return [[str(one) for one in row] for row in batch["ids"].tolist()]

    module = fit(tmp_path, AttentionMapLogger(tokens=tokens_of), validation=loader([batch]))
    with torch.no_grad(), record_attention(module.eval(), samples=1) as maps:
        module(batch)
    logged = {one.name: one.scores for one in read_attention(tmp_path)}
    for one in maps:
        rows = tokens_of(batch)[:1]
        right = one.with_tokens(rows, rows).scores()
        assert {"induction", "duplicate_token"} <= right.keys()
        for name, values in right.items():
            assert_close(torch.tensor(logged[one.name][name]), values, rtol=1e-4, atol=1e-5)


def test_max_size_none_keeps_the_whole_map(tmp_path):
    ids = torch.randint(13, (N, 67))
    fit(tmp_path, AttentionMapLogger(max_size=None), validation=loader([{"ids": ids}]))
    assert {one.weights.shape for one in read_attention(tmp_path)} == {(1, H, 67, 67)}


def test_softmax_records_attention_written_by_hand(tmp_path):
    class ByHand(Crossing):
        def forward(self, batch):
            x, memory = batch
            return (x @ memory.mT).softmax(-1) @ memory + self.attention.out_proj.bias

    for is_recorded in (False, True):
        folder = tmp_path / str(is_recorded)
        fit(
            folder,
            AttentionMapLogger(softmax=is_recorded),
            module=module_class(PACKAGES[0], ByHand)(),
            train=batches_of_pairs(2),
            validation=batches_of_pairs(1),
        )
        assert bool(logged_steps(folder)) is is_recorded


def test_values_logs_value_weighted_maps_beside_the_others(tmp_path):
    batches = batches_of_ids(1)
    module = fit(tmp_path, AttentionMapLogger(values=True), validation=batches)
    maps = {one.tag: one for one in read_attention(tmp_path)}
    prefixes = ("attention", "attention_by_value")
    assert set(maps) == {f"{prefix}/{name}" for prefix in prefixes for name in LAYERS}
    with torch.no_grad(), record_attention(module.eval(), values=True) as recorded:
        module(next(iter(batches)))
    for one in recorded:
        right = one.value_weighted().weights[:1]
        weighted = maps[f"attention_by_value/{one.name}"]
        atol = 1e-4 * float(right.max())  # as they are kept
        assert_close(torch.tensor(weighted.weights), right, rtol=0, atol=atol)
        assert (weighted.header.measure, weighted.scores) == ("value-weighted", {})
        assert maps[f"attention/{one.name}"].header.measure == "weights"


# --- when ---------------------------------------------------------------------------------------


def test_each_validation_by_default_at_the_steps_done_before_it(tmp_path):
    fit(tmp_path, AttentionMapLogger(), train=7, max_epochs=3)
    assert logged_steps(tmp_path) == {f"attention/{name}": [7, 14, 21] for name in LAYERS}


def test_every_n_epochs_of_validation(tmp_path):
    fit(tmp_path, AttentionMapLogger(every_n_epochs=3), max_epochs=7)
    assert logged_steps(tmp_path, name=LAYERS[0])[f"attention/{LAYERS[0]}"] == [4, 16, 28]


def test_every_n_epochs_of_training_at_the_first_batch(tmp_path):
    fit(tmp_path, AttentionMapLogger(every_n_epochs=2, stage="train"), max_epochs=5)
    assert logged_steps(tmp_path) == {f"attention_train/{name}": [0, 8, 16] for name in LAYERS}


@pytest.mark.parametrize(("every", "steps"), [(1, [8, 16, 24]), (2, [8, 16, 24]), (3, [8, 24])])
def test_every_n_epochs_with_validation_in_some_epochs_only(tmp_path, every, steps):
    """Validation runs at the end of epochs 1, 3, 5, counted from 0."""
    fit(
        tmp_path,
        AttentionMapLogger(every_n_epochs=every),
        max_epochs=6,
        check_val_every_n_epoch=2,
    )
    assert logged_steps(tmp_path)[f"attention/{LAYERS[0]}"] == steps


def test_every_validation_inside_an_epoch(tmp_path):
    fit(tmp_path, AttentionMapLogger(every_n_epochs=2), train=6, val_check_interval=2, max_epochs=3)
    assert logged_steps(tmp_path)[f"attention/{LAYERS[0]}"] == [2, 4, 6, 14, 16, 18]


def test_every_n_steps_of_validation(tmp_path):
    fit(tmp_path, AttentionMapLogger(every_n_steps=5), train=8, val_check_interval=2)
    assert logged_steps(tmp_path)[f"attention/{LAYERS[0]}"] == [2, 8, 14]


def test_every_n_steps_of_training(tmp_path):
    fit(tmp_path, AttentionMapLogger(every_n_steps=3, stage="train"), train=5)
    assert logged_steps(tmp_path)[f"attention_train/{LAYERS[0]}"] == [0, 3, 6, 9]


def test_steps_are_optimizer_steps_under_accumulation(tmp_path):
    """Seven batches make steps of 3, 3 and 1 batches; the first batch of each is watched."""
    logger = AttentionMapLogger(every_n_steps=1, stage="train", samples=N)
    module = fit(tmp_path / "train", logger, train=7, accumulate_grad_batches=3)
    assert [step for of, step, _, _ in module.seen if of == "train"] == [
        *(0, 0, 0, 1, 1, 1, 2),
        *(3, 3, 3, 4, 4, 4, 5),
    ]
    maps = read_attention(tmp_path / "train", name=LAYERS[0])
    assert [one.step for one in maps] == [0, 1, 2, 3, 4, 5]
    first_of = {}
    for stage, step, _, weights in module.seen:
        if stage == "train":
            first_of.setdefault(step, weights)
    for one in maps:
        assert_close(torch.tensor(one.weights), first_of[one.step], rtol=0, atol=3e-5)

    fit(tmp_path / "val", AttentionMapLogger(), train=7, accumulate_grad_batches=3)
    assert logged_steps(tmp_path / "val")[f"attention/{LAYERS[0]}"] == [3, 6]


def test_each_validation_loader_has_a_name_of_its_own(tmp_path):
    validation = [batches_of_ids(2, seed=3), batches_of_ids(1, seed=4)]
    module = fit(tmp_path, AttentionMapLogger(samples=N), validation=validation, max_epochs=1)
    assert logged_steps(tmp_path, name=LAYERS[0]) == {
        f"attention_dataloader_0/{LAYERS[0]}": [4],
        f"attention_dataloader_1/{LAYERS[0]}": [4],
    }
    first_of = {}
    for stage, _, dataloader_idx, weights in module.seen:
        if stage == "validation":
            first_of.setdefault(dataloader_idx, weights)
    for i, one in enumerate(read_attention(tmp_path, name=LAYERS[0])):
        assert_close(torch.tensor(one.weights), first_of[i], rtol=0, atol=3e-5)


def test_loaders_that_run_together_are_one_batch(tmp_path):
    from pytorch_lightning.utilities import CombinedLoader

    class Both(Encoder):
        def validation_step(self, batch, batch_idx):
            return self.step("validation", batch["a"])

    loaders = {"a": batches_of_ids(2), "b": batches_of_ids(3)}
    fit(
        tmp_path,
        AttentionMapLogger(),
        module=module_class(PACKAGES[0], Both)(),
        validation=CombinedLoader(loaders, "max_size_cycle"),
    )
    assert logged_steps(tmp_path) == {f"attention/{name}": [4, 8] for name in LAYERS}


def test_silent_during_the_sanity_check(tmp_path):
    module = fit(tmp_path, AttentionMapLogger(), num_sanity_val_steps=1, max_epochs=1)
    assert [one[:2] for one in module.seen][:2] == [("validation", 0), ("train", 0)]
    assert logged_steps(tmp_path)[f"attention/{LAYERS[0]}"] == [4]


def test_validate_alone_is_logged(tmp_path):
    trainer = make_trainer(tmp_path, [AttentionMapLogger()])
    trainer.validate(module_class(PACKAGES[0], Encoder)(), batches_of_ids(1), verbose=False)
    assert logged_steps(tmp_path) == {f"attention/{name}": [0] for name in LAYERS}


def test_a_second_run_with_the_same_callback_starts_afresh(tmp_path):
    logger = AttentionMapLogger(every_n_steps=3)
    for run in ("first", "second"):
        fit(tmp_path / run, logger)
        assert logged_steps(tmp_path / run)[f"attention/{LAYERS[0]}"] == [4, 8]


def test_training_and_validation_logged_together(tmp_path):
    fit(tmp_path, AttentionMapLogger(), AttentionMapLogger(stage="train"), max_epochs=1)
    assert logged_steps(tmp_path, name=LAYERS[0]) == {
        f"attention_train/{LAYERS[0]}": [0],
        f"attention/{LAYERS[0]}": [4],
    }


# --- values that cannot be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"every_n_epochs": 0}, ValueError, "every_n_epochs=0 must be at least 1"),
        ({"every_n_steps": 2.5}, TypeError, "every_n_steps=2.5 must be an int, not float"),
        ({"every_n_steps": True}, TypeError, "every_n_steps=True must be an int, not bool"),
        (
            {"every_n_epochs": 1, "every_n_steps": 1},
            ValueError,
            "every_n_epochs and every_n_steps exclude each other; give one",
        ),
        ({"max_size": 0}, ValueError, "max_size=0 must be at least 1"),
        ({"samples": 0}, ValueError, "samples=0 must be at least 1"),
        ({"samples": []}, ValueError, "samples=[] must name at least one index"),
        ({"samples": [-1]}, ValueError, "samples=[-1] must name at least one index"),
        ({"samples": "all"}, TypeError, "samples='all' must be an int or a list of ints, not str"),
        ({"stage": "test"}, ValueError, "stage='test' must be 'validation' or 'train'"),
        ({"modules": 3}, TypeError, "modules=3 must be a glob of module paths or a list of them"),
        ({"tokens": "abc"}, TypeError, "tokens='abc' must be a function of the batch or a token"),
        ({"scalars": 1}, TypeError, "scalars=1 must be a bool, not int"),
        ({"scalars": True, "scores": False}, ValueError, "scalars=True needs scores=True"),
        ({"scores": "yes"}, TypeError, "scores='yes' must be a bool, not str"),
        ({"images": 1}, TypeError, "images=1 must be a bool, not int"),
        ({"softmax": None}, TypeError, "softmax=None must be a bool, not NoneType"),
    ],
)
def test_values_that_cannot_be_are_refused_at_once(options, error, sentence):
    with pytest.raises(error, match=re.escape(sentence)):
        AttentionMapLogger(**options)


def test_no_validation_to_watch_is_said(tmp_path):
    with pytest.warns(UserWarning, match="has no validation to watch: .* or choose stage='train'"):
        fit(tmp_path, AttentionMapLogger(), validation=None)


def test_validation_switched_off_is_no_mistake(tmp_path):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*AttentionMapLogger")
        fit(tmp_path, AttentionMapLogger(), limit_val_batches=0)
        fit(tmp_path, AttentionMapLogger(stage="train"), validation=None)


def test_a_model_without_attention_is_one_warning(tmp_path):
    module = module_class(PACKAGES[0], NoAttention)()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(
            tmp_path,
            AttentionMapLogger(),
            module=module,
            train=batches_of_pairs(2),
            validation=batches_of_pairs(1),
            max_epochs=3,
        )
    said = [str(one.message) for one in caught if "attention" in str(one.message)]
    assert len(said) == 1
    assert re.search("no attention of NoAttention was recorded.*no attention function", said[0])
    assert len(module.losses) == 9
    assert logged_steps(tmp_path) == {}


def test_a_step_without_attention_silences_no_later_one(tmp_path):
    class Late(Encoder):
        def forward(self, batch):
            if self.trainer.global_step < 8:
                return self.embedding(batch["ids"])
            return super().forward(batch)

    with pytest.warns(UserWarning, match="no attention of Late was recorded"):
        fit(tmp_path, AttentionMapLogger(), module=module_class(PACKAGES[0], Late)(), max_epochs=3)
    assert logged_steps(tmp_path)[f"attention/{LAYERS[0]}"] == [8, 12]


def test_attention_that_ends_is_said(tmp_path):
    class Early(Encoder):
        def forward(self, batch):
            x = self.embedding(batch["ids"])
            return x if self.trainer.global_step > 4 else self.encoder(x)

    with pytest.warns(UserWarning, match="no attention of Early was recorded"):
        fit(tmp_path, AttentionMapLogger(), module=module_class(PACKAGES[0], Early)(), max_epochs=3)
    assert logged_steps(tmp_path)[f"attention/{LAYERS[0]}"] == [4]
