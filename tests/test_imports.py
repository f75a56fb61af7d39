"""No two files of the package import each other; the direction is checked by import-linter."""

import grimp


def mutual_imports(package: str) -> list[tuple[str, str]]:
    graph = grimp.build_graph(package)
    return [
        (one, other)
        for one in sorted(graph.modules)
        for other in sorted(graph.find_modules_directly_imported_by(one))
        if one < other and one in graph.find_modules_directly_imported_by(other)
    ]


def test_no_two_files_import_each_other() -> None:
    assert mutual_imports("mha_lab") == []


def test_mutual_imports_are_found(tmp_path, monkeypatch) -> None:
    package = tmp_path / "entangled"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one.py").write_text("from entangled import other")
    (package / "other.py").write_text("def late():\n    import entangled.one")
    monkeypatch.syspath_prepend(tmp_path)
    assert mutual_imports("entangled") == [("entangled.one", "entangled.other")]
