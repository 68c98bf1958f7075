"""C says the same as Python of numbers with which a kernel's integers would not fit, and reads nothing outside."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import opgen
from opgen.bindings.c.build import Options, build
from opgen.diagnostics.calls import ArgumentValueError
from opgen.grad import load
from opgen.runtime.memory.guard import AnyArray, guarded_copy, guarded_empty
from opgen.spec.model.model import Module
from tests.bindings.c.library import INVALID, OK, Library, of
from tests.support.wide_terms import LARGE, op_text, term

OPS = 16
FUNCTIONS = """function part(n, k) -> result {
  return n * k * k // (k - 5)
}

op Parts {
  input x: float32[n]
  attr k: int = 1
  output y: float32[n]
  y[i] = sum[r < part(n, k)](x[i - r])
}
"""

NAMED = """op Named {{
  input x: float32[n]
  attr k: int = 1
  let m = {named}
  require m {condition} : x "m, not {{m}}"
  output y: float32[max(0, m % 7)]
  y[i] = x[i + m] else 7
}}
"""
"""An op with an integer that cannot always be computed; the braces are for `format`."""


def _by_python(function: Callable[..., Any], x: AnyArray, attrs: Mapping[str, int]) -> list[float] | str:
    try:
        return [float(v) for v in function(x, **attrs)]
    except ArgumentValueError as error:
        return str(error)


def _checked_library(module: Module, folder: Path, path: Path) -> Library:
    """The library built so that undefined behaviour of its glue ends the process."""
    build(module, path.name, folder, Options(targets=("x86-64",)))
    objects = folder / "objects"
    objects.mkdir()
    name = f"lib{module.name}"
    subprocess.run(["ar", "x", folder / "lib" / f"{name}.a", "--output", objects], check=True)
    kernels = [o for o in objects.glob("*.o") if o.name.startswith(f"{module.name}_k_")]
    assert kernels
    sources = sorted((folder / "src" / module.name).glob("*.c"))
    flags = ["-std=c99", "-O1", "-fPIC", "-shared", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    target = folder / "checked" / "lib" / f"{name}.so"
    target.parent.mkdir(parents=True)
    command = ["cc", *flags, f"-I{folder / 'include'}", *sources, *kernels, "-o", target, "-lm", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return Library(module, folder / "checked")


def test_random_subscripts(tmp_path: Path) -> None:
    rng = random.Random("limits in c")
    path = tmp_path / "looks.op"
    path.write_text("\n".join(op_text(f"Look{i}", term(rng, 3)[0]) for i in range(OPS)))
    module, live = load(path), opgen.load(path)
    library = _checked_library(module, tmp_path, path)
    refused = 0
    for op in module.ops:
        for _ in range(40):
            attrs, n = {"a": rng.choice(LARGE), "b": rng.choice(LARGE)}, rng.choice([1, 2, 5])
            side = rng.choice(("end", "start"))
            x = guarded_copy(np.arange(1, n + 1, dtype=np.float32), side, read_only=True).array
            y = guarded_empty((n,), np.dtype(np.float32), side).array
            status = library.run(op, [of(x)], attrs, [of(y)])
            found = y.tolist() if status == OK else library.error()
            expected = _by_python(getattr(live, op.function_name), x, attrs)
            refused += isinstance(expected, str)
            assert found == expected, f"{op_text(op.name, '...')} with {attrs}, n = {n}"
            assert status == (INVALID if isinstance(expected, str) else OK)
    assert refused > 20


def test_functions_in_ranges(tmp_path: Path) -> None:
    path = tmp_path / "parts.op"
    path.write_text(FUNCTIONS)
    module, live = load(path), opgen.load(path)
    build(module, path.name, tmp_path, Options(targets=("x86-64",)))
    library, op = Library(module, tmp_path), module.op("Parts")
    x, y = np.ones(3, np.float32), np.empty(3, np.float32)
    for k, message in ((5, "division by zero"), (2**31 - 1, "does not fit in 64 bits"), (6, ""), (1, "")):
        status = library.run(op, [of(x)], {"k": k}, [of(y)])
        found = y.tolist() if status == OK else library.error()
        assert found == _by_python(live.parts, x, {"k": k})
        assert status == (INVALID if message else OK)
        if message:
            assert "expected numbers for which part can be computed, given" in found
            assert message in found


def test_named_integers(tmp_path: Path) -> None:
    """Integers that cannot be computed are refused by both alike, those on the way to others too."""
    cases = [("n // k", "< 9 // k"), ("n * k * k * k * k // k // k // k", "!= 8"), ("n % (k - 2)", "< 5 % k")]
    for number, (named, condition) in enumerate(cases):
        path = tmp_path / f"named{number}.op"
        path.write_text(NAMED.format(named=named, condition=condition).replace("{{", "{").replace("}}", "}"))
        module, live = load(path), opgen.load(path)
        build(module, path.name, tmp_path, Options(targets=("x86-64",)))
        library, op = Library(module, tmp_path), module.op("Named")
        for k in (0, 1, 2, -1, 3, 2**31 - 1, -(2**31)):
            x = np.arange(4, dtype=np.float32)
            shape = library.shape(op, [of(x)], {"k": k})
            y = np.empty(int(shape.partition("(")[2].partition(",")[0]) if shape.startswith("{") else 0, np.float32)
            status = library.run(op, [of(x)], {"k": k}, [of(y)])
            found = y.tolist() if status == OK else library.error()
            assert found == _by_python(live.named, x, {"k": k}), (named, condition, k)
