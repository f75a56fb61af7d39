"""Runs and how they are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mha_lab.reporting.grouping import Group, group_runs
from mha_lab.reporting.measures import Measure, beyond_training, of_summary
from mha_lab.reporting.reading import Run


@dataclass(frozen=True)
class Comparison:
    """A set of runs, the keys and the metric.

    Attributes:
        runs: all of them.
        by: the keys that make the groups.
        metric: the number of ``summary.json`` that is compared first.
        common: the folder that all runs lie in; they are named relative to it.
    """

    runs: Sequence[Run]
    by: tuple[str, ...]
    metric: str
    common: Path

    @cached_property
    def groups(self) -> list[Group]:
        """The runs by group."""
        return group_runs(self.runs, self.by)

    @cached_property
    def counted(self) -> list[Group]:
        """The groups that have a complete run."""
        return [group for group in self.groups if group.complete]

    @cached_property
    def beyond(self) -> list[Measure]:
        """Accuracy at lengths beyond training, where runs were evaluated there."""
        return beyond_training([run for run in self.runs if run.is_complete])

    @property
    def mixes_models(self) -> bool:
        """Whether attentions are compared that did not all run in one model."""
        models = {model for group in self.groups for model in group.models}
        return "attention" in self.by and "model" not in self.by and len(models) > 1

    @property
    def measure(self) -> Measure:
        """The metric as a measure."""
        return of_summary(self.metric)

    def path(self, run: Run) -> str:
        """A run's folder as the report names it: by where it lies, or by the link to it."""
        for folder in (run.folder.resolve(), run.folder.absolute()):
            if folder.is_relative_to(self.common):
                return folder.relative_to(self.common).as_posix()
        return run.folder.as_posix()
