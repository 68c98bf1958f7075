"""Programs against the generated header: both compilers, two standards, warnings as errors, under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bindings.cpp.library import COMPILERS, SANITIZED, WARNINGS, built, compile_program, run
from tests.bindings.modules import OPS, SAMPLES

PROGRAMS = Path(__file__).parent / "programs"
pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs a C++ compiler")


@pytest.mark.parametrize("standard", [17, 20])
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ["tensorflow_shaped", "graph", "tensors"])
def test_program(name: str, compiler: str, standard: int, tmp_path: Path) -> None:
    """C++17 is run under the address and undefined-behaviour sanitizers, C++20 without."""
    options = SANITIZED if standard == 17 else ("-O1", "-pthread")
    target = tmp_path / name
    compile_program(
        PROGRAMS / f"{name}.cpp", target, *options, libraries=[built(OPS)], compiler=compiler, standard=standard
    )
    assert run(target) == ""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_two_libraries(compiler: str, tmp_path: Path) -> None:
    libraries = [built(OPS), built(SAMPLES)]
    target = compile_program(PROGRAMS / "two_libraries.cpp", tmp_path / "two", libraries=libraries, compiler=compiler)
    assert run(target) == ""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_without_exceptions(compiler: str, tmp_path: Path) -> None:
    options = ("-fno-exceptions", "-fno-rtti")
    target = compile_program(
        PROGRAMS / "macros.cpp", tmp_path / "macros", *options, libraries=[built(OPS)], compiler=compiler
    )
    assert run(target) == ""


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("path", [OPS, SAMPLES], ids=lambda p: p.stem)
def test_header_in_many_files(path: Path, compiler: str, tmp_path: Path) -> None:
    """Two files of one program include it, and nothing before it."""
    for name, text in (
        ("a", "int other();\nint main() { return other(); }"),
        ("b", "int other();\nint other() { return 0; }"),
    ):
        (tmp_path / f"{name}.cpp").write_text(f'#include "{path.stem}.hpp"\n#include "{path.stem}.hpp"\n{text}\n')
    target = tmp_path / "both"
    compile_program(tmp_path / "a.cpp", target, str(tmp_path / "b.cpp"), libraries=[built(path)], compiler=compiler)
    assert run(target) == ""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('ops::Conv2D(scope, x, x, {1, 1, 1, 1}, "SAME", ops::Conv2D::Strides({1}));', "no member|not a member"),
        ("ops::Conv2D(scope, x, x, {1, 1, 1, 1});", "no matching"),
        ('ops::Conv2D(scope, x, x, {1.5, 1.0, 1.0, 1.0}, "SAME");', "narrow"),
        ('ops::Conv2D::Attrs().DataFormat("NHWC");', "unused|ignor"),
        ("session.Run({x}, &outputs);", "unused|ignor"),
    ],
)
def test_mistakes_that_the_compiler_finds(line: str, why: str, tmp_path: Path) -> None:
    """With the same program without the line compiled first, so that it is the line."""
    body = """#include "nn_ops.hpp"
using namespace nn_ops;
int main() {{
  const Scope scope = Scope::NewRootScope();
  const auto x = ops::Const(scope, 1.0f);
  const ClientSession session(scope);
  std::vector<Tensor> outputs;
  {line}
}}
"""
    source = tmp_path / "program.cpp"
    source.write_text(body.format(line=""))
    compile_program(source, tmp_path / "program", libraries=[built(OPS)], compiler=COMPILERS[-1])
    source.write_text(body.format(line=line))
    with pytest.raises(AssertionError, match=f"(?s)error:.*({why})"):
        compile_program(source, tmp_path / "program", libraries=[built(OPS)], compiler=COMPILERS[-1])


def test_the_warnings_are_on() -> None:
    assert {"-Wall", "-Wextra", "-Wpedantic", "-Werror"} <= set(WARNINGS)
