"""Ops used in ops: what the called ops give one after the other, by every path, and their gradients.

Values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.grad import load_text
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.verify import verify
from opgen.lower import Variant, lower
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import compile_emulated
from opgen.schedule.default import scheduled
from opgen.spec.call.shapes import evaluate, solve
from opgen.spec.generic import Argument, instance
from opgen.spec.unparse import write_op
from tests.bindings.modules import ROOT, generated, spec

Array = npt.NDArray[np.generic]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
SPEC = ROOT / "tests" / "specs" / "ops_in_ops.op"
OPS = generated(SPEC)


def _drawn() -> np.random.Generator:
    print(f"OPGEN_TEST_SEED={SEED}")
    return np.random.default_rng(SEED)


def _head(rng: np.random.Generator, dtype: str = "float64") -> dict[str, Array]:
    shapes = {"q": (3, 4), "k": (5, 4), "v": (5, 2)}
    return {n: rng.standard_normal(shape).astype(dtype) for n, shape in shapes.items()}


def _attention(q: Array, k: Array, v: Array, scale: float = 0.5) -> Array:
    weight = np.exp(scale * (q @ np.swapaxes(k, -1, -2)))
    found: Array = weight / weight.sum(-1, keepdims=True) @ v
    return found


def _every(rng: np.random.Generator) -> dict[str, Array]:
    """Numbers of few bits, so that no order of a sum rounds."""

    def few(*shape: int) -> Array:
        return rng.integers(-8, 9, shape) / 4

    return {"x": few(7), "at": rng.integers(0, 7, 7), "pairs": few(6, 2), "f": few(3)}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("policy", ["always", "never"])
def test_attention(dtype: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
    given = _head(_drawn(), dtype)
    found = OPS.one_head(**given, scale=0.25)
    right = _attention(**{n: a.astype(np.float64) for n, a in given.items()}, scale=0.25)
    np.testing.assert_allclose(found, right, rtol=16 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("edge", ["KEEP", "DROP"])
def test_the_called_ops_one_after_the_other(edge: str) -> None:
    """Attributes passed on and worked out, several results, updates, steps, constants, composites: bit for bit."""
    given = _every(_drawn())
    y, w = OPS.every(**given, width=3, edge=edge)
    a, b = OPS.sums(given["x"], taps=3, edge=edge), OPS.sums(given["x"], taps=3, edge="KEEP")
    e = OPS.scattered(OPS.running(b), given["at"], size=7)
    u, v = OPS.pairs(given["pairs"], given["f"])
    np.testing.assert_array_equal(y, np.pad(a, (0, 7 - len(a))) + e)
    np.testing.assert_array_equal(w, u * np.pad(OPS.sums(v, taps=4, edge="KEEP"), (0, 3)))


def test_layouts_and_lists() -> None:
    rng = _drawn()
    x, f = rng.standard_normal((2, 8, 9, 4)), rng.standard_normal((3, 2, 4, 4))
    first = OPS.conv2d(x, f, strides=[1, 2, 1, 1], padding="SAME").sum((1, 2))
    right = first + OPS.conv2d(x, f, strides=[1, 2, 2, 1], padding="VALID").sum((1, 2))
    np.testing.assert_allclose(OPS.net(x, f, strides=[1, 2, 1, 1]), right, rtol=1e-12)
    other = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(OPS.net(other, f, strides=[1, 1, 2, 1], order="NCHW"), right, rtol=1e-12)


def test_generic_ops() -> None:
    rng = _drawn()
    for before in ((), (2,), (2, 3)):
        given = {n: rng.standard_normal((*before, *a.shape)) for n, a in _head(rng).items()}
        np.testing.assert_allclose(OPS.any_heads(**given), _attention(**given, scale=1.0), rtol=1e-12)
    q, k = rng.standard_normal((3, 4)), rng.standard_normal((4, 3))
    weight = np.exp(q @ k)
    np.testing.assert_allclose(OPS.of_matrices(q, k), weight / weight.sum(0), rtol=1e-12)


def _differences(function: object, given: dict[str, Array], **attributes: object) -> None:
    """Compares gradients with respect to all floats with differences along a way."""
    rng = _drawn()
    assert callable(function)

    def results(arrays: dict[str, Array]) -> tuple[Array, ...]:
        found = function(**arrays, **attributes)
        return found if isinstance(found, tuple) else (found,)

    weights = [rng.standard_normal(r.shape) for r in results(given)]
    for name in (n for n, a in given.items() if a.dtype.kind == "f"):
        way = 1e-6 * rng.standard_normal(given[name].shape)
        there, back = (results({**given, name: given[name] + way * sign}) for sign in (1, -1))
        slope = sum(((t - b) * w).sum() for t, b, w in zip(there, back, weights, strict=True)) / 2
        gradient = opgen.gradient(function, wrt=name)(*given.values(), *weights, **attributes)
        np.testing.assert_allclose((gradient * way).sum(), slope, rtol=1e-6, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("name", ["one_head", "gated", "every", "of_matrices"])
def test_gradients(name: str) -> None:
    rng = _drawn()
    gated = {n: rng.standard_normal(s) for n, s in {"x": (3, 4), "w": (4, 2), "u": (4, 2)}.items()}
    given = {"gated": gated, "every": _every(rng), "of_matrices": {"q": gated["x"], "k": gated["x"].T.copy()}}.get(
        name, _head(rng)
    )
    _differences(getattr(OPS, name), given, **({"width": 2, "edge": "KEEP"} if name == "every" else {}))


def test_gated_unit() -> None:
    rng = _drawn()
    x, w, u = rng.standard_normal((3, 4)), rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
    np.testing.assert_allclose(OPS.gated(x, w, u), x @ w / (1 + np.exp(-2 * (x @ u))), rtol=1e-12)


def _kernel(name: str, arrays: dict[str, Array]) -> tuple[Kernel, dict[str, int | float]]:
    module = spec(SPEC)
    op = module.op(name)
    lowered = lower(module, op, Variant({v.name: "float64" for v in op.type_variables}, {"edge": "KEEP"}))
    call = solve(op, module, {n: a.shape for n, a in arrays.items()}, {}, {})
    values = [evaluate(a, call) for a in lowered.arguments]
    return lowered.kernel, {p.name: v for p, v in zip(lowered.kernel.parameters, values, strict=True)}


@pytest.mark.skipif(emulation.compiler() is None, reason="needs a C++ compiler")
def test_loop_ir_and_cuda() -> None:
    rng = _drawn()
    drawn = {"OneHead": _head(rng), "Every": _every(rng)}
    kernels = {name: _kernel(name, arrays) for name, arrays in drawn.items()}
    programs = compile_emulated([legalize(scheduled(simplify(k), "cuda")[1]) for k, _ in kernels.values()])
    for (name, arrays), program in zip(drawn.items(), programs, strict=True):
        kernel, parameters = kernels[name]
        verify(kernel)
        right = getattr(OPS, {"OneHead": "one_head", "Every": "every"}[name])(**arrays)
        for found in (interpret(kernel, arrays, parameters), program(arrays, parameters)):
            for result, expected in zip(found.values(), right if isinstance(right, tuple) else (right,), strict=True):
                np.testing.assert_allclose(result, expected, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", ["OneHead", "Gated", "Every", "Net", "OfMatrices"])
def test_model(name: str) -> None:
    """The model holds definitions alone; as a spec it reads back as the same ones."""
    module = spec(SPEC)
    op = module.op(name)
    again = load_text(write_op(module, op)).op(name)
    assert again.definitions == op.definitions
    assert [type(c) for c in again.checks] == [type(c) for c in op.checks]


def test_sizes_that_do_not_fit_name_both_ops() -> None:
    given = _head(_drawn())
    text = r"OneHead: argument 'k': expected at least one column, for 3 rows \(x of RowSoftmax\), given shape \[0, 4\]"
    with pytest.raises(ValueError, match=text):
        OPS.one_head(given["q"], given["k"][:0], given["v"][:0])
    net = r"Net: argument 'strides': expected 1 for the batch and channel dimensions \(strides of Conv2D\), given \["
    with pytest.raises(ValueError, match=net):
        OPS.net(np.zeros((1, 4, 4, 2)), np.zeros((1, 1, 2, 2)), strides=[2, 1, 1, 1])
    two = (Argument("float64", 2), Argument("float64", 2))
    checks = instance(spec(SPEC), "AnyProduct", two, {}).op.checks
    assert checks == ()


APART = """op Outer {
  type T in {float32}
  input x: T[n]
  input y: T[m]
  output z: T[n, m]
  let a = Twice(x)
  let b = Twice(y)
  let c = Joined(a, b)
  z[i, j] = c[i] * b[j]
}
op Twice {
  type T in {float32}
  input x: T[n]
  output y: T[n]
  y[i] = 2 * x[i]
}
op Joined {
  type T in {float32}
  input x: T[n]
  input y: T[n]
  output z: T[n]
  z[i] = x[i] + y[i]
}
"""


def test_a_users_folder(tmp_path: Path) -> None:
    """As a user has it: check, generate, import, run; sizes that only the called op makes equal are checked."""
    (tmp_path / "parts.op").write_text(APART[APART.index("op Twice") :])
    (tmp_path / "outer.op").write_text('import "parts.op"\n\n' + APART[: APART.index("op Twice")])

    def run(*arguments: str) -> str:
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "3 ops" in run(sys.executable, "-m", "opgen", "check", "outer.op")
    run(sys.executable, "-m", "opgen", "generate", "outer.op", "-o", "made")
    program = (
        "import numpy as n; from made import outer; x = n.arange(3, dtype='f'); print(outer.outer(x, x).tolist())\n"
    )
    program += "try: outer.outer(x, x[:2])\nexcept ValueError as e: print(e)"
    lines = run(sys.executable, "-c", program).splitlines()
    assert lines[0] == "[[0.0, 0.0, 0.0], [0.0, 8.0, 16.0], [0.0, 16.0, 32.0]]"
    assert lines[1] == ("Outer: argument 'y': expected y of Joined to have 3 along dimension 0, not 2, given shape [2]")
