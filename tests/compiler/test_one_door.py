"""Nothing but the compiler calls the code generator: what `opgen inspect` shows is what everything compiles."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.repository import ROOT

EMITTERS = ("opgen.codegen.llvm.emit", "opgen.codegen.llvm.compile", "opgen.codegen.cuda.emit")
"""Modules that make LLVM IR, object code and CUDA C."""
NAMES = {f"{module}.emit" for module in ("opgen.codegen.llvm", "opgen.codegen.cuda")} | {
    "opgen.compiler.toolchain.emit",
    "opgen.compiler.toolchain.assembly",
}
"""Functions by which a kernel could be emitted."""


def files() -> Iterator[Path]:
    """The sources of opgen and of its tools but the emitters themselves and the compiler."""
    for folder in ("opgen", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.is_relative_to(ROOT / "opgen" / "codegen") and path.parent != ROOT / "opgen" / "compiler":
                yield path


def imported(tree: ast.Module) -> dict[str, str]:
    """Return the full name of each imported name."""
    found: dict[str, str] = {}
    for x in ast.walk(tree):
        if isinstance(x, ast.Import):
            found |= {(a.asname or a.name): a.name for a in x.names}
        elif isinstance(x, ast.ImportFrom) and x.module is not None:
            found |= {(a.asname or a.name): f"{x.module}.{a.name}" for a in x.names}
    return found


def emitting(path: Path) -> list[str]:
    """The uses of an emitter in a file."""
    tree = ast.parse(path.read_text())
    names = imported(tree)
    found = [name for name in names.values() if name.startswith(EMITTERS) or name in NAMES]
    for x in ast.walk(tree):
        if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name):
            whole = f"{names.get(x.value.id, '')}.{x.attr}"
            found += [whole] if whole in NAMES else []
    return found


def test_nothing_else_emits() -> None:
    assert {str(p.relative_to(ROOT)): found for p in files() if (found := emitting(p))} == {}


def test_the_compiler_emits_in_one_place() -> None:
    """Each emitter is called by one function: for CPUs in parts of kernels, for CUDA in artifacts."""
    count = Counter({path.name: len(emitting(path)) for path in (ROOT / "opgen" / "compiler").glob("*.py")})
    del count["toolchain.py"]
    assert +count == {"parts.py": 2, "artifact.py": 1}  # parts: LLVM IR, and assembly of it


def test_an_emitter_in_other_places_would_be_found(tmp_path: Path) -> None:
    """The search finds each way of calling one."""
    for text in (
        "from opgen.codegen.llvm.emit import emit\n",
        "from opgen.codegen import cuda\ncuda.emit(kernel)\n",
        "from opgen.compiler import toolchain\ntoolchain.emit(kernel, target)\n",
        "from opgen.codegen.llvm import compile as compiler\ncompiler.object_code(ir, target)\n",
    ):
        (tmp_path / "driver.py").write_text(text)
        assert emitting(tmp_path / "driver.py"), text
