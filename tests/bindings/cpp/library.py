"""Built C++ libraries and programs for tests, and a program that makes every call of a table in one go."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from opgen.bindings.c.names import spellings
from opgen.bindings.cpp.attributes import choices, optional_attrs
from opgen.bindings.cpp.names import class_names, function_names
from opgen.bindings.cpp.render import render_cpp
from opgen.bindings.cpp.view import op_names
from opgen.spec.model.model import Attr, OpSpec
from tests.bindings.c import library as c
from tests.bindings.modules import spec

HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
COMPILERS = tuple(name for name in ("g++", "clang++") if shutil.which(name))
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_TYPES = {"bfloat16": ml_dtypes.bfloat16}


@functools.cache
def built(path: Path) -> Path:
    """The folder of a library, with its C++ files."""
    folder = c.built(path)
    for name, text in render_cpp(spec(path), source=path.name).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="opgen-cpp-tests-")


def compile_program(
    source: Path, target: Path, *options: str, libraries: Sequence[Path], compiler: str = "g++", standard: int = 17
) -> Path:
    """A program linked with the shared libraries of some folders.  The warnings are errors."""
    command = [compiler, f"-std=c++{standard}", *WARNINGS, *options, str(source), "-o", str(target)]
    for folder in libraries:
        names = [p.stem.removeprefix("lib") for p in (folder / "lib").glob("*.so")]
        command += [f"-I{folder / 'include'}", f"-L{folder / 'lib'}", f"-Wl,-rpath,{folder / 'lib'}"]
        command += [f"-l{name}" for name in names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return target


def run(program: Path, *arguments: str, **environment: str) -> str:
    """What a program prints; it must succeed and say nothing on stderr."""
    full = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1", **environment}
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, env=full)
    assert done.returncode == 0, f"{program} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    expected = "WARNING: AddressSanitizer failed to allocate"  # said where a program asks for far too much on purpose
    assert not done.stderr or expected in done.stderr, done.stderr
    return done.stdout


# The table-driven program ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A call: inputs in the op's order, attributes by spelling."""

    op: OpSpec
    inputs: tuple[npt.NDArray[Any], ...]
    attrs: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """Results, or a code with a message."""

    results: tuple[npt.NDArray[Any], ...] = ()
    code: int = 0
    message: str = ""


@functools.cache
def runner(path: Path, *options: str) -> Path:
    """The program for a spec file."""
    name = f"{path.stem}_runner{len(options)}"
    source = Path(_folder().name) / f"{name}.cpp"
    source.write_text(runner_source(path))
    return compile_program(source, source.with_suffix(""), *options, libraries=[built(path)])


def runner_source(path: Path) -> str:
    """The program's source: the ops are from the spec, the rest is `runner.hpp`."""
    module = spec(path)
    classes, functions = class_names(module.ops), function_names(module.ops)
    lines = [
        f'#include "{module.name}.hpp"',
        f"namespace LIB = {module.name};",
        f'#include "{HERE / "runner.hpp"}"',
        "",
    ]
    lines += ["Answer Call(const Job& job) {", "  using namespace LIB;"]
    for op in module.ops:
        lines += _dispatch(op, classes[op.name], functions[op.name])
    return "\n".join([*lines, "  std::abort();", "}", ""])


def _dispatch(op: OpSpec, cls: str, function: str) -> list[str]:
    names = op_names(op, cls)
    lines = [f'  if (job.op == "{op.name}") {{']
    attrs = [(a, s) for a in optional_attrs(op) for s in spellings(a)]
    if attrs:
        lines.append(f"    ops::{cls}::Attrs attrs;")
    lines += [f'    if (job.Has("{s}")) attrs = attrs.{names.setters[s]}({_value(a, s)});' for a, s in attrs]
    for form in reversed(choices(op)):
        condition = " && ".join(f'job.Has("{a.name}")' for a in form) or "true"
        rest = [*(_value(a, a.name) for a in form), *(["attrs"] if attrs else [])]
        direct = ", ".join([*(f"job.in[{i}]" for i in range(len(op.inputs))), *rest])
        recorded = ", ".join(["graph.scope", *(f"graph.in[{i}]" for i in range(len(op.inputs))), *rest])
        lines += [
            f"    if ({condition}) {{",
            f'      if (job.mode == "eager") return Direct(LIB::{function}({direct}));',
            "      Graph graph(job);",
            f"      return graph.Run(ops::{cls}({recorded}).operation);",
            "    }",
        ]
    return [*lines, "  }"]


