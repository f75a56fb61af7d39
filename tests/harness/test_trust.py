"""Nothing that a folder names is imported or called, whatever node names it, whatever reads it."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from small_runs import TINY

from mha_lab import config
from mha_lab.config import trust

Lab = Callable[..., tuple[int, str, str]]
MODULE = "leaves_a_mark"
STRANGERS = (
    {"_target_": f"{MODULE}.call"},
    {"_target_": f"{MODULE}.call", "_partial_": True},
    {"_target_": "os.system", "command": "touch mark"},
    {"_target_": "os.mkdir", "path": "mark"},
    {"_target_": "subprocess.Popen", "args": ["touch", "mark"]},
    {"_target_": "shutil.rmtree", "path": "precious"},
    {"_target_": "builtins.exec", "_args_": ["open('mark', 'w')"]},
    {"_target_": "hydra.utils.get_object", "path": f"{MODULE}.call"},
    {"_target_": "hydra.utils.instantiate", "config": {"_target_": "os.mkdir", "path": "mark"}},
    {"_target_": [MODULE]},
    {"_target_": None},
    {"_target_": f"${{oc.decode:{MODULE}.call}}"},
    {"a": [{"b": {"_target_": f"{MODULE}.call"}}]},
    "${oc.create:{_target_:os.mkdir,path:mark}}",
    "${oc.env:HOME}",
    "${hydra:runtime.cwd}",
)


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """A folder where a stranger's code would leave a mark; tells whether it has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "precious").mkdir()
    mark = f"from pathlib import Path\nPath({str(tmp_path / 'mark')!r}).touch()\n"
    text = f"{mark}def call(*args, **kwargs):\n    Path({str(tmp_path / 'mark')!r}).touch()\n"
    (tmp_path / f"{MODULE}.py").write_text(text)
    yield (
        lambda: (
            (tmp_path / "mark").exists()
            or not (tmp_path / "precious").exists()
            or MODULE in sys.modules
        )
    )
    sys.modules.pop(MODULE, None)


def commands(run: Path) -> list[tuple[str, ...]]:
    return [
        ("train", f"resume={run}", "trainer.max_steps=12"),
        ("evaluate", f"run={run}"),
        ("evaluate", f"run={run}", "task=sort", "checkpoint=last"),
        ("predict", f"run={run}", "1 2", "figure=out.png"),
    ]


def planted(tree: dict, key: str, stranger: object) -> dict:
    """The tree with a stranger's node in the place of one of its own, or in that node."""
    *path, last = key.split(".")
    inner = tree
    for name in path:
        inner = inner[name]
    known = inner.get(last)
    both = isinstance(known, dict) and isinstance(stranger, dict)
    inner[last] = known | stranger if both else stranger
    return tree


def test_no_node_of_a_run_is_built_that_the_project_does_not_name(
    lab: Lab, trained: Path, tmp_path: Path, marks: Callable[[], bool]
):
    run = tmp_path / "run"
    run.mkdir()
    own = (trained / "config.yaml").read_text()
    keys = [*config.flat_keys(yaml.safe_load(own)), "added", "choices.added", "model.added"]
    places = [key for key in keys if not key.endswith("_target_")]
    assert len(places) > 60
    for turn, key in enumerate(places):
        stranger = STRANGERS[turn % len(STRANGERS)]
        tree = planted(yaml.safe_load(own), key, stranger)
        (run / "config.yaml").write_text(yaml.safe_dump(tree))
        for words in commands(run) if "." not in key else commands(run)[turn % 4 :][:1]:
            code, _, err = lab(*words)
            assert (code, len(err.strip().splitlines())) == (2, 1), (key, stranger, words, err)
            assert str(run / "config.yaml") in err
            assert key.split(".")[0] in err
            assert not marks(), (key, stranger, words)


@pytest.mark.parametrize("stranger", STRANGERS, ids=str)
def test_no_stranger_is_built(
    stranger: object, lab: Lab, trained: Path, tmp_path: Path, marks: Callable[[], bool]
):
    run = tmp_path / "run"
    run.mkdir()
    tree = planted(yaml.safe_load((trained / "config.yaml").read_text()), "model", stranger)
    (run / "config.yaml").write_text(yaml.safe_dump(tree))
    for words in commands(run):
        code, _, err = lab(*words)
        assert (code, len(err.strip().splitlines())) == (2, 1), err
    lab("report", run)  # reads without building
    assert not marks()


