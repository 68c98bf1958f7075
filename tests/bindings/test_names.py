"""Unlucky names: each, in each place of a spec, draws a diagnostic, or stands as it is in code that compiles."""

from __future__ import annotations

import builtins
import inspect
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from opgen.bindings.c.library import check_prefix, refuse_clashes
from opgen.bindings.c.render import render_header
from opgen.bindings.cpp.render import render_header as render_cpp_header
from opgen.bindings.generate import generate
from opgen.bindings.programs.view import STATUSES
from opgen.bindings.python.render import render_module
from opgen.diagnostics import DiagnosticError, UserError
from opgen.grad.load import load_text
from opgen.spec.model.model import Module
from opgen.spec.resolve import words
from opgen.spec.resolve.c_library import C_LIBRARY, HEADERS
from opgen.spec.resolve.names import snake_case, why_illegal, why_no_prefix
from opgen.spec.syntax.limits import WORDS
from tests.bindings.modules import execute

SEED = int(os.environ.get("OPGEN_SEED", 1))
EACH, OUTSIDE = 150, 40
"""Names that a run tries, of some two thousand, and how many of them outside of ops."""

INCLUDED = (
    *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math"),
    *("setjmp", "signal", "stdalign", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn"),
    *("string", "time", "uchar", "wchar", "wctype", "unistd", "pthread", "dlfcn", "sched"),
)
"""Headers of C that a program may include before a library's."""

HEAD = "".join(f"#include <{name}.h>\n" for name in INCLUDED)

needs_compilers = pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("g++")), reason="needs gcc and g++")

PLACES = {
    "input": "  input {0}: T[n]\n  let own_t{1}[i] = {0}[i]\n",
    "sizes": "  sizes {0}: [n]\n",
    "attribute": "  attr {0}: int = 0\n  let own_t{1}[i] = x[i] * T({0})\n",
    "alias": "  attr own_a{1}: int = 0 alias {0}\n  let own_t{1}[i] = x[i] * T(own_a{1})\n",
    "compatibility": "  attr {0}: bool = false compatibility\n",
    "list": "  attr {0}: int[2] = [1, 2]\n  let own_t{1}[i] = x[i] * T({0}[1])\n",
    "dimension": "  input own_y{1}: T[{0}, n] shape_only\n",
    "integer": "  let {0} = n + {1}\n  input own_y{1}: T[{0}] shape_only\n",
    "tensor": "  let {0}[i] = x[i]\n",
    "index": "  let own_t{1}[{0}] = x[{0}]\n",
    "reduction": "  let own_t{1}[i] = sum[{0} < 2](x[i - {0}]) where i < n\n",
    "constant": "  constant {0}[2] = [1, 2]\n  let own_t{1}[i] = sum[k]({0}[k] * x[i])\n",
    "type": "  type {0} in {{float32}}\n  input own_y{1}: {0}[n]\n  let own_t{1}[i] = T(own_y{1}[i])\n",
    "output": "  output {0}: T[n]\n  {0}[i] = x[i]\n",
}
"""A name in an op, which has others by number."""


def _op(lines: Iterable[str], name: str = "Sample") -> str:
    inside = "".join(lines)
    return f"op {name} {{\n  type T in {{float32}}\n  input x: T[n]\n{inside}  output z: T[n]\n  z[i] = x[i]\n}}\n"


def _around(place: str, name: str, number: int) -> str:
    """A spec with a name in a place outside an op, and an op that uses it."""
    if place == "function":
        return f"function {name}(a) -> b {{ return a }}\n" + _op([f'require {name}(n) > 0 : x "a"\n'], f"Fn{number}")
    if place == "parameter":
        head = f"function f{number}({name}) -> b {{ let c = {name} + 1 return c * {name} }}\n"
        return head + _op([f'require f{number}(n) > 0 : x "a"\n'], f"Par{number}")
    if place == "let of a function":
        head = f"function g{number}(a) -> b {{ let {name} = a + 1 return {name} }}\n"
        return head + _op([f'require g{number}(n) > 0 : x "a"\n'], f"Let{number}")
    if place == "fragment":
        return f"fragment {name} {{ attr a: int = 0 compatibility }}\n" + _op([f"use {name}\n"], f"Frag{number}")
    if place == "algorithm":
        return _op([], f"Alg{number}").replace("  z[i]", f"  algorithm {name} {{ z[i] = x[i] }}\n  z[i]")
    return _op([], name)


