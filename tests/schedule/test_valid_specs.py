"""Specs with nests of unusual shapes, which the scheduler must take as they are: kernels against the interpreter."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from opgen.compiler import toolchain
from opgen.grad.gradient import gradient
from opgen.grad.load import load_text
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.print import print_kernel
from opgen.loop.walk import stores
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.auto.sources import Sources
from opgen.schedule.default import scheduled
from tests.harness import Call, random_arrays

SCALED_SOFTMAX = """op A {
  type T in {float32, float64}
  input x: T[n, m]
  input g: T[]
  output y: T[n, m]
  let t[i] = max[j](x[i, j])
  let w[i, j] = exp((x[i, j] - t[i]) * g[])
  y[i, j] = w[i, j] / sum[k](w[i, k])
}
"""
CROSS_ENTROPY = """op A {
  type T in {float32, float64}
  input x: T[n, m]
  input p: T[n, m]
  output y: T[]
  let t[i] = max[j](x[i, j])
  let s[i] = log(sum[j](exp(x[i, j] - t[i])))
  y[] = -sum[i, j](p[i, j] * (x[i, j] - t[i] - s[i])) / T(n)
}
"""
DIAGONAL = """op A {
  type T in {float32, float64}
  input x: T[n, n]
  output y: T[n, n]
  let t[i] = sum[k](x[i, k])
  y[i, j] = x[j, i] + x[i, i] - t[i]
}
"""
UNUSED = """op A {
  type T in {float32, float64}
  input x: T[n, m]
  output y: T[m]
  let t[i, j] = prod[k < 3](x[max(k - 2, i), (j + k) // 2]) where i < n, j < m
  let u[i] = sum[k < 3](t[i, k])
  y[j] = abs(sum[i](x[i, j]))
}
"""
SCALAR_BESIDE_SUM = """op A {
  type T in {half, float32, float64}
  input x: T[n]
  input g: T[]
  output y: T[n]
  y[i] = prod[r < 3, s < 2](x[i] * g[] + T(r + s + 1))
}
"""
EMPTY_SUMS = """op A {
  type T in {float32, float64}
  input x: T[n]
  input v: T[m]
  output y: T[n]
  let t[j] = ceil(v[j]) * v[j] where j < m
  y[i] = x[i] * x[i] + sum[j < m](t[j] * (v[j + i] else 0.5))
}
"""
STRETCHED = """op A {
  type T in {float32, float64}
  input x: T[n, n | 1, m]
  input b: T[k]
  output y: T[m, k]
  y[i, j] = sum[r < n, s < n](x[r, s, i]) + b[j]
}
"""
RTOL = {"float16": 2e-3, "float32": 1e-4, "float64": 1e-11}
SHAPES = {
    "scaled": (SCALED_SOFTMAX, {"x": (6, 10), "g": ()}),
    "scaled, larger": (SCALED_SOFTMAX, {"x": (32, 64), "g": ()}),
    "diagonal": (DIAGONAL, {"x": (32, 32)}),
    "cross entropy": (CROSS_ENTROPY, {"x": (16, 24), "p": (16, 24)}),
    "scalar beside sum": (SCALAR_BESIDE_SUM, {"x": (256,), "g": ()}),
    "empty sums": (EMPTY_SUMS, {"x": (9,), "v": (0,)}),
    "stretched": (STRETCHED, {"x": (11, 11, 32), "b": (48,)}),
    "unused": (UNUSED, {"x": (31, 33)}),
}


def kernels(call: Call, dtype: str) -> tuple[Kernel, dict[str, int | float]]:
    kernel, parameters = call.kernel()
    return simplify(bind(kernel, parameters)), {}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", SHAPES)
def test_the_op_and_its_gradients(name: str, dtype: str) -> None:
    text, shapes = SHAPES[name]
    text = text.replace("{float32", "{half, float32")
    module = load_text(text)
    forward = Call(module, module.ops[0], shapes, dtype=dtype)
    outputs = forward.environment.output_shapes
    calls = [forward]
    for wrt in () if name == "unused" else shapes:  # a clamped subscript cannot be differentiated
        op = gradient(module, module.ops[0], wrt)
        calls.append(Call(module, op, {**shapes, **{f"grad_{o}": s for o, s in outputs.items()}}, dtype=dtype))
    for call in calls:
        kernel, _ = kernels(call, dtype)
        arrays = random_arrays(call.shapes, dtype, seed=4)
        given = {b.name: arrays[b.name] for b in kernel.inputs}
        right = interpret(kernel, given)
        for unscheduled, parameters in ((kernel, {}), call.kernel()):
            _, fast = scheduled(simplify(unscheduled), "cpu", toolchain.host().machine)
            found = run_kernel(legalize(fast), given, parameters, guarded=True)
            for output, want in right.items():
                np.testing.assert_allclose(found[output], want, rtol=RTOL[dtype], atol=RTOL[dtype])


def test_what_nobody_uses_is_not_computed() -> None:
    """A reduction that is only added to: its nest vanishes with what would have been stored."""
    module = load_text(UNUSED)
    kernel, _ = kernels(Call(module, module.ops[0], {"x": (31, 33)}, dtype="float32"), "float32")
    assert {s.buffer for s in stores(kernel.body)} == {"acc", "y"}, print_kernel(kernel)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_sizes_are_in_bytes_of_the_type(dtype: str) -> None:
    module = load_text(SCALED_SOFTMAX.replace("{float32, float64}", "{half, bfloat16, float32, float64}"))
    kernel, _ = kernels(Call(module, module.ops[0], {"x": (6, 10), "g": ()}, dtype=dtype), dtype)
    sources = Sources(kernel)
    narrow, wide = {"float64": (8, 8), "float32": (4, 4)}.get(dtype, (2, 4))
    assert {b: sources.size(b) for b in ("x", "y", "g", "w")} == {
        "x": narrow * 60, "y": narrow * 60, "g": narrow, "w": wide * prod((6, 10)),
    }  # fmt: skip
