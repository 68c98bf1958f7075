"""A library and the programs of another header: the number of the interface, sizes of structs, messages, lengths."""

from __future__ import annotations

import ctypes
import re
import subprocess
from ctypes import byref, c_char_p, c_int32, c_int64, c_size_t, c_uint64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgen.bindings.c.build import Options, build
from opgen.bindings.c.header import header_view
from opgen.bindings.c.interface import MESSAGE_SIZE
from opgen.bindings.c.names import STRUCT_SIZE, OpNames
from opgen.bindings.c.render import render_header
from opgen.bindings.cpp.render import render_header as render_hpp
from opgen.diagnostics import UserError
from opgen.grad.load import load_text
from opgen.spec.model.model import Module
from tests.bindings.c.library import INVALID, OK, Library, of
from tests.bindings.cpp.library import SANITIZED, WARNINGS
from tests.bindings.modules import OPS, SAMPLES, spec
from tests.codegen.llvm.guard import Guarded
from tools.c_library import attributes_begun, opened

TEXT = '''
op Scale {{
  """{doc}"""
  type T in {{float32}}
  input {first}: T[n] """The first."""
  input {second}: T[n] """The second."""
  attr mode: enum {{PLAIN, OTHER}} = PLAIN """How."""
{attrs}  output y: T[n] """The sum."""
  y[i] = ({first}[i] + {second}[i] * T(if mode == PLAIN then 2 else 3)) * T({factor})
}}
'''
FACTOR = '  attr factor: int = 1 """A factor."""\n'
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LINKED = ["-lm", "-ldl", "-lpthread"]


def module(
    doc: str = "A sum.", first: str = "a", second: str = "b", attrs: str = FACTOR, factor: str = "factor"
) -> Module:
    text = TEXT.format(doc=doc, first=first, second=second, attrs=attrs, factor=factor)
    return load_text(text, "scales.op")


def number(m: Module) -> int:
    return header_view(m, "scales", "scales.op").interface.number


OLD = {"attrs": "", "factor": "1"}
"""The spec before it gained its last attribute."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The library before and after the spec gained an attribute."""
    root = tmp_path_factory.mktemp("scales")
    for name, m in (("old", module(**OLD)), ("new", module())):
        build(m, "scales.op", root / name, Options(targets=("x86-64-v3",), jobs=1))
        (root / name / "include" / "scales.hpp").write_text(render_hpp(m, "scales", "scales.op"))
    return root / "old", root / "new"


def test_the_number_follows_from_declarations_alone() -> None:
    assert number(module()) == number(module(doc="Another text.\n\nWith a paragraph."))
    others = [
        module(attrs=FACTOR.replace("int", "float")),
        module(attrs=FACTOR + FACTOR.replace("factor", "other"), factor="factor * other"),
        module(attrs=FACTOR.replace("factor", "gain"), factor="gain"),
        module(first="b", second="a"),
        module(**OLD),
    ]
    numbers = [number(m) for m in (module(), *others)]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("path", [OPS, SAMPLES], ids=lambda p: p.stem)
def test_the_number_stands_for_every_declaration(path: Path) -> None:
    """What a compiler reads of the header, but for constants, is what the number is of."""
    m = spec(path)
    interface = header_view(m, m.name, path.name).interface
    header = re.sub(r"/\*.*?\*/", " ", render_header(m), flags=re.DOTALL)
    code = " ".join(line for line in header.splitlines() if not line.startswith("#"))
    api = m.name.upper() + "_API"
    declared = [" ".join(found.split()).replace("( ", "(") for found in re.findall(rf"{api} ([^;{{]*;)", code)]
    assert sorted(declared) == sorted(f.text for f in interface.functions)
    structs = re.findall(r"typedef struct (\w+) \{([^}]*)\}", code)
    found = {name: " ".join(fields.split()) for name, fields in structs}
    assert found == {s.name: " ".join(s.fields) for s in interface.structs}
    enumerators = dict(re.findall(rf"{m.name.upper()}_(\w+) = (\d+)", code))
    expected = {e.name: str(e.value) for e in interface.constants if e.name not in ("MAX_RANK", "MESSAGE_SIZE")}
    assert enumerators == expected