RECIPES = {
    "callbacks": {"callbacks": {"x": {"_target_": "os.mkdir", "path": "mark"}}},
    "model": {"model": {"_target_": f"{MODULE}.call"}},
    "nested": {"model": {"embed_dim": {"_target_": f"{MODULE}.call"}}},
    "hydra's callbacks": {"hydra": {"callbacks": {"x": {"_target_": f"{MODULE}.call"}}}},
    "hydra's search path": {"hydra": {"searchpath": [f"pkg://{MODULE}"]}},
    "hydra's logging": {"hydra": {"job_logging": {"handlers": {"x": {"()": f"{MODULE}.call"}}}}},
    "hydra's launcher": {"defaults": ["train", {"override hydra/launcher": "joblib"}, "_self_"]},
    "an option beside it": {"defaults": ["train", {"override task": "other"}, "_self_"]},
    "hydra beside it": {"defaults": ["train", {"override task": "hydra"}, "_self_"]},
    "a package": {"defaults": ["train", {"task@hydra.callbacks.x": "other"}, "_self_"]},
    "a group of its own": {"defaults": ["train", {"evil": "x"}, "_self_"]},
    "a file beside it": {"defaults": ["train", "beside", "_self_"]},
    "a file above it": {"defaults": ["train", {"override task": "../evil/x"}, "_self_"]},
    "resolver": {"model": "${oc.create:{_target_:os.mkdir,path:mark}}"},
}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("spelling", ["long", "short", "environment"])
def test_a_sweeps_recipe_is_read_from_a_folder(
    name: str,
    spelling: str,
    lab: Lab,
    tmp_path: Path,
    marks: Callable[[], bool],
    monkeypatch: pytest.MonkeyPatch,
):
    folder = tmp_path / "sweep"
    (folder / "evil").mkdir(parents=True)
    for beside in ("evil/x.yaml", "beside.yaml"):
        text = f"# @package hydra.callbacks.x\n_target_: {MODULE}.call\n"
        (folder / beside).write_text(text)
    if spelling == "environment":
        monkeypatch.setenv(config.OWN_FOLDERS, f"{tmp_path / 'empty'}:{folder}")
    (folder / "task").mkdir(parents=True)
    if name != "an option beside it":
        hidden = "# @package hydra.callbacks.x\n" if name == "hydra beside it" else ""
        (folder / "task" / "hydra.yaml").write_text(hidden + "max_length: 3\n")
    if name in ("an option beside it", "a package"):
        (folder / "task" / "other.yaml").write_text(f"_target_: {MODULE}.call\n")
    tree = {"defaults": ["train", "_self_"]} | RECIPES[name]
    (folder / "best.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    words = {
        "long": [f"--config-dir={folder}", "--config-name", "best"],
        "short": ["-cd", folder, "-cn=best.yaml"],
        "environment": ["--config-name=best"],
    }[spelling]
    for more in ([], ["-m", "seed=0,1"], ["--cfg", "job"]):
        code, _, err = lab("train", *words, *TINY, "trainer.max_steps=5", *more)
        assert (code, len(err.strip().splitlines())) == (2, 1), err
        assert str(folder) in err
        assert not marks()
    assert not (tmp_path / "outputs").exists()


def test_a_search_path_is_not_typed(lab: Lab, tmp_path: Path, marks: Callable[[], bool]):
    (tmp_path / "best.yaml").write_text(f"hydra: {{callbacks: {{x: {{_target_: {MODULE}.call}}}}}}")
    for plus in ("", "+", "++"):
        word = f"{plus}hydra.searchpath=[file://{tmp_path}]"
        code, _, err = lab("train", word, "--config-name=best")
        assert (code, len(err.strip().splitlines())) == (2, 1), err
        assert "--config-dir" in err
        assert not marks()


@pytest.mark.parametrize("key", ["model._target_", "+callbacks.x", "callbacks.checkpoint"])
def test_a_sweeps_settings_choose_no_stranger(
    key: str, lab: Lab, tmp_path: Path, marks: Callable[[], bool]
):
    stranger = f"{MODULE}.call" if key.endswith("_") else f"{{_target_: {MODULE}.call}}"
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({"space": {key: f"{stranger},null"}, "n_trials": 1}))
    code, _, err = lab("sweep", "task=copy", f"sweep={file}")
    assert (code, len(err.strip().splitlines())) == (2, 1), err
    assert "mine.yaml" in err
    assert not marks()
    assert not (tmp_path / "outputs").exists()


def test_options_that_would_unpickle_or_replace_the_tree_are_unknown(lab: Lab, tmp_path: Path):
    for option in ("--experimental-rerun", "--config-path"):
        code, _, err = lab("train", option, tmp_path)
        assert code == 2
        assert option in err


VARIANT = """
from by_hand_variant import ByHand
class Mine(ByHand): pass
"""


def test_a_variant_of_ones_own_needs_trust_once_it_is_read(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_own_variant.py").write_text(VARIANT)
    run = tmp_path / "run"
    words = ["attention={_target_:my_own_variant.Mine,_partial_:true}", *TINY]
    code, _, err = lab("train", "task=copy", *words, "trainer.max_steps=5", f"hydra.run.dir={run}")
    assert code == 0, err
    for command in (
        ("evaluate", f"run={run}"),
        ("predict", f"run={run}", "1 2"),
        ("train", f"resume={run}", "trainer.max_steps=6"),
    ):
        code, _, err = lab(*command)
        assert code == 2
        assert "attention._target_='my_own_variant.Mine'" in err
        assert "trust=my_own_variant" in err
        assert lab(*command, "trust=my_own")[0] == 2  # another module
        assert lab(*command, "trust=os,my_own_variant")[0] == 0
    sys.modules.pop("my_own_variant")


def test_an_option_of_ones_own_folder_is_typed(lab: Lab, tmp_path: Path):
    option = tmp_path / "mine" / "attention" / "other.yaml"
    option.parent.mkdir(parents=True)
    option.write_text("_target_: by_hand_variant.ByHand\n_partial_: true\n")
    words = ["task=copy", "attention=other", *TINY, "trainer.max_steps=5"]
    run = tmp_path / "run"
    code, _, err = lab("train", "--config-dir", tmp_path / "mine", *words, f"hydra.run.dir={run}")
    assert code == 0, err
    assert lab("predict", f"run={run}", "1 2")[0] == 2


@pytest.mark.parametrize("text", ["", "a b", "os.system()", "../x", "a,,b"])
def test_trust_names_modules(text: str, lab: Lab, trained: Path):
    code, _, err = lab("predict", f"run={trained}", f"trust={text}", "1 2")
    assert code == 2
    assert "trust=" in err


def test_what_one_yaml_adds_is_own(tmp_path: Path):
    nested = tmp_path / "attention" / "weighting" / "new.yaml"
    nested.parent.mkdir(parents=True)
    nested.write_text("# new\n_target_: somewhere.New\npart:\n  _target_: somewhere.Part\n")
    assert trust.own_targets(tmp_path) == {"somewhere.New", "somewhere.Part"}
