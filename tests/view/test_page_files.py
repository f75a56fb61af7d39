"""The page's files, as far as they can be judged without a browser."""

import re

import pytest

from mha_lab.view.bundle import STATIC, bundle

FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
IMPORT = re.compile(r"import (?:\{([^}]*)\}|\* as \w+) from \"(\.[^\"]+)\"")


def name_of(path):
    return path.relative_to(STATIC).as_posix()


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_text_never_becomes_markup(path):
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|"
        r"setAttribute\(\s*[\"']on|createContextualFragment|srcdoc",
        path.read_text(),
    )
    assert found == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_is_loaded_from_elsewhere(path):
    addresses = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]+[^\s\"')]*", path.read_text()))
    assert addresses <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_every_import_exists_and_is_used(path):
    text = path.read_text()
    for names, module in IMPORT.findall(text):
        source = (path.parent / module).resolve().read_text()
        for name in filter(None, (part.strip() for part in names.split(","))):
            assert re.search(rf"export (?:async )?(?:function|class|const) {name}\b", source)
            assert len(re.findall(rf"(?<![\w.]){name}\b", text)) > 1, f"{name} is not used"


def test_every_file_is_used():
    everything = "".join(path.read_text() for path in FILES)
    entries = ("index.js", "inline.js")
    unused = [
        path.name
        for path in FILES
        if path.name not in entries and not re.search(rf"[\"'/]{path.name}[\"']", everything)
    ]
    assert unused == ["style.css"] or unused == []


def test_no_script_is_long():
    long = {name_of(path): len(path.read_text().splitlines()) for path in SCRIPTS}
    assert {name: lines for name, lines in long.items() if lines > 165} == {}


def test_the_bundle_is_one_script_that_cannot_be_left():
    script = bundle("inline.js")
    assert "</" not in script
    assert not re.search(r"^(?:import|export) ", script, re.MULTILINE)
    assert script.count("module0 = (() => {") == 1