AROUND = ("function", "parameter", "let of a function", "fragment", "algorithm", "op")


def _accepted(text: str) -> bool:
    return not _codes(text)


def _codes(text: str) -> set[str]:
    """The codes of a spec's mistakes."""
    try:
        load_text(text)
    except DiagnosticError as error:
        return {d.code for d in error.diagnostics}
    return set()


def _of_different_functions(texts: Iterable[str]) -> Iterable[str]:
    """Specs that can stand in one file: `abs` and `Abs` have one function."""
    seen: set[str] = set()
    for text in texts:
        function = snake_case(re.findall(r"op (\w+) \{", text)[-1])
        if function not in seen:
            seen.add(function)
            yield text


def _macros(compiler: str, *options: str) -> dict[str, bool]:
    """The macros that the headers define, and whether each takes arguments."""
    run = subprocess.run([compiler, *options, "-dM", "-E", "-"], input=HEAD, capture_output=True, text=True, check=True)
    found = re.findall(r"^#define ([A-Za-z]\w*)(\(?)", run.stdout, re.MULTILINE)
    return {name: bool(bracket) for name, bracket in found}


def _unlucky() -> list[str]:
    tables = (words.SPEC, words.TYPES, words.PYTHON, words.GENERATED, words.MODULE, words.C, words.CPP, words.JAVA)
    more = (words.C_MACROS, words.CPP_API, words.JAVA_LANG, C_LIBRARY, HEADERS, sys.stdlib_module_names, dir(builtins))
    own = [
        "SAMPLE_MAX_RANK",
        "sample_tensor",
        "sample_status",
        "SAMPLE_OK",
        "Attrs",
        "attrs",
        "node",
        "operation",
        "mro",
    ]
    named = {n for table in (*tables, *more) for n in table if re.fullmatch(r"[A-Za-z]\w*", n)}
    return sorted({*named, *own, "workspace", "status", "scope", "call", "results", "E", "I", "J", "N", "l", "O", "u8"})


