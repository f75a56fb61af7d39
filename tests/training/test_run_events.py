"""Which tags a run's events have: TensorBoard sorts them, and opens the first two groups."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mha_lab import config
from mha_lab.run.trainer import build_loggers
from mha_lab.training.run_events import RunEvents, grouped


def test_losses_come_first_and_what_is_told_of_the_whole_run_last(tmp_path: Path) -> None:
    events = RunEvents(str(tmp_path), name="", version="", default_hp_metric=False)
    events.log_metrics({"train/loss": 3.0, "epoch": 0}, step=7)
    events.log_metrics({"val/loss": 2.0, "epoch": 0}, step=11)
    events.log_metrics({"attention": 1.0}, step=11)
    summary = {"steps": 13, "parameters": 17, "test/loss": 0.5}
    events.log_hyperparams({"seed": 0}, grouped(summary), step=13)
    events.finalize("success")
    loaded = EventAccumulator(str(tmp_path))
    loaded.Reload()
    tags = sorted(loaded.Tags()["scalars"])
    assert list(dict.fromkeys(tag.split("/")[0] for tag in tags)) == [
        "test", "train", "val", "whole_run",
    ]  # fmt: skip
    assert [one.value for one in loaded.Scalars("whole_run/parameters")] == [17.0]
    assert loaded.Scalars("whole_run/epoch")[0].step == 7


def test_a_run_logs_so_and_its_config_names_what_older_ones_name(tmp_path: Path) -> None:
    cfg = config.compose(["task=copy", "+logger.flush_secs=7"], run_dir=tmp_path)
    assert cfg.logger._target_ == "pytorch_lightning.loggers.TensorBoardLogger"
    events = build_loggers(cfg)[0]
    assert isinstance(events, RunEvents)
    assert Path(events.log_dir) == tmp_path


def test_numbers_of_a_group_keep_their_name() -> None:
    assert grouped({"a/b": 1.0, "c": 2.0}) == {"a/b": 1.0, "whole_run/c": 2.0}
