"""Types of at most 8 bits in libraries: all bytes there and back, as ml_dtypes has them; messages as in Python."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from opgen.bindings.c.build import Options, build
from opgen.bindings.cpp.render import render_header
from opgen.bindings.java.build import build_java
from opgen.diagnostics.calls import ArgumentError
from opgen.dtypes import DTYPES, FLOAT32, INT8, DType
from opgen.loop.arithmetic import NUMPY, cast_lanes
from tests.bindings.c.library import INVALID, OK, Library, of, tensor
from tests.bindings.cpp.library import COMPILERS, compile_program, run
from tests.bindings.java.library import FLAGS, JDK, WHY_NOT
from tests.bindings.modules import ROOT, generated, spec
from tests.support.small_floats import numbers

SPEC = ROOT / "tests" / "specs" / "small_types.op"
HERE = Path(__file__).parent / "small"
SMALL = [d for d in DTYPES.values() if d.is_bits]
BYTES = np.arange(256, dtype=np.uint8)
ONES = np.ones(256, np.float32)
FACTORS = np.random.default_rng(7).uniform(-3, 3, 256).astype(np.float32)
VALUES = np.append(np.unique(np.concatenate([numbers(d) for d in SMALL if d.small is not None])), -0.0).astype(
    np.float32
)
"""What is near any number of any of the types, and far beyond."""
BYTES_OF = np.nan_to_num(np.clip(VALUES, -100, 100)).astype(np.int8)
Array = NDArray[np.generic]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("small")
    build(spec(SPEC), SPEC.name, place, Options(targets=("x86-64-v3",), jobs=1))
    (place / "include" / "small_types.hpp").write_text(render_header(spec(SPEC)))
    return place


def wide(dtype: DType) -> NDArray[np.float32]:
    """All bytes as float32, as ml_dtypes converts them: the lowest bits, as it does not say what others mean."""
    return (BYTES & ((1 << dtype.digits) - 1)).view(NUMPY[dtype.name]).astype(np.float32)


def kept(dtype: DType) -> NDArray[np.uint8]:
    """These as bytes again."""
    return wide(dtype).astype(NUMPY[dtype.name]).view(np.uint8)


def test_c(folder: Path) -> None:
    """Results as in Python, bit for bit, in the memory of the caller; a header for C99 and C++."""
    library, python = Library(spec(SPEC), folder), generated(SPEC)
    op = library.module.op("Scaled")
    for dtype in SMALL:
        x = BYTES.view(NUMPY[dtype.name])
        for by in (ONES, FACTORS):
            y = np.full(258, 0xCD, np.uint8)
            out = y[1:-1].view(x.dtype)
            assert library.run(op, [of(x), of(by)], {}, [of(out)]) == OK, library.error()
            assert np.array_equal(y[1:-1], python.scaled(x, by).view(np.uint8)), dtype
            assert (y[0], y[-1]) == (0xCD, 0xCD), dtype
            assert by is FACTORS or np.array_equal(y[1:-1], kept(dtype)), dtype
    x, scale = BYTES.view(ml_dtypes.int4), np.roll(BYTES, 100).view(ml_dtypes.float8_e8m0fnu)
    out = np.zeros(256, ml_dtypes.float8_e5m2)
    assert library.run(library.module.op("Unpacked"), [of(x), of(scale)], {}, [of(out)]) == OK, library.error()
    assert np.array_equal(out.view(np.uint8), python.unpacked(x, scale).view(np.uint8))
    source = folder / "strict.c"
    source.write_text('#include "small_types.h"\nint main(void) { return SMALL_TYPES_FLOAT4_E2M1FN != 17; }\n')
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{folder / 'include'}", "-o", str(folder / "strict")]
    subprocess.run(["gcc", *flags, str(source)], check=True)
    subprocess.run([str(folder / "strict")], check=True)
    subprocess.run(["gcc", *flags[:-2], "-fsyntax-only", *(folder / "src" / "small_types").glob("*.c")], check=True)


WRONG = [
    ("Scaled", ("int16", "float32")),
    ("Scaled", ("float8_e5m2", "int4")),
    ("Unpacked", ("uint4", "float8_e8m0fnu")),
    ("Unpacked", ("int4", "float4_e2m1fn")),
]


@pytest.mark.parametrize(("name", "types"), WRONG)
def test_messages_are_those_of_python(name: str, types: tuple[str, ...], folder: Path) -> None:
    library = Library(spec(SPEC), folder)
    op = library.module.op(name)
    arrays: list[Any] = [np.zeros(3, NUMPY[t]) for t in types]
    with pytest.raises(ArgumentError) as caught:
        getattr(generated(SPEC), op.function_name)(*arrays)
    assert library.run(op, [*map(of, arrays)], {}, [tensor((3,))]) == INVALID
    assert library.error() == str(caught.value)


def _agree(found: bytes, given: Array, source: DType) -> None:
    """What a program wrote: floats of bytes, bytes of numbers (integers' of `given`) and of a call, for each type."""
    for dtype in SMALL:
        part, found = found[: 256 * 5 + VALUES.size], found[256 * 5 + VALUES.size :]
        floats, to = np.frombuffer(part, np.float32, 256), NUMPY[dtype.name]
        assert np.array_equal(floats, wide(dtype), equal_nan=True), dtype
        assert np.array_equal(np.signbit(floats[floats == 0]), np.signbit(wide(dtype)[floats == 0])), dtype
        bits = np.frombuffer(part, np.uint8, VALUES.size, 1024)
        meant = cast_lanes(given, source, dtype) if dtype.small is None else cast_lanes(VALUES, FLOAT32, dtype)
        assert np.array_equal(bits, meant.view(np.uint8)), dtype
        if dtype.small is not None:  # ml_dtypes has no meaning for NaN that is not the type's, and rounds denormals up
            said = ~np.isnan(VALUES) & ((np.abs(VALUES) >= 2.0**-126) | dtype.small.signed)
            assert np.array_equal(bits[said], VALUES[said].astype(to).view(np.uint8)), dtype
        assert np.array_equal(np.frombuffer(part, np.uint8, 256, 1024 + VALUES.size), kept(dtype)), dtype
    assert not found


@pytest.mark.skipif(not COMPILERS, reason="needs a C++ compiler")
def test_cpp(folder: Path, tmp_path: Path) -> None:
    VALUES.tofile(tmp_path / "values")
    program = compile_program(HERE / "small_types.cpp", tmp_path / "small", "-fsanitize=undefined", libraries=[folder])
    run(program, str(tmp_path / "values"), str(tmp_path / "answers"))
    _agree((tmp_path / "answers").read_bytes(), VALUES, FLOAT32)


@pytest.mark.skipif(JDK is None, reason=WHY_NOT)
def test_java(folder: Path, tmp_path: Path) -> None:
    assert JDK is not None
    assert build_java(spec(SPEC), SPEC.name, folder).note is None
    VALUES.tofile(tmp_path / "values")
    jar, java = str(folder / "lib" / "small_types.jar"), str(JDK.home / "bin" / "java")
    compiled = ["--release", "11", *FLAGS, "-cp", jar, "-d", str(tmp_path), str(HERE / "SmallTypes.java")]
    subprocess.run([*JDK.javac, *compiled], check=True)
    arguments = ["SmallTypes", str(tmp_path / "values"), str(tmp_path / "answers")]
    subprocess.run([java, "-Xcheck:jni", "-cp", f"{jar}:{tmp_path}", *arguments], check=True)
    _agree((tmp_path / "answers").read_bytes(), BYTES_OF, INT8)
