"""The page's files, as far as they can be judged without a browser."""

import re

import pytest

from mha_lab.tensorboard.plugin import STATIC

SCRIPTS = sorted(STATIC.glob("*.js"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_text_never_becomes_markup(path):
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|"
        r"setAttribute\(\s*[\"']on|createContextualFragment|srcdoc",
        path.read_text(),
    )
    assert found == []


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_nothing_is_loaded_from_elsewhere(path):
    addresses = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]+[^\s\"')]*", path.read_text()))
    assert addresses <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_every_import_exists(path):
    text = path.read_text()
    for names, module in re.findall(r"import (?:\{([^}]*)\}|\* as \w+) from \"\./([^\"]+)\"", text):
        source = (STATIC / module).read_text()
        for name in filter(None, (part.strip() for part in names.split(","))):
            assert re.search(rf"export (?:async )?(?:function|class|const) {name}\b", source)


def test_every_file_is_used():
    everything = "".join(path.read_text() for path in STATIC.iterdir())
    unused = [
        path.name
        for path in STATIC.iterdir()
        if path.name != "index.js" and not re.search(rf"[\"'](?:\./)?{path.name}[\"']", everything)
    ]
    assert unused == []
