"""Where maps go: TensorBoard, Weights & Biases, MLflow, files; what the options leave out."""

import csv
import io
from importlib import import_module

import matplotlib.image
import numpy as np
import pytest
import torch
from stand_in_loggers import LikeMLflow, LikeWandb, make_logger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_modules import (
    PACKAGES,
    Crossing,
    Encoder,
    H,
    L,
    batches_of_ids,
    batches_of_pairs,
    fit,
    logged_steps,
    module_class,
)
from torch import nn
from torch.testing import assert_close

from mha_lab import AttentionMapLogger
from mha_lab.maps.attention_map import AttentionMap
from mha_lab.tensorboard.reader import read_attention

LAYERS = ("encoder.layers.0.self_attn", "encoder.layers.1.self_attn")
SCORES = {"entropy", "confidence", "sparsity", "previous_token", "diagonal"}


class Twice(Encoder):
    """Calls its encoder twice in a forward."""

    def forward(self, batch):
        return super().forward(batch) + self.encoder(self.embedding(batch["ids"]))


def events(folder):
    accumulator = EventAccumulator(str(folder), {"images": 0, "scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def picture_tags(folder):
    return set(events(folder).Tags()["images"])


def scalar_tags(folder):
    return {tag for tag in events(folder).Tags()["scalars"] if tag.startswith("attention")}


def first_layer(module):
    """By hand: what the first layer looks at in the first sample of each validation, by step."""
    return {step: weights[:1] for stage, step, _, weights in module.seen if stage == "validation"}


def entropy(weights):
    """By hand: -Σ w ln w, the mean over queries, of each head of the first sample."""
    return -(weights * weights.log()).sum(-1).mean(-1)[0]


# --- TensorBoard --------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
def test_tensorboard_is_given_tensors_scalars_pictures_and_a_heatmap(tmp_path, package):
    module = fit(tmp_path, AttentionMapLogger(scalars=True), package=package)
    run, by_hand = tmp_path / "run", first_layer(module)
    assert sorted(by_hand) == [4, 8]

    for one in read_attention(run, name=LAYERS[0]):
        assert_close(torch.tensor(one.weights), by_hand[one.step], rtol=0, atol=3e-5)
        assert set(one.scores) == SCORES
        assert_close(torch.tensor(one.scores["entropy"]), entropy(by_hand[one.step]))

    assert scalar_tags(run) == {
        f"attention_{score}/{layer}/head_{head}"
        for score in SCORES
        for layer in LAYERS
        for head in range(H)
    }
    for head in range(H):
        logged = events(run).Scalars(f"attention_entropy/{LAYERS[0]}/head_{head}")
        assert [one.step for one in logged] == [4, 8]
        for one in logged:
            assert one.value == pytest.approx(float(entropy(by_hand[one.step])[head]), abs=1e-5)

    maps = {f"attention_maps/{layer}" for layer in LAYERS}
    assert picture_tags(run) == maps | {"attention_scores/heads"}
    for tag in picture_tags(run):
        logged = events(run).Images(tag)
        assert [one.step for one in logged] == [4, 8]
        for one in logged:
            pixels = matplotlib.image.imread(io.BytesIO(one.encoded_image_string))
            assert pixels.shape[:2] == (one.height, one.width)
            assert pixels[..., :3].std() > 0.05, "an empty picture"


def test_each_sample_has_a_picture(tmp_path):
    fit(tmp_path, AttentionMapLogger(samples=[2, 0], modules="*0.self_attn"))
    assert picture_tags(tmp_path / "run") == {
        f"attention_maps/{LAYERS[0]}/sample_2",
        f"attention_maps/{LAYERS[0]}/sample_0",
        "attention_scores/heads",
    }


def test_without_images_there_are_no_pictures(tmp_path):
    fit(tmp_path, AttentionMapLogger(images=False, scalars=True))
    assert picture_tags(tmp_path / "run") == set()
    assert scalar_tags(tmp_path / "run")
    assert logged_steps(tmp_path)


def test_scores_are_scalars_by_choice_only(tmp_path):
    fit(tmp_path, AttentionMapLogger())
    assert scalar_tags(tmp_path / "run") == set()
    assert all(set(one.scores) == SCORES for one in read_attention(tmp_path))
    assert "attention_scores/heads" in picture_tags(tmp_path / "run")


def test_without_scores_there_are_maps_only(tmp_path):
    fit(tmp_path, AttentionMapLogger(scores=False))
    assert picture_tags(tmp_path / "run") == {f"attention_maps/{layer}" for layer in LAYERS}
    assert scalar_tags(tmp_path / "run") == set()
    assert all(one.scores == {} for one in read_attention(tmp_path))


def test_prefixes_of_training(tmp_path):
    fit(tmp_path, AttentionMapLogger(stage="train", modules="layers.0", scalars=True))
    assert picture_tags(tmp_path / "run") == {
        f"attention_train_maps/{LAYERS[0]}",
        "attention_train_scores/heads",
    }
    tags = scalar_tags(tmp_path / "run")
    assert tags
    assert all(tag.startswith("attention_train_") for tag in tags)


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("kind", ["csv", "none"])
def test_files_where_no_logger_shows_pictures(tmp_path, kind, package):
    logger, folder = False, tmp_path
    if kind == "csv":
        loggers = import_module(package).loggers
        logger = loggers.CSVLogger(tmp_path, name="some", version="run")
        folder = tmp_path / "some" / "run"
    module = fit(tmp_path, AttentionMapLogger(), logger=logger, package=package)
    folder, by_hand = folder / "attention", first_layer(module)
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        "scores.csv",
        *(
            f"step_{step:08d}/{name}"
            for step in (4, 8)
            for name in sorted(
                [*(f"{layer}{end}" for layer in LAYERS for end in (".npz", ".png")), "heads.png"]
            )
        ),
    ]
    for step, expected in by_hand.items():
        stored = AttentionMap.load(folder / f"step_{step:08d}" / f"{LAYERS[0]}.npz")
        assert stored.weights.shape == (1, H, L, L)
        assert_close(stored.weights.float(), expected, rtol=0, atol=5e-4)  # kept as float16
        pixels = matplotlib.image.imread(folder / f"step_{step:08d}" / f"{LAYERS[0]}.png")
        assert pixels[..., :3].std() > 0.05, "an empty picture"

    rows = list(csv.DictReader((folder / "scores.csv").open()))
    assert len(rows) == 2 * len(LAYERS) * len(SCORES) * H
    for row in rows:
        if row["map"] == LAYERS[0] and row["score"] == "entropy":
            expected = float(entropy(by_hand[int(row["step"])])[int(row["head"])])
            assert float(row["value"]) == pytest.approx(expected, abs=1e-5)


def test_files_follow_the_options(tmp_path):
    fit(tmp_path, AttentionMapLogger(images=False, scores=False), logger=False, max_epochs=1)
    files = sorted(path.name for path in (tmp_path / "attention").rglob("*.*"))
    assert files == [f"{layer}.npz" for layer in LAYERS]


def test_files_of_a_module_with_a_slash_in_its_name(tmp_path):
    class Slash(Crossing):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"a/b": self.attention})
            del self.attention

        attention = property(lambda self: self.parts["a/b"])

    fit(
        tmp_path,
        AttentionMapLogger(),
        module=module_class(PACKAGES[0], Slash)(),
        train=batches_of_pairs(4),
        validation=batches_of_pairs(1),
        logger=False,
    )
    files = {path.name for path in (tmp_path / "attention" / "step_00000004").iterdir()}
    assert files == {"parts.a.b.npz", "parts.a.b.png", "heads.png"}


