"""From ``study.yaml`` to a study, or to the sentence that says what is wrong with it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mha_lab import config
from mha_lab.config import trust
from mha_lab.config.words import parse_word, plain
from mha_lab.errors import UserError
from mha_lab.studies.places import FILE
from mha_lab.studies.spec import Claim, FigureSpec, Spec, make, words
from mha_lab.studies.study import Grid, Study

_LEVEL = re.compile(r"[\w.+-]+")


def read(folder: Path, *, trusted: Sequence[str] = ()) -> Study:
    """Read a study in its full form.

    Args:
        folder: of the study.
        trusted: modules that it may name besides this project's own options.

    Raises:
        UserError: it cannot be read, or contradicts itself.
    """
    file, name = folder / FILE, folder.resolve().name
    tree = OmegaConf.to_container(config.read_yaml(file, trusted), resolve=True)
    spec: Spec = make(Spec, f"study {name}", tree)
    grids = [
        _grid(name, one) for one in (spec.arms if isinstance(spec.arms, list) else [spec.arms])
    ]
    claims = [make(Claim, f"study {name}: claims[{i}]", one) for i, one in enumerate(spec.claims)]
    figure = None
    if spec.figure is not None:
        figure = make(FigureSpec, f"study {name}: figure", spec.figure)
    study = Study(name, folder, spec, grids, claims, figure, "full", spec.seeds,
                  words(spec.settings), spec.samples)  # fmt: skip
    names = [job.name for job in study.jobs]
    if len(set(names)) < len(names):
        raise UserError(f"study {name}: two grids of arms share an arm")
    _check_claims(study)
    _check_words(study, file, trusted)
    return study


def _grid(name: str, tree: Any) -> Grid:
    grid = {}
    for axis, levels in tree.items() if isinstance(tree, dict) else ():
        if not isinstance(levels, dict) or not levels:
            raise UserError(f"study {name}: arms.{axis} must name levels, each with its overrides")
        for level in levels:
            if not _LEVEL.fullmatch(str(level)):
                raise UserError(
                    f"study {name}: arms.{axis}: {level!r} names a folder, so it must be of "
                    "letters, digits, _ . + and -"
                )
        grid[str(axis)] = {str(level): words(own or "") for level, own in levels.items()}
    if not grid:
        raise UserError(f"study {name}: arms must name axes, each with its levels")
    return grid


def _check_claims(study: Study) -> None:
    for i, claim in enumerate(study.claims):
        place = f"claims[{i}]"
        is_limit = claim.of is not None and (claim.at_least, claim.at_most) != (None, None)
        if claim.is_ordering == is_limit:
            raise UserError(
                f"study {study.name}: {place} must say higher: and lower:, or of: with at_least: "
                "or at_most:"
            )
        for selector in (claim.at, claim.higher, claim.lower, claim.of):
            study.check_selector(place, selector or {})


def _check_words(study: Study, file: Path, trusted: Sequence[str]) -> None:
    """Overrides can be read, and choose no code that is not trusted."""
    own = trust.own_targets(config.config_folder())
    of_arms = [word for grid in study.grids for levels in grid.values()
               for chosen in levels.values() for word in chosen]  # fmt: skip
    for word in dict.fromkeys([*study.quick().settings, *of_arms]):
        item = parse_word(word)
        trust.check({item.key_or_group: plain(item.value())}, file, own, trusted)