def _compile(text: str, folder: Path, compiler: str, *options: str) -> None:
    suffix = ".cpp" if compiler == "g++" else ".c"
    source = folder / f"program{suffix}"
    source.write_text(text)
    run = subprocess.run(
        [compiler, *options, "-fsyntax-only", f"-I{folder}", str(source)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[:4000]


def _compile_headers(module: Module, prefix: str, folder: Path) -> None:
    (folder / f"{prefix}.h").write_text(render_header(module, prefix))
    (folder / f"{prefix}.hpp").write_text(render_cpp_header(module, prefix))
    _compile(f'{HEAD}#include "{prefix}.h"\n', folder, "gcc", "-std=gnu11")
    _compile(f'#include "{prefix}.h"\n{HEAD}', folder, "gcc", "-std=c11", "-D_DEFAULT_SOURCE")
    _compile(f'{HEAD}#include "{prefix}.hpp"\n', folder, "g++", "-std=gnu++17")


@needs_compilers
def test_no_prefix_gives_a_constant_the_name_of_a_macro() -> None:
    """Headers that a program includes may define `X_OK`: then no library has the prefix `x`."""
    module = load_text(_op([]), "small.op")
    own = set(re.findall(r"\bZZ_([A-Z_]+)\b", render_header(module, "zz"))) | {status.name for status in STATUSES}
    assert {"OK", "FAILED", "ABI_VERSION"} <= own
    for macro in _macros("gcc", "-std=gnu17", "-D_GNU_SOURCE"):
        prefix = next((macro.removesuffix(f"_{name}").lower() for name in own if macro.endswith(f"_{name}")), None)
        assert prefix is None or why_no_prefix(prefix) is not None, macro


@needs_compilers
def test_unlucky_names(tmp_path: Path) -> None:
    print(f"OPGEN_SEED={SEED}")
    names = random.Random(SEED).sample(_unlucky(), EACH)
    texts = []
    for place, line in PLACES.items():
        fine = [n for n in names if _accepted(_op([line.format(n, 0)]))]
        texts.append(_op((line.format(n, k) for k, n in enumerate(fine)), f"Op{place.capitalize()}"))
    listed = [n for n in names if _accepted(_op([f"  attr e: enum {{A0, {n}}} = {n} compatibility\n"]))]
    for at in range(0, len(listed), WORDS):
        enum = f"  attr e: enum {{{', '.join(listed[at : at + WORDS])}}} = {listed[at]}\n"
        texts.append(_op([enum, f"  let t[i] = if e == {listed[at]} then x[i] else -x[i]\n"], f"Words{at}"))
    for place in AROUND:
        around = [_around(place, n, k) for k, n in enumerate(names[:OUTSIDE])]
        texts += [text for text in around if _accepted(text)]
    texts.append(_op([], "Unlucky"))  # the function of the namespace's name
    module = load_text("".join(_of_different_functions(texts)), "unlucky_names.op")
    made = execute("unlucky_names", render_module(module), tmp_path)
    for op in module.ops:
        parameters = inspect.signature(getattr(made, op.function_name)).parameters
        assert list(parameters) == [*op.signature, "out"]
        assert hasattr(made.raw_ops, op.name)
    refuse_clashes(module, "unlucky")
    _compile_headers(module, "unlucky", tmp_path)


@needs_compilers
def test_every_macro_of_a_header_is_refused() -> None:
    """Macros without arguments stand for something wherever their name does; with arguments, before a bracket only."""
    in_c = {name for name, arguments in _macros("gcc", "-std=gnu11").items() if not arguments}
    in_cpp = set(_macros("g++", "-xc++", "-std=gnu++17"))
    assert len(in_c) > 400
    assert sorted(name for name in in_c | in_cpp if why_illegal(name) is None) == []


@needs_compilers
def test_prefixes(tmp_path: Path) -> None:
    """A prefix is refused, or its headers compile beside all of C's."""
    print(f"OPGEN_SEED={SEED}")
    module = load_text(_op([]))
    names = [n for n in _unlucky() if why_no_prefix(n) is None]
    assert {"malloc", "stdio", "string", "std", "errno", "internal", "int"}.isdisjoint(names)
    for name in random.Random(SEED).sample(names, 3):
        print(name)
        _compile_headers(module, name, tmp_path)


@pytest.mark.parametrize("prefix", ["malloc", "stdio", "int", "size_t", "I", "a-b", "__a", "Scope"])
def test_a_prefix_that_cannot_be_is_refused(prefix: str) -> None:
    with pytest.raises(UserError, match=r"--prefix"):
        check_prefix(prefix)


@pytest.mark.parametrize("name", ["sample_tensor", "SAMPLE_MAX_RANK"])
def test_names_of_the_library_itself_are_refused(name: str) -> None:
    module = load_text(_op([PLACES["input"].format(name, 0)]))
    with pytest.raises(UserError, match=f"'{name}' begins as the library's own names do"):
        refuse_clashes(module, "sample")


@pytest.mark.parametrize("name", ["typing", "signal", "numpy", "class"])
def test_modules_that_would_hide_one_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.op").write_text(_op([]))
    with pytest.raises(UserError, match=f"'{name}' (would hide|cannot be)"):
        generate([tmp_path / f"{name}.op"], tmp_path / "out")


@pytest.mark.parametrize("op", ["rows", "check", "Check", "stretched", "Tensor", "Scope", "Object", "Print", "Half"])
def test_an_op_that_would_be_renamed_is_refused(op: str) -> None:
    with pytest.raises(DiagnosticError, match=r"S010"):
        load_text(_op([], op))


@pytest.mark.parametrize("op", ["Exp", "Where", "Floor"])
def test_a_function_may_be_called_as_a_word_of_specs(op: str) -> None:
    assert load_text(_op([], op)).op(op).function_name == op.lower()