def test_files_of_several_loaders_lie_apart(tmp_path):
    validation = [batches_of_ids(1), batches_of_ids(1)]
    fit(tmp_path, AttentionMapLogger(), logger=False, validation=validation)
    folders = {path.name for path in tmp_path.glob("attention*")}
    assert folders == {"attention_dataloader_0", "attention_dataloader_1"}


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("logger", [True, False])
def test_a_fast_dev_run_leaves_no_files(tmp_path, logger, package, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = fit(tmp_path, AttentionMapLogger(), fast_dev_run=2, logger=logger, package=package)
    assert len(module.losses) == 3
    assert list(tmp_path.rglob("*")) == []


# --- other loggers ------------------------------------------------------------------------------


def assert_pictures(images):
    for name, _, pixels in images:
        assert pixels.ndim == 3, name
        assert pixels.shape[2] == 3
        assert pixels.dtype == np.uint8
        assert pixels.std() > 10, "an empty picture"


@pytest.mark.parametrize("package", PACKAGES)
def test_wandb_is_given_pictures_and_scores(tmp_path, package):
    logger = make_logger(LikeWandb, package)
    module = fit(tmp_path, AttentionMapLogger(), logger=logger, package=package)
    tags = [*(f"attention_maps/{layer}" for layer in LAYERS), "attention_scores/heads"]
    assert [one[:2] for one in logger.images] == [(tag, step) for step in (4, 8) for tag in tags]
    assert_pictures(logger.images)
    by_hand = first_layer(module)
    assert [step for step, _ in logger.metrics] == [4, 8]
    for step, metrics in logger.metrics:
        assert len(metrics) == len(LAYERS) * len(SCORES) * H
        assert metrics[f"attention_entropy/{LAYERS[0]}/head_1"] == pytest.approx(
            float(entropy(by_hand[step])[1]), abs=1e-5
        )
    assert list(tmp_path.rglob("*.*")) == []


def test_mlflow_is_given_pictures_and_scores(tmp_path):
    logger = make_logger(LikeMLflow)
    fit(tmp_path, AttentionMapLogger(), logger=logger)
    tags = [*(f"attention_maps/{layer}" for layer in LAYERS), "attention_scores/heads"]
    assert [one[0] for one in logger.images] == [
        f"{tag}/step_{step:08d}.png" for step in (4, 8) for tag in tags
    ]
    assert_pictures(logger.images)
    assert [step for step, _ in logger.metrics] == [4, 8]
    assert len(logger.metrics[0][1]) == len(LAYERS) * len(SCORES) * H
    assert list(tmp_path.rglob("*.*")) == []


def test_mlflow_takes_repeated_calls_of_a_module(tmp_path):
    """Their names, "self_attn#2", are none that MLflow allows."""
    logger = make_logger(LikeMLflow)
    module = module_class(PACKAGES[0], Twice)()
    fit(tmp_path, AttentionMapLogger(), logger=logger, module=module, max_epochs=1)
    names = list(logger.metrics[0][1])
    assert len(names) == 2 * len(LAYERS) * len(SCORES) * H
    assert f"attention_entropy/{LAYERS[0]}/head_0" in names
    assert f"attention_entropy/{LAYERS[0]}-2/head_0" in names


@pytest.mark.parametrize(("kind", "is_off"), [(LikeWandb, "images"), (LikeMLflow, "scores")])
def test_other_loggers_follow_the_options(tmp_path, kind, is_off):
    logger = make_logger(kind)
    fit(tmp_path, AttentionMapLogger(**{is_off: False}), logger=logger)
    assert bool(logger.images) is (is_off != "images")
    assert bool(logger.metrics) is (is_off != "scores")


def test_several_loggers_together(tmp_path):
    from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger

    wandb, mlflow = make_logger(LikeWandb), make_logger(LikeMLflow)
    loggers = [
        CSVLogger(tmp_path / "csv", name="", version=""),
        TensorBoardLogger(tmp_path, name="", version="run"),
        wandb,
        mlflow,
    ]
    fit(tmp_path, AttentionMapLogger(), logger=loggers)
    assert logged_steps(tmp_path) == {f"attention/{layer}": [4, 8] for layer in LAYERS}
    assert len(picture_tags(tmp_path / "run")) == 3
    assert len(wandb.images) == len(mlflow.images) == 6
    assert len(wandb.metrics) == len(mlflow.metrics) == 2
    assert list(tmp_path.rglob("*.npz")) == []
