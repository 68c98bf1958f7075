"""Loop IR kernels for the CUDA tests: each with parameters, inputs drawn from a seed, and what it exercises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opgen.codegen.cuda.program import CudaProgram
from opgen.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, FLOAT64, DType, wrap
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.syntax import SUFFIX_OF
from opgen.runtime.devices.host import shape_of
from opgen.runtime.memory.buffers import numpy_dtype

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Case:
    kernel: Kernel
    parameters: Mapping[str, int | float | bool]
    exact: bool = True
    """Whether the results are the same to the bit on every machine."""

    @property
    def id(self) -> str:
        sizes = "_".join(f"{n}{v}" for n, v in self.parameters.items())
        return f"{self.kernel.name}-{sizes}" if sizes else self.kernel.name

    def arrays(self, seed: int) -> dict[str, Array]:
        rng = np.random.default_rng(seed)
        return {b.name: sample(rng, shape_of(b, self.parameters), b.dtype) for b in self.kernel.inputs}


def sample(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Values of a type: ordinary ones, and the awkward ones scattered among them."""
    kind = numpy_dtype(dtype)
    if dtype == BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_int:
        limits = np.iinfo(kind)
        values = rng.integers(-100, 100, shape).astype(kind)
        values_near = [0, 1, -1, 2, -2, limits.min, limits.max, limits.min + 1, limits.max - 1]
        awkward = np.array([wrap(int(v), dtype) for v in values_near], kind)
    else:
        values = (rng.standard_normal(shape) * 4).astype(kind)
        smallest = {FLOAT16: 6e-8, BFLOAT16: 1e-40, FLOAT32: 1e-44, FLOAT64: 5e-324}[dtype]
        big = {FLOAT16: 65504.0, BFLOAT16: 3e38, FLOAT32: 3e38, FLOAT64: 1e308}[dtype]
        words = [0.0, -0.0, np.inf, -np.inf, np.nan, smallest, -smallest, big, -big, 0.5, 1.5, 2.5, -2.5, 2147483648.0]
        with np.errstate(over="ignore"):
            awkward = np.array(words).astype(kind)
    chosen = rng.random(shape) < 0.5
    return np.where(chosen, rng.choice(awkward, shape), values).astype(kind)


PRODUCT = parse_kernel("""
kernel product(
    a: float32[m, k], b: float32[k, n], m: int64 in [0, inf], n: int64 in [0, inf], k: int64 in [0, inf]
) -> (c: float32[m, n]):
    block.y for by in 0..(m + 7) // 8:
        block.x for bx in 0..(n + 7) // 8:
            alloc ta: float32[8, 9] shared
            alloc tb: float32[8, 8] shared
            thread.y for ty in 0..8:
                thread.x for tx in 0..8:
                    alloc acc: float32[1] register
                    acc[0] = 0.0f32
                    for kk in 0..(k + 7) // 8:
                        ta[ty, tx] = a[by * 8 + ty, kk * 8 + tx if by * 8 + ty < m and kk * 8 + tx < k]
                        tb[ty, tx] = b[kk * 8 + ty, bx * 8 + tx if kk * 8 + ty < k and bx * 8 + tx < n]
                        barrier
                        for q in 0..8:
                            acc[0] = acc[0] + ta[ty, q] * tb[q, tx]
                        barrier
                    if by * 8 + ty < m and bx * 8 + tx < n:
                        c[by * 8 + ty, bx * 8 + tx] = acc[0]
""")

TREE = parse_kernel("""
kernel tree(x: float32[rows, 32], rows: int64) -> (y: float32[rows]):
    block.x for r in 0..rows:
        alloc part: float32[32] shared
        thread.x for t in 0..32:
            part[t] = x[r, t]
            barrier
            if t < 16:
                part[t] = part[t] + part[t + 16]
            barrier
            if t < 8:
                part[t] = part[t] + part[t + 8]
            barrier
            if t < 4:
                part[t] = part[t] + part[t + 4]
            barrier
        y[r] = part[0] + part[1] + (part[2] + part[3])
""")

UNEVEN = parse_kernel("""
kernel uneven(x: int32[n], n: int64 in [0, inf]) -> (y: int32[n], first: int32[(n + 31) // 32]):
    block.x for b in 0..(n + 31) // 32:
        alloc tile: int32[40] shared
        thread.x for t in 0..40:
            tile[t] = x[b * 32 + t if b * 32 + t < n]
        barrier
        thread.x for u in 0..min(32, n - b * 32):
            y[b * 32 + u] = tile[u] + select(u + 1 < 40, tile[min(u + 1, 39)], 0i32)
        first[b] = tile[0]
""")

CUBE = parse_kernel("""
kernel cube(x: int32[a, b, c, d, e, f], a: int64, b: int64, c: int64, d: int64, e: int64, f: int64) -> (
        y: int32[a, b, c, d, e, f]):
    block.z for i in 0..a:
        block.y for j in 0..b:
            block.x for k in 0..c:
                thread.z for l in 0..d:
                    thread.y for m in 0..e:
                        thread.x for n in 0..f:
                            y[i, j, k, l, m, n] = x[i, j, k, l, m, f - 1 - n] + int32(i * 100000 + k)
""")

