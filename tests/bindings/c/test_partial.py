"""Kernels for part of a call: declared in a spec or on the command line, taken by the library where they match."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from opgen.bindings.c.build import Options, build
from opgen.cli import main
from opgen.grad import load
from tests.bindings.c.library import OK, Library, of

SPEC = '''
op Smooth {
  """The sum of each window."""
  type T in {float32, float64}
  input input: T[size] """A row."""
  attr taps: int >= 1 """Its size."""
  output output: T[size] """A row."""
  output[x] = sum[r < taps](input[x + r])
  specialize T = float32, taps = 3
  specialize taps = 5
}
'''


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "smooth.op"
    found.write_text(SPEC)
    return found


def test_what_is_declared_is_taken_where_it_matches(path: Path, tmp_path: Path) -> None:
    module = load(path)
    built = build(module, path.name, tmp_path / "lib", Options(targets=("x86-64-v3",), jobs=1))
    table = (tmp_path / "lib" / "src" / "smooth" / "smooth_kernels.c").read_text()
    values = [line.split(" = ")[1] for line in table.splitlines() if line.startswith("static const int64_t values_")]
    assert values == ["{OPEN, 3};", "{OPEN, 5};", "{OPEN, 5};"]
    assert built.kernels == 2 * 2 + 3  # two levels of each type, and the declared ones at the higher level
    library = Library(module, tmp_path / "lib")
    op = module.op("Smooth")
    for dtype in (np.float32, np.float64):
        x = np.arange(40, dtype=dtype)
        for taps in (1, 3, 4, 5):
            out = np.zeros_like(x)
            assert library.run(op, [of(x)], {"taps": taps}, [of(out)]) == OK, library.error()
            np.testing.assert_array_equal(out, np.convolve(x, np.ones(taps, dtype))[taps - 1 :])


def test_on_the_command_line(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    given = ["build", str(path), "-o", str(folder), "--target", "x86-64-v3", "--jobs", "1"]
    done = CliRunner().invoke(main, [*given, "--specialize", "Smooth:T=float64:taps=7"])
    assert done.exit_code == 0, done.output
    assert re.search(r"^8 kernels, [0-8] of them compiled now, in \d+\.\d s$", done.output, re.MULTILINE)
    for library in ("libsmooth.so", "libsmooth.a"):
        size = re.search(rf"^(\d+\.\d) MB  .*{library}$", done.output, re.MULTILINE)
        assert size is not None
        assert abs(float(size[1]) - (folder / "lib" / library).stat().st_size / 1e6) <= 0.05
    table = (folder / "src" / "smooth" / "smooth_kernels.c").read_text()
    assert "values_0[] = {OPEN, 7};" in table
    wrong = CliRunner().invoke(main, [*given, "--specialize", "Smooth:tap=7"])
    assert wrong.exit_code != 0
    assert "no dimension, attribute or type 'tap'; did you mean 'taps'?" in wrong.output


def test_values_that_no_call_has_are_the_callers_mistake(path: Path, tmp_path: Path) -> None:
    path.write_text(SPEC.replace("  specialize", '  require size >= taps : input "enough"\n  specialize', 1))
    for given, why in (
        ("taps=0", "taps = 0: parameter 'taps' is 0, outside [1, 2147483647]"),
        ("size=-3", "size = -3: parameter 'size' is -3, outside [0, inf]"),
        ("size=2:taps=3", "size = 2, taps = 3: kernel 'smooth_float32' assumes size >= taps, which does not hold"),
    ):
        command = ["build", str(path), "-o", str(tmp_path / "lib"), "--specialize", f"Smooth:T=float32:{given}"]
        wrong = CliRunner().invoke(main, command)
        assert wrong.exit_code == 1, wrong.output
        assert "error: Smooth: no call has T = float32, " in wrong.output
        assert why in wrong.output
        assert not (tmp_path / "lib").exists()
    command = ["build", str(path), "-o", str(tmp_path / "lib"), "--specialize", "Smooth:size=9223372036854775808"]
    wrong = CliRunner().invoke(main, command)  # no integer of a call is that large, whatever an op makes of it
    assert wrong.exit_code == 1, wrong.output
    said = "expected integers of at most 18 digits for size, not '9223372036854775808'"
    assert wrong.output == f"error: --specialize {command[-1]}: {said}\n"
