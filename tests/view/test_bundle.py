"""Modules as one script: the bundle does what the modules do (run by node where it is there)."""

import shutil
import subprocess

import pytest

from mha_lab.view import bundle as bundling


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(bundling, "STATIC", tmp_path)
    for made in (bundling.bundle, bundling.bundled_module):
        made.cache_clear()
    yield tmp_path
    for made in (bundling.bundle, bundling.bundled_module):
        made.cache_clear()


def write(folder, **files):
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.js"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_bundle_does_what_its_modules_do(folder):
    write(
        folder,
        parts__one="/** A comment. */\nexport const two = 2;\n"
        "export function twice(x) {\n  return two * x;\n}\n",
        parts__other='import { twice as double } from "./one.js";\n\n// More.\n'
        "export class Four {\n  value() {\n    return double(2);\n  }\n}\n",
        main='import { Four } from "./parts/other.js";\nimport * as one from "./parts/one.js";\n\n'
        "console.log(new Four().value(), one.two);\n",
    )
    ran = subprocess.run(["node", "-e", bundling.bundle("main.js")], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("4 2\n", "")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_bundled_module_exports_what_its_entry_does(folder):
    write(
        folder,
        one="export const two = 2;\n",
        main='import { two } from "./one.js";\n\n'
        "export async function render() {\n  return two;\n}\n",
    )
    (folder / "all.mjs").write_text(bundling.bundled_module("main.js"))
    asks = 'import("./all.mjs").then(({ render }) => render()).then(console.log)'
    ran = subprocess.run(["node", "-e", asks], capture_output=True, text=True, cwd=folder)
    assert (ran.stdout, ran.stderr) == ("2\n", "")


def test_a_module_that_imports_itself_by_another_is_refused(folder):
    write(
        folder,
        a='import { b } from "./b.js";\n\nexport const a = 1;\n',
        b='import { a } from "./a.js";\n\nexport const b = 1;\n',
    )
    with pytest.raises(ValueError, match=r"a\.js imports itself, by way of b\.js"):
        bundling.bundle("a.js")