SHIFTED = parse_kernel("""
kernel shifted(x: float64[n + 3], low: int64, n: int64) -> (y: float64[n]):
    block.x for b in low..low + n:
        thread.x for t in 2..3:
            y[b - low] = x[b - low + t]
""")

VECTORS = parse_kernel("""
kernel vectors(x: float32[n, 8], h: float16[n, 8], n: int64) -> (y: float32[n, 8], z: float16[n, 8], w: bool[n, 4]):
    block.x for i in 0..n:
        y[i, ramp(0, 1, 8)] = x[i, ramp(7, -1, 8)] * broadcast(2.0f32, 8) + x[i, ramp(0, 1, 8)]
        y[i, ramp(0, 1, 4)] = y[i, ramp(3, -1, 4)]
        y[i, ramp(0, 2, 4) if ramp(i, 1, 4) % broadcast(2, 4) == broadcast(0, 4)] = broadcast(x[i, 0], 4)
        z[i, ramp(0, 1, 8)] = select(x[i, ramp(0, 1, 8)] < 0.0f32x8, 1.5f16x8, h[i, ramp(0, 1, 8)])
        w[i, ramp(0, 1, 4)] = x[i, ramp(0, 1, 4) if ramp(0, 1, 4) < broadcast(i, 4)] > broadcast(0.0f32, 4)
""")

STEPS = parse_kernel("""
kernel steps(x: float32[n], n: int64, rounds: int64, scale: float32, fancy: bool) -> (y: float32[n], s: float32[2]):
    let half: int64 = n // 2
    let twice: float32 = scale * 2.0f32
    alloc work: float32[n, 2] heap
    block.x for i in 0..n:
        work[i, 0] = x[i] * twice
    for r in 0..rounds:
        block.x for i in 0..n:
            work[i, 1] = work[(i + r) % n, 0] + float32(r)
        block.x for i in 0..half:
            work[i, 0] = work[i, 1]
    s[0] = 0.0f32
    for j in 0..n:
        s[0] = s[0] + work[j, 0]
    s[1] = twice
    if fancy and rounds > 1:
        block.x for i in 0..n:
            y[i] = work[i, 0] - scale
    else:
        block.x for i in 0..n:
            y[i] = work[i, 0]
""")

ARRAYS = parse_kernel("""
kernel arrays(x: float64[n, 6], n: int64) -> (y: float64[n, 6], odd: bool[n, 6], none: float32[n, 0], one: int32[]):
    block.x for i in 0..(n + 3) // 4:
        thread.x for t in 0..4:
            if i * 4 + t < n:
                alloc acc: float64[2, 3] register
                alloc seen: bool[6] stack
                unroll for a in 0..2:
                    unroll for b in 0..3:
                        acc[a, b] = x[i * 4 + t, a * 3 + b]
                for q in 0..6:
                    seen[q] = q % 2 == 1
                for a in 0..2:
                    let step: int64 = a * 3
                    for b in 0..3:
                        y[i * 4 + t, step + b] = acc[1 - a, 2 - b]
                        odd[i * 4 + t, step + b] = seen[step + b]
    one[] = int32(n)
""")


def conversions() -> Kernel:
    """Every scalar type cast to every other."""
    types = [d.name for d in DTYPES.values() if not d.is_bits]
    inputs = ", ".join(f"x_{s}: {s}[n]" for s in types)
    outputs = ", ".join(f"y_{s}_{t}: {t}[n]" for s in types for t in types)
    rows = "\n".join(f"        y_{s}_{t}[i] = {t}(x_{s}[i])" for s in types for t in types)
    return parse_kernel(f"kernel conversions({inputs}, n: int64) -> ({outputs}):\n    block.x for i in 0..n:\n{rows}\n")


_INT_OPS = ("a + b", "a - b", "a * b", "a // d", "a % d", "min(a, b)", "max(a, b)", "a and b", "a or b", "a xor b")
_INT_OPS += ("-a", "abs(a)", "select(a < b, a, b)", "quot(a, b)", "rem(a, b)", "shl(a, b)", "shr(a, b)", "pow(a, b)")
_FLOAT_OPS = ("a + b", "a - b", "a * b", "a / b", "min(a, b)", "max(a, b)", "-a", "fma(a, b, a)", "a * b + a")
_FLOAT_OPS += (
    "sqrt(a)",
    "floor(a)",
    "ceil(a)",
    "round(a)",
    "abs(a)",
    "select(a >= b, a, b)",
    "a - (b - a)",
    "rem(a, b)",
)
_BOOL_OPS = ("a and b", "a or b", "a xor b", "not a", "a == b", "a != b", "select(a, b, a)")
_COMPARES = ("a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b")
_ABOUT = ("exp(a)", "log(a)", "tanh(a)", "erf(a)", "sin(a)", "cos(a)", "pow(abs(a), b)", "atan(a)")


