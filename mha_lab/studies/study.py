"""A study as it was read: its arms, its runs, its claims; and its other forms."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from mha_lab.errors import UserError, nearest
from mha_lab.studies.places import is_installed
from mha_lab.studies.spec import Claim, FigureSpec, Quick, Selector, Spec, make, words

RUNS = Path("outputs/studies")
_QUIET = "trainer.enable_progress_bar=false"  # one bar over all runs instead

Grid = dict[str, dict[str, list[str]]]
"""Axis → level → overrides."""


@dataclass(frozen=True)
class Job:
    """One run of a study.

    Attributes:
        levels: axis → level.
        seed: its seed.
        words: all its overrides.
    """

    levels: dict[str, str]
    seed: int
    words: list[str]

    @property
    def name(self) -> str:
        """Of its folder."""
        return "_".join([*(f"{axis}-{level}" for axis, level in self.levels.items()),
                         f"seed{self.seed}"])  # fmt: skip


@dataclass(frozen=True)
class Study:
    """A study in one of its forms.

    Attributes:
        name: its folder's name.
        folder: where ``study.yaml`` lies.
        spec: what that says.
        grids: the arms.
        claims: what the source says.
        figure: what is drawn; None where the study draws its own, or nothing.
        form: ``full``, ``quick``, or another that leaves the full report alone.
        seeds: of each arm.
        settings: overrides of all runs.
        samples: sequences of each range of lengths.
    """

    name: str
    folder: Path
    spec: Spec
    grids: list[Grid]
    claims: list[Claim]
    figure: FigureSpec | None
    form: str
    seeds: int
    settings: list[str]
    samples: int

    @property
    def axes(self) -> list[str]:
        """The axes of all grids."""
        return list(dict.fromkeys(axis for grid in self.grids for axis in grid))

    @property
    def arms(self) -> list[dict[str, str]]:
        """The levels of each arm, an axis that it has none of left out."""
        return [levels for levels, _ in self._arms()]

    @property
    def jobs(self) -> list[Job]:
        """Every run, seed by seed, so that all arms come early."""
        return [
            Job(levels, seed, _last_wins([_QUIET, *self.settings, *chosen, f"seed={seed}"]))
            for seed in range(self.seeds)
            for levels, chosen in self._arms()
        ]

    @property
    def runs(self) -> Path:
        """Where the runs lie."""
        return RUNS / (self.name if self.form == "full" else f"{self.name}-{self.form}")

    @property
    def report(self) -> Path:
        """Where the report belongs: the full one beside the study."""
        if self.form == "full" and not is_installed(self.folder):
            return self.folder / "report"
        return self.runs / "report"

    @property
    def key(self) -> str:
        """Changes with whatever changes the numbers or the verdict."""
        claims = [dataclasses.asdict(claim) | {"says": "", "theirs": ""} for claim in self.claims]
        code = [_text(self.folder / "measure.py")]
        jobs = [[job.name, job.words] for job in self.jobs]
        content = json.dumps([jobs, claims, self.spec.lengths, self.samples, code], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def quick(self) -> "Study":
        """The form that shows the effect in some minutes."""
        spec: Quick = make(Quick, f"{self.name}: quick", self.spec.quick)
        for axis, levels in spec.only.items():
            self.check_selector("quick.only", {axis: levels})
        kept = {axis: [str(level) for level in levels] for axis, levels in spec.only.items()}
        grids = [
            {
                axis: {name: w for name, w in levels.items() if name in kept.get(axis, levels)}
                for axis, levels in grid.items()
            }
            for grid in self.grids
        ]
        return dataclasses.replace(
            self,
            form="quick",
            grids=[grid for grid in grids if all(grid.values())],
            seeds=spec.seeds,
            settings=[*self.settings, *words(spec.settings)],
            samples=spec.samples or self.samples,
        )

    def changed(self, overrides: Sequence[str]) -> "Study":
        """The same with overrides of one's own: another study, kept apart from this one."""
        digest = hashlib.sha256(json.dumps(list(overrides)).encode()).hexdigest()[:6]
        form = f"changed-{digest}" if self.form == "full" else f"{self.form}-changed-{digest}"
        return dataclasses.replace(self, form=form, settings=[*self.settings, *overrides])

    def smallest(self) -> "Study":
        """Each level in some run of two steps: what tests run, so that no study rots."""
        small = ["trainer.max_steps=2", "trainer.val_check_interval=2", "data.batch_size=4",
                 "data.validation_size=8", "data.test_size=8"]  # fmt: skip
        longest = [max(len(levels) for levels in grid.values()) for grid in self.grids]
        grids: list[Grid] = [
            {axis: dict([list(levels.items())[i % len(levels)]]) for axis, levels in grid.items()}
            for grid, count in zip(self.grids, longest, strict=True)
            for i in range(count)
        ]
        settings = [*self.settings, *small]
        return dataclasses.replace(
            self, form="smallest", grids=grids, seeds=1, settings=settings, samples=3
        )

    def check_selector(self, place: str, selector: Selector) -> None:
        """See that every level of an axis that is named exists.

        Raises:
            UserError: one does not.
        """
        for axis, value in selector.items():
            known = [level for grid in self.grids for level in grid.get(axis, {})]
            for level in value if isinstance(value, list) else [value]:
                if axis in self.axes and str(level) not in known:
                    raise UserError(
                        f"study {self.name}: {place} names {axis}={level}"
                        f"{nearest(str(level), known)} (there are: {', '.join(known)})"
                    )

    def _arms(self) -> Iterator[tuple[dict[str, str], list[str]]]:
        for grid in self.grids:
            for chosen in product(*(levels.items() for levels in grid.values())):
                names = [name for name, _ in chosen]
                yield dict(zip(grid, names, strict=True)), [w for _, own in chosen for w in own]


def _last_wins(overrides: Sequence[str]) -> list[str]:
    """Of several words of one key the last, where the first stood."""
    chosen = {word.partition("=")[0].lstrip("+~"): word for word in overrides}
    return list(chosen.values())


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""
