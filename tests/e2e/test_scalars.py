"""Elements of every scalar type: in Python, C, C++, CUDA C and by the interpreter as numpy has them."""

from __future__ import annotations

import functools
import math
import re
import tempfile
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from opgen.dtypes import DTYPES, DType, wrap
from opgen.loop.interpret import interpret
from opgen.passes.legalize import legalize
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import run_emulated
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.schedule.default import scheduled
from opgen.spec.unparse import write_op
from tests.bindings.c.library import OK, Library, built, of
from tests.bindings.cpp.library import COMPILERS, Call, call_all
from tests.bindings.modules import ROOT, generated, spec
from tests.harness import Call as Lowered
from tests.support.rounding import rounded

Array = npt.NDArray[np.generic]
SCALARS = ROOT / "tests" / "specs" / "scalars.op"
INTEGERS = tuple(d for d in DTYPES.values() if d.is_int and not d.is_bits)
TYPES = {
    "Arithmetic": INTEGERS,
    "Totals": INTEGERS,
    "Matches": (DTYPES["uint8"],),
    "Words": (DTYPES["uint64"],),
    "Converted": tuple(d for d in DTYPES.values() if not d.is_bits),
    "Whole": INTEGERS,
    "Mixed": tuple(DTYPES[t] for t in ("int8", "int64", "uint32")),
}
CASES = [(op, dtype) for op, types in TYPES.items() for dtype in types]
FEW = ("int8", "uint32", "uint64", "bool", "bfloat16")
"""In C and C++, whose libraries take a while to build."""
_folder = tempfile.TemporaryDirectory(prefix="opgen-scalars-")