def operators(dtype: DType) -> Kernel:
    """Every operator of a type whose result is exact, on `a` and `b` (`d` is b, or 3 where b is 0)."""
    ops = _BOOL_OPS if dtype == BOOL else _INT_OPS if dtype.is_int else _FLOAT_OPS
    suffix = SUFFIX_OF[dtype.name] if dtype.is_int else ""
    rows = [f"y{i}[i] = {op}" for i, op in enumerate(ops)]
    outputs = [f"y{i}: {dtype}[n]" for i in range(len(ops))]
    if dtype != BOOL:
        rows += [f"c{i}[i] = {op}" for i, op in enumerate(_COMPARES)]
        outputs += [f"c{i}: bool[n]" for i in range(len(_COMPARES))]
    lets = [f"let a: {dtype} = x[i]", f"let b: {dtype} = z[i]"]
    if suffix:
        lets.append(f"let d: {dtype} = select(b == 0{suffix}, 3{suffix}, b)")
    body = "\n".join(f"        {line}" for line in (*lets, *rows))
    head = f"kernel operators_{dtype}(x: {dtype}[n], z: {dtype}[n], n: int64) -> ({', '.join(outputs)}):"
    return parse_kernel(f"{head}\n    block.x for i in 0..n:\n{body}\n")


def functions(dtype: DType) -> Kernel:
    """The functions that may differ in their last bits."""
    rows = "\n".join(f"        y{i}[i] = {op}" for i, op in enumerate(_ABOUT))
    outputs = ", ".join(f"y{i}: {dtype}[n]" for i in range(len(_ABOUT)))
    lets = f"        let a: {dtype} = x[i]\n        let b: {dtype} = z[i]\n"
    head = f"kernel functions_{dtype}(x: {dtype}[n], z: {dtype}[n], n: int64) -> ({outputs}):"
    return parse_kernel(f"{head}\n    block.x for i in 0..n:\n{lets}{rows}\n")


LITERALS = parse_kernel("""
kernel literals() -> (
    a: float32[8], b: float64[8], c: float16[6], d: bfloat16[5], e: int32[3], f: int64[4], g: bool[2]
):
    a[0] = inf_f32
    a[1] = -inf_f32
    a[2] = nan_f32
    a[3] = -0.0f32
    a[4] = 1e-45f32
    a[5] = 3.4028234663852886e38f32
    a[6] = 0.1f32
    a[7] = 16777217.0f32
    b[0] = inf_f64
    b[1] = -inf_f64
    b[2] = nan_f64
    b[3] = -0.0f64
    b[4] = 5e-324f64
    b[5] = 1.7976931348623157e308f64
    b[6] = 0.1f64
    b[7] = 1e22f64
    c[0] = 0.1f16
    c[1] = 65520.0f16
    c[2] = 65519.9f16
    c[3] = 6e-8f16
    c[4] = nan_f16
    c[5] = -inf_f16
    d[0] = 0.1bf16
    d[1] = 3.4e38bf16
    d[2] = 1e-40bf16
    d[3] = -1.0bf16
    d[4] = nan_bf16
    e[0] = -2147483648i32
    e[1] = 2147483647i32
    e[2] = -1i32
    f[0] = -9223372036854775808
    f[1] = 9223372036854775807
    f[2] = 3000000000 * 3
    f[3] = select(true, 100000, 5) * 100000
    g[0] = true
    g[1] = false
""")

CASES = (
    Case(PRODUCT, {"m": 19, "n": 9, "k": 21}),
    Case(PRODUCT, {"m": 3, "n": 4, "k": 0}),
    Case(PRODUCT, {"m": 0, "n": 4, "k": 2}),
    Case(TREE, {"rows": 5}),
    Case(UNEVEN, {"n": 70}),
    Case(UNEVEN, {"n": 0}),
    Case(CUBE, {"a": 2, "b": 3, "c": 2, "d": 2, "e": 3, "f": 5}),
    Case(SHIFTED, {"low": -4, "n": 9}),
    Case(VECTORS, {"n": 7}),
    Case(STEPS, {"n": 10, "rounds": 3, "scale": 0.75, "fancy": True}),
    Case(STEPS, {"n": 7, "rounds": 1, "scale": -1.5, "fancy": True}),
    Case(ARRAYS, {"n": 6}),
    Case(LITERALS, {}),
    Case(conversions(), {"n": 300}),
    *(Case(operators(t), {"n": 300}) for t in DTYPES.values() if t.compute_type == t),
    *(Case(functions(t), {"n": 200}, exact=False) for t in (FLOAT32, FLOAT64)),
)


def joined(programs: Sequence[CudaProgram]) -> str:
    """Programs as one translation unit, so that nvcc starts once: each in a namespace, with functions of its own."""
    parts = []
    for i, program in enumerate(programs):
        names = {launch.function for launch in program.launches}
        defines = "".join(f"#define {n} p{i}_{n}\n" for n in sorted(names))
        undefines = "".join(f"#undef {n}\n" for n in sorted(names))
        parts.append(f"{defines}namespace p{i} {{\n{program.source}\n}}\n{undefines}")
    return "".join(parts)
