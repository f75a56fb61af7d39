"""The project's own studies: each runs at its smallest, so that none rots; the page is theirs."""

import sys
from pathlib import Path

import pytest

from mha_lab.studies.reading import read
from mha_lab.studies.running import run_study

ROOT = Path(__file__).parents[2]
STUDIES = sorted(file.parent for file in (ROOT / "experiments").glob("*/study.yaml"))


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_it_is_whole(folder: Path) -> None:
    study = read(folder)
    assert study.claims, "a study has claims, or there is nothing to find"
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert f"python -m mha_lab study {folder.name}" in text
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert sum(file.stat().st_size for file in files) < 2**20


@pytest.mark.slow
@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_it_runs_at_its_smallest(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = read(folder).smallest()
    found = run_study(study)
    assert found is not None
    assert {claim["holds"] for claim in found["claims"]} <= {True, False, None}
    assert (study.report / "finding.md").is_file()


def test_the_page_of_findings_is_as_it_would_be_written_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from make_findings import page

    written = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert written == page(), "docs/findings.md is stale: run python docs/make_findings.py"
    sys.modules.pop("make_findings")


@pytest.mark.slow
def test_any_launcher_runs_it(tiny: Path) -> None:
    study = read(tiny).quick()
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    found = run_study(study, launcher=launcher)
    assert found is not None
    assert found["arms"] == 2