def values(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Elements of a type: small ones, any ones, and the ends of its range (of floats: of those of integers)."""
    if not dtype.is_float:
        small = rng.integers(max(dtype.least, -9), min(dtype.greatest, 9), shape, endpoint=True)
        large = rng.integers(dtype.least, dtype.greatest, shape, numpy_dtype(dtype), endpoint=True)
        ends = np.array([dtype.least, dtype.greatest], large.dtype)
        return np.where(
            rng.random(shape) < 0.3,
            small.astype(large.dtype),
            np.where(rng.random(shape) < 0.2, rng.choice(ends, shape), large),
        )
    with np.errstate(over="ignore"):
        ends = np.array(
            [float(n) for d in INTEGERS for n in (d.least, d.greatest + 1)] + [np.nan, np.inf, -np.inf, -0.5]
        )
        found = np.where(rng.random(shape) < 0.4, rng.choice(ends, shape), rng.standard_normal(shape) * 200)
        return found.astype(numpy_dtype(dtype))


def converted(x: Array, to: DType) -> Array:
    """Every element as one of another type, by exact numbers."""
    exact = [v if isinstance(v, int) else float(v) for v in x.tolist()]
    return np.array([_converted(v, to) for v in exact], numpy_dtype(to))


def _converted(v: float, to: DType) -> float:
    if to.kind == "bool":
        return v != 0
    if to.is_int and isinstance(v, int):
        return wrap(v, to)
    if not np.isfinite(v):
        return v if to.is_float else 0 if v != v else to.greatest if v > 0 else to.least
    if to.is_int:
        return min(max(int(v), to.least), to.greatest)
    return math.copysign(rounded(Fraction(v), to), v)


@functools.cache
def case(op: str, dtype: DType, seed: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs, and the results that numpy gives for them."""
    rng = np.random.default_rng([seed, list(DTYPES).index(dtype.name)])
    if op == "Arithmetic":
        a, b = (values(rng, dtype, (61,)) for _ in range(2))
        results = (a + b, a - b, a * b, -a, np.abs(a), np.maximum(a, b), np.minimum(a, b), a < b, a == dtype.greatest)
        return {"a": a, "b": b}, dict(zip(_outputs(op), results, strict=True))
    if op == "Whole":
        a, b = values(rng, dtype, (61,)), values(rng, dtype, (61,))
        b[::3] = rng.integers(-3 if dtype.signed else 0, dtype.bits + 2, len(b[::3])).astype(b.dtype)
        results = [[of_elements(n, int(x), int(y), dtype) for x, y in zip(a, b, strict=True)] for n in WHOLE]
        return {"a": a, "b": b}, dict(zip(_outputs(op), (np.array(r, a.dtype) for r in results), strict=True))
    if op == "Mixed":
        a = values(rng, dtype, (61,))
        results = (wrap(_numbers(int(x)), dtype) for x in a)
        return {"a": a}, {"y": np.array(list(results), a.dtype)}
    if op == "Totals":
        x = values(rng, dtype, (5, 37))
        wide = x.astype(np.int64).sum(1)
        results = (x.sum(1, x.dtype), wide, x.prod(1, x.dtype), x.max(1), x.min(1))
        return {"x": x}, dict(zip(_outputs(op), results, strict=True))
    if op == "Matches":
        a, b = values(rng, dtype, (7, 33)), values(rng, DTYPES["int8"], (33, 70))
        zero = values(rng, dtype, (7,))
        y = (a.astype(np.int32) - zero.astype(np.int32)[:, None]) @ b.astype(np.int32)
        return {"a": a, "zero": zero, "b": b}, {"y": y}
    x = values(rng, dtype, (67,))
    if op == "Words":
        return {"x": x}, {"y": np.where(x == dtype.greatest, np.uint64(2**63), np.uint64(dtype.greatest))}
    return {"x": x}, {o.name: converted(x, DTYPES[o.dtype]) for o in spec(SCALARS).op(op).outputs}


WHOLE = ("quot", "rem", "floordiv", "mod", "pow", "and", "or", "xor", "not", "shl", "shr", "sign")


def of_elements(op: str, x: int, y: int, dtype: DType) -> int:
    """What an op gives of two integers, by exact numbers."""
    exact = Fraction(x, y) if y else Fraction(0)
    inside = 0 <= y < dtype.bits
    found = {
        "quot": lambda: math.trunc(exact),
        "rem": lambda: x - y * math.trunc(exact) if y else 0,
        "floordiv": lambda: math.floor(exact),
        "mod": lambda: x - y * math.floor(exact) if y else 0,
        "pow": lambda: pow(x, y, 1 << dtype.bits) if y >= 0 else _small_power(x, y),
        "and": lambda: x & y,
        "or": lambda: x | y,
        "xor": lambda: x ^ y,
        "not": lambda: ~x,
        "shl": lambda: x << y if inside else 0,
        "shr": lambda: x >> (y if inside else dtype.bits),
        "sign": lambda: (x > 0) - (x < 0),
    }[op]()
    return wrap(int(found), dtype)


def _small_power(x: int, y: int) -> int:
    """1 / x**-y rounded towards 0."""
    return 0 if abs(x) != 1 else x if y % 2 else 1


def _numbers(x: int) -> int:
    thirds = abs(x) // 3 * (1 if x >= 0 else -1)
    fourth = abs(x) % 4 * (1 if x >= 0 else -1)
    return x // 7 + x % 5 - thirds * fourth + x**3 + 9 + 3


def _outputs(op: str) -> list[str]:
    return [o.name for o in spec(SCALARS).op(op).outputs]


def assert_right(op: str, dtype: DType, seed: int, found: Mapping[str, Array]) -> None:
    for name, right in case(op, dtype, seed)[1].items():
        assert found[name].dtype == right.dtype, name
        wide = (a.astype(np.float64) if DTYPES[a.dtype.name].is_float else a for a in (found[name], right))
        np.testing.assert_array_equal(*wide, err_msg=f"{op} of {dtype}, seed {seed}: {name}")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("op", "dtype"), CASES, ids=str)