# A library of another layout ------------------------------------------------------------------------

IN_C = """
#include <stdio.h>
#include "scales.h"

int main(void)
{
    char message[SCALES_MESSAGE_SIZE];
    const scales_status status = scales_check_abi(message, sizeof message);
    printf("%d %s", (int)status, message);
    return 0;
}
"""
IN_CPP = """
#include <iostream>
#include "scales.hpp"

int main() {
  const scales::Tensor a = scales::Tensor::Of<float>({1, 2}, {2});
  const auto found = scales::scale(a, a);
  if (found.ok()) std::cout << 0 << " ";
  else std::cout << static_cast<int>(found.status().code()) << " " << found.status().message();
}
"""


def refusal(wanted: Module, there: Module) -> str:
    return (
        f"scales: expected a library of interface 0x{number(wanted):016x}, for which the program was compiled, given "
        f"one of 0x{number(there):016x}; take the header and the library of one build"
    )


def printed(source: str, name: str, header: Path, library: Path, place: Path, *options: str) -> str:
    """What a program prints that has its header and its library from different folders."""
    (place / name).write_text(source)
    compiler = ["g++", "-std=c++17", *WARNINGS] if name.endswith("pp") else ["gcc", *STRICT]
    found = [f"-I{header / 'include'}", place / name, library / "lib" / "libscales.a", *LINKED]
    subprocess.run([*compiler, *options, *found, "-o", place / "program"], check=True)
    done = subprocess.run([place / "program"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("source", "name", "code"), [(IN_C, "program.c", 5), (IN_CPP, "program.cpp", 9)])
def test_programs_refuse_a_library_of_another_layout(
    source: str, name: str, code: int, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    old, new = folders
    for header, library, wanted, there in (
        (old, new, module(**OLD), module()),
        (new, old, module(), module(**OLD)),
    ):
        assert printed(source, name, header, library, tmp_path) == f"{code} {refusal(wanted, there)}"
    for folder in folders:
        assert printed(source, name, folder, folder, tmp_path, *SANITIZED) == "0 "


def test_python_refuses_a_library_of_another_layout(folders: tuple[Path, Path]) -> None:
    old, new = folders
    with pytest.raises(UserError) as caught:
        opened(module(**OLD), new, "scales")
    assert str(caught.value) == refusal(module(**OLD), module())
    for m, folder in ((module(**OLD), old), (module(), new)):
        assert opened(m, folder, "scales").scales_get_num_threads() >= 1


# Sizes of structs -----------------------------------------------------------------------------------

OLDER = """
#include "scales.h"

int main(void)
{
    float a[2] = {1, 2}, b[2] = {10, 20}, y[2] = {0, 0};
    int64_t shape[] = {2};
    const scales_dtype f32 = {SCALES_FLOAT, 32, 1};
    const scales_tensor first = {a, {1, 0}, 1, f32, shape, NULL, 0}, second = {b, {1, 0}, 1, f32, shape, NULL, 0};
    const scales_tensor result = {y, {1, 0}, 1, f32, shape, NULL, 0};
    struct { scales_scale_attrs attrs; int64_t after; } given = {{0, NULL, 0}, 77};
    scales_scale_attrs_default(&given.attrs);
    given.attrs.mode = "OTHER, of which five letters are meant";
    given.attrs.mode_len = 5;
    return scales_scale(&first, &second, &given.attrs, &result) || y[0] != 31 || y[1] != 62 || given.after != 77;
}
"""


def test_a_struct_of_an_older_header_has_the_defaults_of_what_came_later(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    old, new = folders
    assert printed(OLDER, "program.c", old, new, tmp_path, *SANITIZED) == ""
    glue = sorted((new / "src" / "scales").glob("*.c"))
    assert printed(OLDER, "program.c", old, new, tmp_path, *SANITIZED, *map(str, glue)) == ""


@pytest.fixture
def library(folders: tuple[Path, Path]) -> Library:
    return Library(module(), folders[1])


def scaled(library: Library, size: int | None = None, **given: Any) -> tuple[int, str, list[float]]:
    """The status, the message in memory of its own, and the results of a call."""
    op = library.module.op("Scale")
    attrs = library.attrs(op, given)
    if size is not None:
        setattr(attrs, STRUCT_SIZE, size)
    y, message = np.zeros(2, np.float32), ctypes.create_string_buffer(b"?" * MESSAGE_SIZE, MESSAGE_SIZE)
    tensors = of(np.array([1, 2], np.float32)), of(np.array([10, 20], np.float32)), of(y)
    call = library.function("scales_scale_with_message")
    status = call(*map(byref, tensors[:2]), byref(attrs), byref(tensors[2]), message, c_size_t(MESSAGE_SIZE))
    return status, message.value.decode(), y.tolist()


def test_a_struct_that_was_not_begun_is_refused(library: Library) -> None:
    whole = ctypes.sizeof(
        attributes_begun(library.dll, library.module.op("Scale"), OpNames(library.module.op("Scale"), "scales"))
    )
    assert whole == 32
    assert scaled(library, factor=4) == (OK, "", [84, 168])
    assert scaled(library, 24, factor=4) == (OK, "", [21, 42])  # the struct ends before the factor
    for size in (0, 1, 8, 16, 23, 25, 31, 33, 40, 1 << 32, (1 << 64) - 1):
        said = f"a struct begun by scales_scale_attrs_default, of 32 bytes, given one of {size} bytes"
        assert scaled(library, size) == (INVALID, f"Scale: argument 'attrs': expected {said}", [0, 0])


def test_attributes_are_begun_within_their_size(library: Library) -> None:
    """What is behind a smaller struct is left alone, and so is one that has no room for its size."""
    for size in (0, 7, 8, 16, 24, 32, 48):
        memory = (ctypes.c_uint8 * 64)(*[0xAA] * 64)
        library.function("scales_scale_attrs_init")(memory, c_size_t(size))
        assert bytes(memory)[size:] == b"\xaa" * (64 - size)
        assert bytes(memory)[:8] == (size.to_bytes(8, "little") if size >= 8 else b"\xaa" * 8)
    library.function("scales_scale_attrs_init")(None, c_size_t(32))


# Messages and lengths -------------------------------------------------------------------------------


def test_messages_are_terminated_and_cut_between_characters(library: Library) -> None:
    op = library.module.op("Scale")
    attrs = library.attrs(op, {"mode": "grün"})
    full = "Scale: argument 'mode': expected one of PLAIN, OTHER, given 'grün'"
    call = library.function("scales_scale_shape_with_message")
    given = [of(np.zeros(2, np.float32)), of(np.zeros(2, np.float32))]
    for size in (0, 1, 2, 63, 64, 65, 66, 67, 68, 69, 500):
        memory = ctypes.create_string_buffer(b"\xee" * 512, 512)
        assert call(*map(byref, given), byref(attrs), None, memory, c_size_t(size)) == INVALID
        said = memory.raw[:size].partition(b"\0")
        assert memory.raw[size:] == b"\xee" * (512 - size)
        assert said[1] == (b"\0" if size else b"")
        text = said[0].decode()
        assert full.startswith(text)
        assert (
            len(said[0]) in ((size - 1, size - 2) if size <= len(full.encode()) else (len(full.encode()),)) or not size
        )
    assert call(*map(byref, given), byref(attrs), None, None, c_size_t(0)) == INVALID
    assert call(*map(byref, given), byref(attrs), None, None, c_size_t(9)) == INVALID


def test_every_call_has_one_with_a_message(library: Library) -> None:
    message = ctypes.create_string_buffer(MESSAGE_SIZE)
    last = message, c_size_t(MESSAGE_SIZE)
    for name in ("scale", "scale_shape", "scale_workspace"):
        assert library.function(f"scales_{name}_with_message")(None, None, None, byref(c_int64()), *last) == INVALID
        assert message.value
        message.value = b""
    with_workspace = library.function("scales_scale_with_workspace_and_message")
    assert with_workspace(None, None, None, None, None, c_size_t(0), *last) == INVALID
    assert message.value == b"Scale: argument 'a': expected a tensor, given nothing"
    assert library.function("scales_set_num_threads_with_message")(c_int32(0), *last) == INVALID
    assert message.value == b"set_num_threads: argument 'count': expected an integer >= 1 and <= 1024, given 0"
    require = library.function("scales_require_abi")
    assert require(c_uint64(number(library.module)), *last) == OK
    assert message.value == b""


@pytest.mark.parametrize("word", ["", "PLAIN\0", "PLAI", "OTHER\0OTHER", "PL\0IN", "\0", "üü"])
def test_words_may_have_any_length_and_hold_any_byte(word: str, library: Library) -> None:
    """What is said of a word is what Python says of it."""
    op = library.module.op("Scale")
    data = word.encode()
    behind = data + b"ER"  # not terminated where the word ends
    attrs = library.attrs(op, {})
    attrs.mode, attrs.mode_len = c_char_p(behind), len(data)
    expected = library.attrs(op, {"mode": word.replace("\0", "?")})
    assert expected.mode_len == -1
    tensors = [of(np.zeros(2, np.float32)), of(np.zeros(2, np.float32))]
    message = ctypes.create_string_buffer(MESSAGE_SIZE)
    shape = library.function("scales_scale_shape_with_message")
    status = shape(*map(byref, tensors), byref(attrs), None, message, c_size_t(MESSAGE_SIZE))
    assert status == INVALID
    assert message.value.decode().endswith(f", given {word!r}")


def test_a_length_that_is_none(library: Library) -> None:
    attrs = library.attrs(library.module.op("Scale"), {"mode": "PLAIN"})
    attrs.mode_len = -2
    tensors = [of(np.zeros(2, np.float32)), of(np.zeros(2, np.float32))]
    assert library.function("scales_scale_shape")(*map(byref, tensors), byref(attrs), None) == INVALID
    assert library.error() == "Scale: argument 'mode': expected one of PLAIN, OTHER, given a word of length -2"


LISTS = """
op Weighted {
  type T in {float32}
  input x: T[n]
  attr whole: int[3] = [1, 1, 1]
  attr parts: float[2] = [1, 1]
  output y: T[n]
  y[i] = x[i] * T(whole[0] + whole[1] + whole[2]) * T(parts[0] + parts[1])
}
"""


def test_a_length_that_lies(tmp_path: Path) -> None:
    """Of a list of a length that cannot be, no more is read than what the message shows."""
    m = load_text(LISTS, "lists.op")
    build(m, "lists.op", tmp_path, Options(targets=("x86-64-v3",), jobs=1))
    library = Library(m, tmp_path)
    op = m.op("Weighted")
    x = of(np.zeros(2, np.float32))
    for name, each, shown in (("whole", "a 32-bit integer", "0"), ("parts", "a number", "0.0")):
        guarded = Guarded(28, np.int64 if name == "whole" else np.float64)
        guarded.array[:] = 0
        attrs = library.attrs(op, {name: [1, 1, 1]})
        setattr(attrs, name, ctypes.cast(guarded.array.ctypes.data, type(getattr(attrs, name))))
        for length in (28, 29, 10**6, 2**62):
            setattr(attrs, f"{name}_len", length)
            assert library.function("lists_weighted_shape")(byref(x), byref(attrs), None) == INVALID
            count = {"whole": 3, "parts": 2}[name]
            given = ("[" + f"{shown}, " * 28)[:77] + "..."
            expected = f"Weighted: argument '{name}': expected a list of {count}, each {each}, given {given}"
            assert library.error() == expected
