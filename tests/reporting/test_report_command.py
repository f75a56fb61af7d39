import csv
import json
import re
from html.parser import HTMLParser

import pytest
from synthetic_runs import write_failed, write_grid, write_run

from mha_lab.cli import run
from mha_lab.reporting import drawing

FILES = {
    "index.html", "report.md", "report.csv", "runs.csv", "accuracy_by_length.csv", "report.json",
    "results.png", "steps_to_solve.png", "accuracy_by_length.png", "curve_sequence_accuracy.png",
    "curve_loss.png",
}  # fmt: skip


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Two variants, two seeds: accuracies 0.9 and 1.0 of builtin, 0.7 and 0.8 of custom."""
    monkeypatch.chdir(tmp_path)
    for i, (attention, seed, accuracy) in enumerate(
        [("builtin", 0, 0.9), ("builtin", 1, 1.0), ("custom", 0, 0.7), ("custom", 1, 0.8)]
    ):
        write_run(tmp_path / "runs" / str(i), attention=attention, seed=seed, accuracy=accuracy,
                  steps=200 + 100 * i, loss=0.1, seconds=4.0 + i)  # fmt: skip
    return tmp_path / "runs"


@pytest.fixture
def no_figures(monkeypatch):
    """Drawing takes most of the time, and has tests of its own."""
    monkeypatch.setattr(drawing.Figure, "savefig", _save_nothing)
    monkeypatch.setattr(drawing, "without_alpha", lambda png: png)


def _save_nothing(figure, file, *, format, **rest):
    svg = '<svg width="1pt" height="1pt" viewBox="0 0 1 1"></svg>'
    file.write(svg if format == "svg" else b"PNG")


def read(file):
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_whole_report(small, capsys):
    for i, (status, seed) in enumerate((("interrupted", 2), ("unfinished", 3))):
        write_run(small / str(10 + i), attention="custom", status=status, seed=seed, steps=50)
    write_failed(small / "12", attention="custom", seed=4)
    damaged = write_run(small / "13", attention="custom", seed=5)
    (damaged / "metrics.csv").write_text("step,val/loss\n1\n")
    assert run(["report", "runs", "by=attention", "name=Two variants <b>"]) == 0
    shown = capsys.readouterr()
    assert "0.9500 ± 0.0707" in shown.out
    assert "\nruns/report/index.html\n" in shown.out, "relative to the working folder"
    assert "1 failed, 1 interrupted, 4 missing, 1 unfinished and 1 unreadable" in shown.err

    report = small / "report"
    assert {file.name for file in report.iterdir()} == FILES
    builtin, custom = read(report / "report.csv")
    assert (builtin["attention"], builtin["runs"], builtin["complete"]) == ("builtin", "2", "2")
    assert float(builtin["test/sequence_accuracy mean"]) == pytest.approx(0.95)
    assert float(builtin["test/sequence_accuracy sd"]) == pytest.approx(0.1 / 2**0.5)
    assert float(builtin["steps_to_solve mean"]) == 250
    assert float(builtin["seconds_to_solve mean"]) == 4.5
    assert (custom["runs"], custom["complete"], custom["solved"]) == ("6", "2", "2")

    runs = read(report / "runs.csv")
    assert len(runs) == 8
    assert runs[4]["run"] == "10"
    assert runs[7]["reason"].startswith("metrics.csv is damaged")

    lengths = read(report / "accuracy_by_length.csv")
    assert [row["length"] for row in lengths[:5]] == ["1", "2", "3", "5", "7"]

    for text in ((report / "report.md").read_text(), (report / "index.html").read_text()):
        for said in ("embed_dim=63 must be divisible by num_heads=4", "stopped by hand at step 50",
                     "metrics.csv is damaged: line 2", "last validation at step 50", "2 of 6",
                     "their runs kept no TensorBoard events"):  # fmt: skip
            assert said in text
    assert "Two variants &lt;b&gt;" in (report / "index.html").read_text()
    assert "# Two variants \\<b>" in (report / "report.md").read_text()


class Page(HTMLParser):
    """Collects what a page refers to, and sees that every element is closed."""

    VOID = ("meta", "link", "br", "img", "hr")

    def __init__(self, text):
        super().__init__()
        self.open, self.refers, self.ids, self.tags = [], [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.refers += [given[k] for k in ("src", "href", "xlink:href") if k in given]

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else(small):
    assert run(["report", "runs"]) == 0
    text = (small / "report" / "index.html").read_text()
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert all(one.startswith("data:") or one[1:] in page.ids for one in page.refers)
    assert not page.tags & {"script", "iframe", "object"}
    assert "@import" not in text
    assert all(one.startswith("url(#") for one in re.findall(r"url\([^)]*", text))


@pytest.mark.usefixtures("no_figures")
def test_hostile_names_are_text(small):
    evil = '"><script>alert(1)</script>|`x`'
    write_run(small / "9", attention=evil, seed=0)
    assert run(["report", "runs", "by=attention"]) == 0
    page = Page((small / "report" / "index.html").read_text())
    assert "script" not in page.tags
    markdown = (small / "report" / "report.md").read_text()
    assert "<script>" not in markdown.replace("\\<", "")


@pytest.mark.usefixtures("no_figures")
def test_what_a_mean_hides_is_told(small, capsys):
    write_run(small / "9", attention="custom", seed=0, lr=0.5)
    assert run(["report", "runs", "by=attention"]) == 0
    text = (small / "report" / "report.md").read_text()
    assert "optimizer.lr" in capsys.readouterr().err
    assert re.search(r"custom +\| optimizer.lr +\| 0.004, 0.5", text)
    assert "has more than one run of seed 0" in text


@pytest.mark.usefixtures("no_figures")
def test_the_same_runs_give_the_same_report(small):
    for out in ("out=a", "out=b"):
        assert run(["report", "runs", "name=x", out]) == 0
    for name in FILES - {"report.json", "index.html", "report.md"}:
        assert (small.parent / "a" / name).read_bytes() == (small.parent / "b" / name).read_bytes()
    pages = [(small.parent / out / "index.html").read_text() for out in "ab"]
    assert pages[0] == pages[1].replace("out=b", "out=a")


def test_only_the_table_to_copy(small, capsys):
    assert run(["report", "runs", "by=attention", "table=markdown"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "| attention |   n | sequence accuracy |          loss | steps to solve "
        "| seconds to solve | parameters |",
        "| --------- | --: | ----------------: | ------------: | -------------: "
        "| ---------------: | ---------: |",
        "| builtin   |   2 |   0.9500 ± 0.0707 | 0.100 ± 0.000 |       250 ± 71 "
        "|        4.5 ± 0.7 |    123,456 |",
        "| custom    |   2 |   0.7500 ± 0.0707 | 0.100 ± 0.000 |       450 ± 71 "
        "|        6.5 ± 0.7 |    123,456 |",
    ]
    assert not (small / "report").exists()


@pytest.mark.usefixtures("no_figures")
def test_a_former_report_is_replaced_and_its_old_figures_go(small):
    assert run(["report", "runs"]) == 0
    for folder in ("0", "1", "2", "3"):
        summary = json.loads((small / folder / "summary.json").read_text())
        (small / folder / "summary.json").write_text(json.dumps({**summary, "status": "finished"}))
    assert run(["report", "runs"]) == 0
    assert {file.name for file in (small / "report").iterdir()} == FILES - {"steps_to_solve.png"}
    assert not list(small.glob(".report*"))


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda out: out.write_text("mine"), "is a file, not a folder"),
        (lambda out: (out.mkdir(), (out / "notes.md").write_text("mine")), "is no former report"),
        (lambda out: (run(["report", "runs", "out=out"]), (out / "notes.md").write_text("mine")),
         "holds 'notes.md', which is not part of the former report"),
        (lambda out: (run(["report", "runs", "out=out"]), (out / "report.md").write_text("mine")),
         "holds 'report.md', which was changed since the former report"),
        (lambda out: (out.mkdir(), (out / "report.json").write_text('{"files": {}}')),
         "is no former report"),
    ],
)  # fmt: skip
def test_nothing_else_is_ever_overwritten(small, capsys, prepare, said):
    out = small.parent / "out"
    prepare(out)
    before = {file: file.read_bytes() for file in small.parent.rglob("*") if file.is_file()}
    assert run(["report", "runs", "out=out"]) == 2
    assert said in capsys.readouterr().err
    after = {file: file.read_bytes() for file in small.parent.rglob("*") if file.is_file()}
    assert after == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "report needs the runs' folders"),
        (["nowhere"], "no runs at 'nowhere'"),
        (["runs", "bye=attention"], "unknown argument 'bye=attention'; did you mean 'by'"),
        (["runs", "--all"], "unknown argument '--all'"),
        (["runs", "by=atention"], "did you mean 'attention'"),
        (["runs", "by=attention,"], "by=: no run's config has this key"),
        (["runs", "metric=test/acuracy"], "no summary has this number"),
        (["runs", "table=latex"], "table=latex is not a form of table"),
        (["runs", "by="], "by= is empty"),
    ],
)
def test_mistakes_are_told_in_a_sentence(small, capsys, words, said):
    assert run(["report", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (small / "report").exists()


def test_a_run_named_alone_must_be_readable(small, capsys):
    (small / "0" / "summary.json").write_text("{")
    assert run(["report", "runs/0"]) == 2
    assert "'runs/0' cannot be read: summary.json is not JSON" in capsys.readouterr().err


@pytest.mark.usefixtures("no_figures")
def test_runs_that_all_failed_make_a_report_too(tmp_path, capsys):
    write_failed(tmp_path / "0", seed=0)
    write_failed(tmp_path / "1", seed=1, reason="")
    assert run(["report", str(tmp_path)]) == 0
    assert "0 of 2" in capsys.readouterr().out
    assert "must be divisible" in (tmp_path / "report" / "index.html").read_text()


@pytest.mark.usefixtures("no_figures")
def test_a_grid_compared_by_two_choices(tmp_path, capsys):
    write_grid(tmp_path, attentions=("builtin", "custom"), positions=("learned", "none"), seeds=3)
    assert run(["report", str(tmp_path), "by=attention,position", "metric=test/loss"]) == 0
    text = (tmp_path / "report" / "report.md").read_text()
    assert "12 runs in 4 groups, 3 seeds" in text
    assert "| attention | position |   n |" in text
    assert "Every run is complete" in text
    assert capsys.readouterr().err == ""


def test_the_command_needs_no_torch(small):
    import subprocess
    import sys

    code = (
        "import sys; from mha_lab.cli import run; assert run(['report', 'runs']) == 0; "
        "loaded = {'torch', 'pytorch_lightning', 'hydra', 'pandas'} & set(sys.modules); "
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=small.parent)