def test_python(op: str, dtype: DType, seed: int) -> None:
    arrays, right = case(op, dtype, seed)
    found = getattr(generated(SCALARS), op.lower())(**arrays)
    assert_right(op, dtype, seed, dict(zip(right, found if len(right) > 1 else (found,), strict=True)))


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=str)
def test_python_out(op: str, dtype: DType) -> None:
    """Results written where the caller says."""
    arrays, right = case(op, dtype, 3)
    out = [np.full_like(value, 1) for value in right.values()]
    getattr(generated(SCALARS), op.lower())(**arrays, out=tuple(out) if len(out) > 1 else out[0])
    assert_right(op, dtype, 3, dict(zip(right, out, strict=True)))


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=str)
def test_loop_ir_and_cuda(op: str, dtype: DType) -> None:
    arrays, _ = case(op, dtype, 4)
    shapes = {n: a.shape for n, a in arrays.items()}
    kernel, parameters = Lowered(spec(SCALARS), spec(SCALARS).op(op), shapes, dtype=dtype.name).kernel()
    assert_right(op, dtype, 4, interpret(kernel, arrays, parameters))
    if emulation.compiler() is not None and dtype.name in FEW:
        fast = legalize(scheduled(kernel, "cuda")[1])
        assert_right(op, dtype, 4, run_emulated(fast, arrays, parameters))


@functools.cache
def few() -> Path:
    """The spec with fewer types."""
    text = SCALARS.read_text()
    text = re.sub(r"(?<=type T in \{)[^}]*(?=\})", lambda m: ", ".join(t for t in FEW if t in m[0].split(", ")), text)
    path = Path(_folder.name) / "few.op"
    path.write_text(text)
    return path


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.is_float and not d.is_bits], ids=str)
def test_functions_of_floats(dtype: DType) -> None:
    """Against numpy in float64; in emulated CUDA C, too."""
    rng = np.random.default_rng(7)
    kind = numpy_dtype(dtype)
    x, z = (np.concatenate([rng.standard_normal(90) * 4, [0.0, -0.0, 1.0, -1.5]]).astype(kind) for _ in range(2))
    z = np.where(z == 0, np.ones(1, kind), z)
    a, c = x.astype(np.float64), z.astype(np.float64)
    inner = a / np.sqrt(1 + a * a)
    want = {
        "shrunk": 1 / (1 + np.exp(-a))
        + np.arctan(a)
        + np.arcsinh(a)
        + 1 / np.sqrt(1 + a * a)
        + np.vectorize(math.erfc)(a)
        + np.arctan2(a, c),
        "grown": np.exp(a / 8) * 2
        - 1
        + np.exp2(a / 8)
        + np.log1p(np.abs(a))
        + np.log2(1 + np.abs(a))
        + np.arccosh(1 + np.abs(a))
        + np.vectorize(math.lgamma)(1 + np.abs(a)),
        "bounded": np.pi / 2 + np.arctanh(inner / 2) + np.tan(inner),
        "parts": np.trunc(a) + np.sign(a),
        "rest": np.fmod(a, c) + np.mod(a, c),
    }
    op = spec(SCALARS).op("Functions")
    kernel, parameters = Lowered(spec(SCALARS), op, {"x": x.shape, "z": z.shape}, dtype=dtype.name).kernel()
    runs = [dict(zip(_outputs("Functions"), generated(SCALARS).functions(x, z), strict=True))]
    runs.append(interpret(kernel, {"x": x, "z": z}, parameters))
    if emulation.compiler() is not None:
        runs.append(run_emulated(legalize(scheduled(kernel, "cuda")[1]), {"x": x, "z": z}, parameters))
    for found in runs:
        assert not found["odd"].any()
        for name, right in want.items():
            unit = 2.0 ** (1 - dtype.precision)
            np.testing.assert_allclose(
                found[name].astype(np.float64), right, rtol=16 * unit, atol=16 * unit, err_msg=name
            )
    odd = np.array([1.0, np.nan, np.inf, -np.inf, 0.0], kind)
    assert generated(SCALARS).functions(odd, np.ones_like(odd))[-1].tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("dtype", [DTYPES["float32"], DTYPES["float64"]], ids=str)
