"""Training runs: what they leave behind, and that resuming is exact."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from omegaconf import OmegaConf
from small_runs import TINY

from mha_lab import config
from mha_lab.run import train
from mha_lab.training.run_folder import read_summary

Lab = Callable[..., tuple[int, str, str]]


def weights(run: Path) -> dict[str, torch.Tensor]:
    return torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_run_leaves_its_files(trained: Path):
    summary = json.loads((trained / "summary.json").read_text())
    assert summary["task"] == "copy"
    assert summary["attention"] == "custom"
    assert summary["model"] == "encoder_decoder"
    assert summary["steps"] == 10
    assert summary["status"] == "finished"
    for key in ("position", "seed", "wall_seconds", "parameters", "test/loss",
                "test/token_accuracy", "test/sequence_accuracy"):  # fmt: skip
        assert key in summary
    assert (trained / "vocabulary.json").is_file()
    assert (trained / "checkpoints" / "best.ckpt").is_file()
    assert list(trained.glob("events.out.tfevents.*"))
    assert not list(trained.glob("*.log")), "nothing was logged"


def test_metrics_csv_has_every_metric(trained: Path):
    metrics = rows(trained / "metrics.csv")
    filled = {key for row in metrics for key, value in row.items() if value}
    assert {
        "step", "epoch", "train/loss", "train/learning_rate", "train/gradient_norm",
        "train/sequences_per_second", "val/loss", "val/token_accuracy", "val/sequence_accuracy",
        "test/loss", "test/sequence_accuracy",
    } <= filled  # fmt: skip
    assert len({row["step"] for row in metrics}) == len(metrics)


def test_accuracy_by_length_counts_the_whole_test_set(trained: Path):
    by_length = rows(trained / "accuracy_by_length.csv")
    assert sum(int(row["sequences"]) for row in by_length) == 29
    assert all(1 <= int(row["length"]) <= 10 for row in by_length)


def test_the_last_line_is_the_folder(lab: Lab, tmp_path: Path):
    code, out, _ = lab(
        "train", "task=sort", *TINY, "trainer.max_steps=5", f"hydra.run.dir={tmp_path / 'r'}"
    )
    assert code == 0
    assert out.strip().splitlines()[-1] == str(tmp_path / "r")
    assert "python -m mha_lab dashboard" in out


FEW = ("copy", "sort", "mqar")  # of each kind one is enough for the fast tests


@pytest.mark.parametrize(
    "experiment",
    [
        pytest.param(name, marks=() if name in FEW else pytest.mark.slow)
        for name in sorted(config.options("experiment"))
    ],
)
@pytest.mark.filterwarnings("ignore:.*sequences were asked for")
def test_every_experiment_runs_two_steps(experiment: str, tmp_path: Path):
    overrides = [f"+experiment={experiment}", "trainer.max_steps=2", "data.batch_size=7",
                 "data.validation_size=11", "data.test_size=13",
                 "trainer.enable_progress_bar=false", "logger=csv"]  # fmt: skip
    if experiment not in FEW:
        overrides += ["callbacks.attention_maps=null"]
    summary = train(config.compose(overrides, run_dir=tmp_path))
    assert summary["steps"] == 2
    assert summary["experiment"] == experiment


@pytest.mark.parametrize(
    "choice",
    [
        "attention=builtin", "attention=masked_decoder", "model=encoder", "model=decoder",
        "position=none", "position=sinusoidal", "logger=csv", "optimizer.decay=cosine",
        "trainer.accumulate_grad_batches=2", "data.train_size=17", "model.norm=post",
        "trainer.precision=bf16-mixed",
    ],
)  # fmt: skip
def test_every_choice_trains(choice: str, tmp_path: Path):
    summary = train(config.compose([*TINY, choice, "trainer.max_steps=2"], run_dir=tmp_path))
    assert summary["status"] == "finished"
    assert 0 < summary["test/loss"] < 10


def test_the_recurrent_baseline_has_no_attention(tmp_path: Path):
    small = [word for word in TINY if "num_heads" not in word]
    cfg = config.compose([*small, "model=recurrent", "trainer.max_steps=2"], run_dir=tmp_path)
    assert train(cfg)["attention"] == "none"


def test_the_same_seed_gives_the_same_run_and_another_seed_another(tmp_path: Path):
    for name, seed in (("a", 3), ("b", 3), ("c", 5)):
        overrides = [*TINY, "trainer.max_steps=5", f"seed={seed}", "model.dropout=0.1"]
        train(config.compose(overrides, run_dir=tmp_path / name))
    a, b, c = (weights(tmp_path / name) for name in "abc")
    assert all(torch.equal(a[key], b[key]) for key in a)
    assert not all(torch.equal(a[key], c[key]) for key in a)


@pytest.mark.parametrize("stopped_at", [5, 8])  # at a validation, and between two
def test_resuming_is_exact(stopped_at: int, lab: Lab, tmp_path: Path):
    overrides = [*TINY, "model.dropout=0.2", "optimizer.weight_decay=0.1"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(config.compose([*overrides, "trainer.max_steps=13"], run_dir=whole))
    train(config.compose([*overrides, f"trainer.max_steps={stopped_at}"], run_dir=parts))
    code, _, err = lab("train", f"resume={parts}", "trainer.max_steps=13")
    assert code == 0, err
    expected, found = weights(whole), weights(parts)
    assert all(torch.equal(expected[key], found[key]) for key in expected)
    losses = [[row["train/loss"] for row in rows(run / "metrics.csv")] for run in (whole, parts)]
    assert losses[0] == losses[1]


def test_resuming_with_a_finite_set_and_accumulation_is_exact(lab: Lab, tmp_path: Path):
    overrides = [*TINY, "data.train_size=17", "trainer.accumulate_grad_batches=2"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(config.compose([*overrides, "trainer.max_steps=10"], run_dir=whole))
    train(config.compose([*overrides, "trainer.max_steps=5"], run_dir=parts))
    assert lab("train", f"resume={parts}", "trainer.max_steps=10")[0] == 0
    expected, found = weights(whole), weights(parts)
    assert all(torch.equal(expected[key], found[key]) for key in expected)


def test_a_solved_run_stays_solved(lab: Lab, tmp_path: Path):
    run = tmp_path / "run"
    target = "mha_lab.callbacks.stop_when_solved.StopWhenSolved"
    settings = f"_target_:{target},threshold:0.001,monitor:val/token_accuracy"
    solved = f"callbacks.stop_when_solved={{{settings}}}"
    summary = train(config.compose([*TINY, solved, "trainer.max_steps=400"], run_dir=run))
    assert summary["steps"] < 400
    assert summary["status"] == "solved"
    before = weights(run)
    code, out, err = lab("train", f"resume={run}")
    assert code == 0
    assert f"the run had ended (solved at step {summary['steps']})" in err
    assert f"{summary['steps']} (solved)" in out
    assert read_summary(run)["train_seconds"] > 0.5 * summary["train_seconds"]  # of both parts
    assert all(torch.equal(before[key], value) for key, value in weights(run).items())


def test_a_used_folder_is_refused_and_left_alone(lab: Lab, trained: Path):
    before = {file: file.stat().st_mtime_ns for file in trained.rglob("*") if file.is_file()}
    code, _, err = lab("train", f"hydra.run.dir={trained}", *TINY)
    assert code == 2
    assert "already holds a run" in err
    assert before == {
        file: file.stat().st_mtime_ns for file in trained.rglob("*") if file.is_file()
    }


class Refusing(pl.Callback):
    """Finds, when the Trainer is set up, that it cannot work."""

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        raise MisconfigurationException("there is no such device")


def test_what_fails_before_the_first_step_leaves_no_run(lab: Lab, tmp_path: Path):
    words = ["train", *TINY, "trainer.max_steps=2", f"hydra.run.dir={tmp_path / 'run'}"]
    refusing = f"+callbacks.refusing={{_target_:{__name__}.Refusing}}"
    code, _, err = lab(*words, refusing)
    assert (code, err) == (2, "mha_lab: trainer: there is no such device\n")
    assert not (tmp_path / "run" / "config.yaml").exists()
    assert lab(*words)[0] == 0, "the same folder must do for the next try"


def test_what_a_recipe_sets_and_the_model_has_not(lab: Lab):
    words = ["train", "+experiment=mingpt_sort", "model=recurrent"]
    code, _, err = lab(*words)
    assert code == 2
    assert "if a recipe sets it, leave it out with ~model.activation" in err
    assert lab(*words, "~model.activation", "--cfg", "job")[0] == 0


def test_where_nothing_can_be_built_nothing_is_begun(lab: Lab, tmp_path: Path):
    code, out, err = lab(
        "train", "-m", *(word for word in TINY if "num_heads" not in word),
        "attention=builtin,custom", "model.num_heads=3", "seed=1,2",
        f"hydra.sweep.dir={tmp_path / 'made'}",
    )  # fmt: skip
    assert code == 2
    assert "attention=builtin model.num_heads=3" in err
    assert "divisible" in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "made").exists()
    assert not out.strip()


def test_a_multirun_tells_at_first_what_cannot_be_built_and_ends_with_its_table(
    lab: Lab, tmp_path: Path
):
    code, out, err = lab(
        "train", "-m", *(word for word in TINY if "num_heads" not in word),
        "trainer.max_steps=5", "attention=builtin,custom", "model.num_heads=2,3",
        f"hydra.sweep.dir={tmp_path}",
    )  # fmt: skip
    assert code == 2  # three heads do not divide a width of 16; the other two runs went on
    builtin, custom = err.splitlines()
    assert "attention=builtin model.num_heads=3 cannot be trained, only the others are: " in builtin
    assert "attention=custom model.num_heads=3 cannot be trained, only the others are: " in custom
    table = rows(tmp_path / "summary.csv")
    assert {(row["attention"], row["model.num_heads"], row["status"]) for row in table} == {
        ("builtin", "2", "finished"), ("builtin", "3", "failed"),
        ("custom", "2", "finished"), ("custom", "3", "failed"),
    }  # fmt: skip
    assert all("divisible" in row["reason"] for row in table if row["status"] == "failed")
    assert out.strip().splitlines()[-1] == str(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["attention=cutsom"], "custom"),
        (["model.embed_dmi=8"], "model.embed_dim"),
        (["+model.foo=3"], "model.foo"),
        (["model.num_heads=3"], "divisible"),
        (["model.embed_dim=abc"], "model.embed_dim must be a whole number of at least 1"),
        (["model.embed_dim=0"], "embed_dim"),
        (["model.dropout=1.5"], "dropout"),
        (["trainer=gpu"], "GPU"),
        (["trainer.max_steps=0"], "trainer.max_steps"),
        (["trainer.precision=33"], "precision"),
        (["position=learned", "position.max_length=5"], "max_length"),
        (["task.min_length=9", "task.max_length=3"], "min_length"),
        (["seed=-1"], "seed"),
        (["seed=1.5"], "seed"),
        (["data.batch_size=0"], "batch_size"),
        (["optimizer.lr=-1"], "optimizer.lr"),
        (["task=files", "task.train=/nowhere/a.jsonl", "task.validation=/nowhere/a.jsonl",
          "task.test=/nowhere/a.jsonl"], "/nowhere/a.jsonl"),
        (["task=files"], "task.train"),
        (["resume=/nowhere"], "/nowhere"),
        (["--steps", "5"], "unknown option '--steps'"),
        (["--multirn", "seed=1,2"], "did you mean '--multirun'"),
        (["-m", "seed=1,2", "--cfg", "job"], "without -m"),
        (["--cfg", "job", "seed=abc"], "seed must be a whole number"),
        (["-c", "job", "trainer.max_steps=0"], "trainer.max_steps must be"),
        (["--cfg=all", "+experiment=copy", "optimizer.lr=abc"], "optimizer.lr must be"),
        (["logger._target_=os.system"], "logger"),
        (["callbacks.stop_when_solved={_target_:nowhere.X}"], "nowhere"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_exit_code_2(
    words: list[str], said: str, lab: Lab, tmp_path: Path
):
    if words == ["trainer=gpu"] and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    where = [] if words[0].startswith("resume") else [f"hydra.run.dir={tmp_path / 'r'}"]
    code, _, err = lab("train", *words, *where)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "r").exists()  # else a report would count it as an unfinished run


def test_checkpoints_that_are_all_corrupt_are_one_sentence(lab: Lab, trained: Path, tmp_path: Path):
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    for file in (run / "checkpoints").glob("*.ckpt"):
        file.write_bytes(file.read_bytes()[:1000])
    code, _, err = lab("train", f"resume={run}", "trainer.max_steps=20")
    assert code == 2
    assert "corrupt" in err
    for file in (run / "checkpoints").glob("*.ckpt"):
        file.unlink()
    code, _, err = lab("train", f"resume={run}", "trainer.max_steps=20")
    assert code == 2  # it had finished: to begin again would lose what it found
    assert "no checkpoint" in err


def test_a_run_that_weight_decay_blew_up_names_it(lab: Lab, tmp_path: Path):
    code, _, err = lab(
        "train", *TINY, "optimizer.weight_decay=1e30", "optimizer.warmup_steps=0",
        "trainer.max_steps=20", f"hydra.run.dir={tmp_path / 'r'}",
    )  # fmt: skip
    assert code == 1
    assert "lower optimizer.weight_decay (now 1e+30" in err.strip().splitlines()[-1]


def test_the_checkpoint_of_another_model_is_refused_and_nothing_changed(
    lab: Lab, trained: Path, tmp_path: Path
):
    run = shutil.copytree(trained, tmp_path / "run")
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    code, _, err = lab("train", f"resume={run}", "model.embed_dim=8")
    assert code == 2
    assert "does not fit the model" in err
    assert before == {file: file.read_bytes() for file in before}


def test_a_checkpoint_that_lacks_what_training_needs_is_refused(
    lab: Lab, trained: Path, tmp_path: Path
):
    run = shutil.copytree(trained, tmp_path / "run")
    last = run / "checkpoints" / "last.ckpt"
    whole = torch.load(last, weights_only=True)
    only_weights = {key: value for key, value in whole.items() if key != "loops"}
    for content in (only_weights, whole | {"optimizer_states": [{}]}):
        torch.save(content, last)
        (run / "checkpoints" / "best.ckpt").unlink(missing_ok=True)
        code, _, err = lab("train", f"resume={run}", "trainer.max_steps=20")
        assert code == 2
        assert "no checkpoint that a run can go on from" in err.strip().splitlines()[-1]


def test_a_run_of_an_earlier_version_goes_on_where_it_is(lab: Lab, trained: Path, tmp_path: Path):
    run, once = shutil.copytree(trained, tmp_path / "run"), tmp_path / "once"
    cfg = OmegaConf.load(run / "config.yaml")
    cfg.run_dir = str(once)
    cfg.callbacks.progress_bar._target_ = "pytorch_lightning.callbacks.TQDMProgressBar"
    cfg.callbacks.checkpoint = {
        "_target_": "pytorch_lightning.callbacks.ModelCheckpoint",
        "dirpath": str(once / "checkpoints"), "filename": "best", "monitor": "val/loss",
        "mode": "min", "save_last": True, "enable_version_counter": False,
    }  # fmt: skip
    OmegaConf.save(cfg, run / "config.yaml")
    for name in ("last", "best"):
        file = run / "checkpoints" / f"{name}.ckpt"
        content = torch.load(file, weights_only=True)
        del content["growing_files"]
        score = {"monitor": "val/loss", "best_model_score": torch.tensor(0.0)}
        content["callbacks"] = {"ModelCheckpoint{'monitor': 'val/loss'}": score}
        torch.save(content, file)
    best = (run / "checkpoints" / "best.ckpt").read_bytes()
    code, _, err = lab("train", f"resume={run}", "trainer.max_steps=15")
    assert code == 0, err
    assert read_summary(run)["steps"] == 15
    assert not once.exists()
    assert (run / "checkpoints" / "best.ckpt").read_bytes() == best  # none was below a loss of 0


def test_a_run_has_its_time(lab: Lab, tmp_path: Path):
    words = ["+trainer.max_time='00:00:00:01'", "trainer.max_steps=1000000"]
    code, _, err = lab("train", *TINY, *words, f"hydra.run.dir={tmp_path / 'r'}")
    assert code == 0, err
    assert read_summary(tmp_path / "r")["status"] == "finished"


def test_a_diverged_run_says_so(lab: Lab, tmp_path: Path):
    code, _, err = lab(
        "train", *TINY, "optimizer.lr=1e30", "optimizer.warmup_steps=0", "trainer.max_steps=50",
        "trainer.gradient_clip_val=null", f"hydra.run.dir={tmp_path / 'r'}",
    )  # fmt: skip
    assert code == 1
    assert "diverged" in err
    assert "Traceback" not in err
