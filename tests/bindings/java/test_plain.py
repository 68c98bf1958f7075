"""Plain Java sources: where they are, and that moving one changes its package and nothing else."""

from __future__ import annotations

import re

from opgen.bindings.java.plain import SOURCES, moved, plain_sources

JINJA = re.compile(r"\{[{%#]")
PACKAGE = re.compile(r"(package|import) \{\{ (p|home) \}\}[\w.]*;")


def test_each_source_is_in_the_folder_of_its_package() -> None:
    files = sorted(SOURCES.rglob("*.java"))
    assert len(files) > 60
    for file in files:
        package = ".".join(file.parent.relative_to(SOURCES).parts)
        text = file.read_text(encoding="utf-8")
        assert text.startswith(f"package {package};\n"), file
        assert not JINJA.search(text), file


def test_a_template_has_more_to_fill_in_than_its_package() -> None:
    for file in sorted((SOURCES.parent / "templates").rglob("*.java.jinja")):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert any(JINJA.search(line) and not PACKAGE.fullmatch(line) for line in lines), f"{file} is a plain source"


def test_moving_changes_the_package_line_and_the_imports_of_opgen() -> None:
    text = "package opgen.op;\n\nimport opgen.Tensor;\nimport opgenx.A;\n\n// import opgen.B;\nclass C {}\n"
    assert moved(text, "org.x") == (
        "package org.x.op;\n\nimport org.x.Tensor;\nimport opgenx.A;\n\n// import opgen.B;\nclass C {}\n"
    )
    assert moved("package opgen;\n", "opgen.x") == "package opgen.x;\n"
    paths = [path for path, _ in plain_sources("org.x")]
    assert len(paths) == len(set(paths))
    assert {"Tensor", "legacy/Session", "internal/Memory"} <= set(paths)
