"""What a sweep sees of a run while it trains."""

import optuna
import pytorch_lightning as pl

LATEST_TO_PRUNE = 0.5
"""Share of a run's steps: a trial that has come further costs less to finish than to lose."""


class Observer(pl.Callback):
    """Notes the validation metrics of a run and asks the pruner after each validation.

    Args:
        trial: the trial to ask about; None lets the run go on to its end.
        metric: what the pruner compares.
        sign: -1 where Optuna maximizes and the metric is better lower, or the other way round.
    """

    def __init__(self, trial: optuna.Trial | None, metric: str, *, sign: int = 1) -> None:
        self.trial = trial
        self.metric = metric
        self.sign = sign
        self.steps = 0
        self.best: dict[str, float] = {}
        """The validation metrics where ``val/loss`` was lowest: those of ``best.ckpt``."""

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Note, report, and end a run that the pruner gives up."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        metrics = {k: float(v) for k, v in trainer.callback_metrics.items() if k.startswith("val/")}
        if not self.best or metrics["val/loss"] < self.best["val/loss"]:
            self.best = metrics
        self.steps = trainer.global_step
        if self.trial is None:
            return
        value = metrics[self.metric]
        self.trial.report(self.sign * value, self.steps)
        if trainer.should_stop:
            self._report_the_rest(trainer, value)
        # Asked at every step: the pruner notes by it which trials have come how far.
        elif self.trial.should_prune() and self.steps <= LATEST_TO_PRUNE * trainer.max_steps:
            raise optuna.TrialPruned(f"at step {self.steps}, {self.metric} {value:.4g}")

    def _report_the_rest(self, trainer: pl.Trainer, value: float) -> None:
        """A solved run counts at later steps too, or only unsolved ones would be compared there."""
        assert self.trial is not None
        interval = int(trainer.val_check_interval)
        for step in range(self.steps + interval, int(trainer.max_steps) + 1, interval):
            self.trial.report(self.sign * value, step)
        self.trial.should_prune()  # only so that the pruner takes note of the last step
