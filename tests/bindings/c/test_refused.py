"""What no library can be made of: said as the caller's mistake, before anything is built or written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from opgen.cli import main

SPEC = "op Twice { type T in {float32} input x: T[n] output y: T[n] y[i] = 2 * x[i] }\n"


@pytest.mark.parametrize(
    ("file", "prefix", "message"),
    [
        ("my-ops.op", None, "'my-ops' is no name in C; what names shall begin with is said by --prefix"),
        ("3x.op", None, "'3x' is no name in C"),
        ("é.op", None, "'é' is no name in C"),
        ("ops.op", "../ops", "'../ops' is no name in C"),
        ("ops.op", "class", "'class' is a word that C or C++ keeps for itself"),
        ("ops.op", "st_mtime", "'st_mtime' is a macro or type of C's headers"),
        ("ops.op", "x", "'x' is not usable: the library's X_OK would be one of C's headers"),
        ("ops.op", "sem", "'sem' is not usable: the library's SEM_FAILED would be one of C's headers"),
        ("ops.op", "_ops", "'_ops' is not usable: names that begin with '_' or hold '__' are reserved in C and C++"),
    ],
)
def test_prefixes(tmp_path: Path, file: str, prefix: str | None, message: str) -> None:
    (tmp_path / file).write_text(SPEC, encoding="utf-8")
    given = [] if prefix is None else ["--prefix", prefix]
    wrong = CliRunner().invoke(main, ["build", str(tmp_path / file), "-o", str(tmp_path / "lib"), *given])
    assert wrong.exit_code == 1, wrong.output
    assert f"error: {message}" in wrong.output
    assert not (tmp_path / "lib").exists()


def test_a_file_with_another_prefix(tmp_path: Path) -> None:
    (tmp_path / "my-ops.op").write_text(SPEC, encoding="utf-8")
    given = ["build", str(tmp_path / "my-ops.op"), "-o", str(tmp_path / "lib"), "--prefix", "my_ops", "--jobs", "1"]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "lib" / "lib" / "libmy_ops.so").exists()


def test_long_lists(tmp_path: Path) -> None:
    path = tmp_path / "lists.op"
    path.write_text(SPEC.replace("output", "attr a: float[65] output", 1).replace("2 *", "a[1] *"), encoding="utf-8")
    wrong = CliRunner().invoke(main, ["build", str(path), "-o", str(tmp_path / "lib")])
    assert wrong.exit_code == 1, wrong.output
    assert "error: op Twice: attribute a has more than 64 elements, the most in a library" in wrong.output