def _value(attr: Attr, spelling: str) -> str:
    if attr.shape:
        return f'job.{"Doubles" if attr.kind == "float" else "Longs" if attr.wide else "Ints"}("{spelling}")'
    kind = {"int": "Int", "float": "Double", "bool": "Bool"}.get(attr.kind, "Word")
    return f'job.{kind}("{spelling}")'


def call_all(path: Path, mode: str, calls: Sequence[Call], *options: str) -> list[Answer]:
    """Every call's answer."""
    return answers(calls, lambda *files: run(runner(path, *options), mode, *files))


def answers(calls: Sequence[Call], program: Callable[[str, str, str], str]) -> list[Answer]:
    """Every call's answer by a program that is given a table of calls, the inputs' elements and a file for the
    results'; it prints a line for each call (`runner.hpp` says what stands where).
    """
    with tempfile.TemporaryDirectory(prefix="opgen-calls-") as name:
        table, given, made = (Path(name) / n for n in ("calls.txt", "inputs.bin", "outputs.bin"))
        position = 0
        with given.open("wb") as blob, table.open("w") as lines:
            for i, call in enumerate(calls):
                words = [str(i), call.op.name, str(len(call.inputs))]
                for array in call.inputs:
                    words += [array.dtype.name, str(array.ndim), *map(str, array.shape), str(position)]
                    position += blob.write(np.ascontiguousarray(array).tobytes())
                chosen = {n: v for n, v in call.attrs.items() if v is not None}
                words.append(str(len(chosen)))
                for attr, value in chosen.items():
                    values = _texts(value)
                    words += [_field(call.op, attr, value), str(len(values)), *values]
                lines.write(" ".join(words) + "\n")
        text = program(str(table), str(given), str(made))
        outputs = made.read_bytes()
    found = [_answer(line.split(" ", 1)[1], outputs) for line in text.splitlines()]
    assert len(found) == len(calls)
    return found


def _field(op: OpSpec, name: str, value: Any) -> str:
    """The attribute that a value is for: a list may stand in a word's place."""
    attr = next(a for a in op.attrs if name in spellings(a))
    return attr.payload[1] if attr.payload is not None and not isinstance(value, str) else name


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return ["=" + value.encode().hex() + "."]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _texts(v)]
    return [repr(value)]


def _answer(text: str, outputs: bytes) -> Answer:
    if text.startswith("error"):
        _, code, message = text.split(" ", 2)
        return Answer(code=int(code), message=message)
    words = text.split()[1:]
    results = []
    while words:
        dtype, rank = np.dtype(_TYPES.get(words[0], words[0])), int(words[1])
        shape = tuple(int(w) for w in words[2 : 2 + rank])
        count = int(np.prod(shape, dtype=np.int64))
        results.append(np.frombuffer(outputs, dtype, count, int(words[2 + rank])).reshape(shape))
        words = words[3 + rank :]
    return Answer(tuple(results))


def expressible(op: OpSpec, name: str, value: Any) -> bool:
    """Whether C++ can say it: the right kind, and every integer an int."""
    attr = next((a for a in op.attrs if name in spellings(a)), None)
    if attr is None:
        return False
    if attr.kind in ("enum", "layout") and isinstance(value, str):
        return True
    if attr.payload is not None:
        attr = op.attr(attr.payload[1])
        if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == attr.shape[1] for row in value):
            return False
        value = [v for row in value for v in row]
    if attr.shape:
        kinds = (int, float) if attr.kind == "float" else (int,)
        return isinstance(value, list | tuple) and all(type(v) in kinds and abs(v) < 2**31 for v in value)
    return type(value) is {"int": int, "float": float, "bool": bool}.get(attr.kind)