def test_a_product_and_a_sum_are_rounded_once(dtype: DType) -> None:
    rng = np.random.default_rng(7)
    x, z = (rng.standard_normal(100).astype(numpy_dtype(dtype)) for _ in range(2))
    lost = [float(Fraction(float(a)) * Fraction(float(b)) - Fraction(float(a * b))) for a, b in zip(x, z, strict=True)]
    assert any(lost)
    op = spec(SCALARS).op("Fused")
    lowered = Lowered(spec(SCALARS), op, {"x": x.shape, "z": z.shape}, {"by": 3.0}, dtype=dtype.name)
    kernel, parameters = lowered.kernel()
    runs = [dict(zip(_outputs("Fused"), generated(SCALARS).fused(x, z, by=3.0), strict=True))]
    runs.append(interpret(kernel, {"x": x, "z": z}, parameters))
    if emulation.compiler() is not None:
        runs.append(run_emulated(legalize(scheduled(kernel, "cuda")[1]), {"x": x, "z": z}, parameters))
    for found in runs:
        assert found["lost"].tolist() == lost
        np.testing.assert_allclose(found["scaled"], x * 3.0 + 1, rtol=0, atol=1e-6)


SOME = [(op, dtype) for op, dtype in CASES if dtype.name in FEW or op in ("Matches", "Words")]


@pytest.mark.parametrize(("op", "dtype"), SOME, ids=str)
def test_c(op: str, dtype: DType) -> None:
    arrays, right = case(op, dtype, 5)
    library, made = Library(spec(few()), built(few())), spec(few()).op(op)
    results = {r: np.full_like(value, 1) for r, value in right.items()}
    status = library.run(made, [of(arrays[i.name]) for i in made.inputs], {}, [of(r) for r in results.values()])
    assert status == OK, library.error()
    assert_right(op, dtype, 5, results)


WORDS = (-(2**63) + 1, 2**62 + 1, -1, 2**31, 0)


@pytest.mark.parametrize("mask", WORDS)
def test_attributes_of_64_bits(mask: int) -> None:
    x = np.array([1, 2**62 + 5, -(2**63), 2**63 - 1], np.int64)
    terms = [2**63 - 1, mask]
    with np.errstate(over="ignore"):
        right = np.bitwise_and(x, mask) - (x + np.int64(terms[0]) + np.int64(terms[1]))
    np.testing.assert_array_equal(generated(SCALARS).wide(x, mask, terms), right)
    library, op, found = Library(spec(few()), built(few())), spec(few()).op("Wide"), np.ones_like(x)
    assert library.run(op, [of(x)], {"mask": mask, "terms": terms}, [of(found)]) == OK, library.error()
    np.testing.assert_array_equal(found, right)


def test_attributes_beyond_64_bits() -> None:
    x = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match=r"'mask': expected a 64-bit integer, given 9223372036854775808$"):
        generated(SCALARS).wide(x, 2**63)
    with pytest.raises(ValueError, match=r"'terms': expected a list of 2, each a 64-bit integer, given"):
        generated(SCALARS).wide(x, 0, [1, 2**64])
    assert "attr terms: int64[2] =" in write_op(spec(SCALARS), spec(SCALARS).op("Wide"))


@pytest.mark.skipif("g++" not in COMPILERS, reason="needs g++")
def test_cpp() -> None:
    x = np.array([1, 2**62 + 5, -(2**63)], np.int64)
    (answer,) = call_all(few(), "eager", [Call(spec(few()).op("Wide"), (x,), {"mask": 2**62 + 1, "terms": [2**40, 0]})])
    np.testing.assert_array_equal(answer.results[0], np.bitwise_and(x, 2**62 + 1) - (x + 2**40))
    made = [(spec(few()).op(op), case(op, dtype, 6)[0]) for op, dtype in SOME]
    answers = call_all(few(), "eager", [Call(op, tuple(arrays[i.name] for i in op.inputs), {}) for op, arrays in made])
    for (op, dtype), answer in zip(SOME, answers, strict=True):
        assert not answer.message
        assert_right(op, dtype, 6, dict(zip(case(op, dtype, 6)[1], answer.results, strict=True)))
