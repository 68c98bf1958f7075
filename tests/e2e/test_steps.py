"""Recurrences: step by step as numpy computes them, by every path.

Shapes and values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.bindings.c.build import chosen
from opgen.grad import load_text
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import For, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import loops_in
from opgen.lower import Variant, lower
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import compile_emulated
from opgen.schedule.default import scheduled
from opgen.spec.call.shapes import evaluate, solve
from opgen.spec.unparse import write_op
from tests.bindings.c.library import OK, Library, built, of
from tests.bindings.modules import ROOT, generated, spec

Array = npt.NDArray[np.generic]
Arrays = dict[str, Array]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
STEPS = ROOT / "tests" / "specs" / "steps.op"


@dataclass(frozen=True)
class Case:
    """The shapes of an op's inputs by the letters of its sizes, and what numpy makes of them."""

    shapes: Mapping[str, str]
    right: Callable[..., tuple[Array, ...]]
    attrs: Mapping[str, object] = field(default_factory=dict)
    integers: Mapping[str, str] = field(default_factory=dict)
    """Inputs of integers, and the size below which they stay."""


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _decaying(x: Array, last: Array) -> tuple[Array, ...]:
    y, s = np.empty_like(x), last
    for t in reversed(range(x.shape[1])):
        s = x[:, t] + s / 2
        y[:, t] = s
    return (y,)


def _fibonacci(x: Array) -> tuple[Array, ...]:
    y = np.zeros(len(x) + 2, np.int32)
    for t, value in enumerate(x):
        y[t + 2] = value + y[t + 1] + y[t]
    return (y[2:],)


def _filtered(start: Array, moves: Array, seen: Array) -> tuple[Array, ...]:
    rows, p = [], start * 0
    for t, e in enumerate(seen):
        p = e * ((start if t == 0 else 0) + p @ moves)
        rows.append(p / p.sum())
    return (np.array(rows).reshape(seen.shape),)


def _best(start: Array, moves: Array, seen: Array) -> tuple[Array, ...]:
    rows, v = [], start
    for e in seen:
        v = e + (v[:, None] + moves).max(0)
        rows.append(v)
    return (np.array(rows).reshape(seen.shape),)


def _lstm(
    x: Array, w: Array, r: Array, bias: Array, peepholes: Array, lengths: Array, h0: Array, c0: Array,
    clip: float = 1000000.0, backwards: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    steps, batch = x.shape[:2]
    hidden = h0.shape[1]
    y, hs, cs = np.zeros((steps, batch, hidden)), h0.copy(), c0.copy()

    def cut(v: Array) -> Array:
        return np.clip(v, -clip, clip)

    for b in range(batch):
        h, c = h0[b].astype(np.float64), c0[b].astype(np.float64)
        counted = range(min(steps, lengths[b]))
        for t in reversed(counted) if backwards else counted:
            gate = (x[t, b] @ w.T + h @ r.T + bias).reshape(4, hidden)
            i, f = _sigmoid(cut(gate[0] + peepholes[0] * c)), _sigmoid(cut(gate[2] + peepholes[2] * c))
            c = f * c + i * np.tanh(cut(gate[3]))
            h = _sigmoid(cut(gate[1] + peepholes[1] * c)) * np.tanh(c)
            y[t, b] = h
        hs[b], cs[b] = h, c
    return (y, hs) if backwards else (y, hs, cs)


def _both(x: Array, w: Array, r: Array) -> tuple[Array, ...]:
    steps, batch = x.shape[:2]
    y = np.zeros((steps, 2, batch, w.shape[1]))
    for d in range(2):
        h = np.zeros((batch, w.shape[1]))
        for t in range(steps) if d == 0 else reversed(range(steps)):
            h = np.tanh(x[t] @ w[d].T + h @ r[d].T)
            y[t, d] = h
    return (y,)


def _gru(
    x: Array, w: Array, r: Array, bias: Array, state_bias: Array, h0: Array, linear_before_reset: bool = False
) -> tuple[Array, ...]:
    hidden, h, rows = h0.shape[1], h0, []
    for row in x:
        gx, gh = row @ w.T + bias, h @ r.T + state_bias
        z, reset = _sigmoid((gx + gh)[:, :hidden]), _sigmoid((gx + gh)[:, hidden : 2 * hidden])
        after = reset * gh[:, 2 * hidden :]
        if not linear_before_reset:
            after = (reset * h) @ r[2 * hidden :].T + state_bias[2 * hidden :]
        h = (1 - z) * np.tanh(gx[:, 2 * hidden :] + after) + z * h
        rows.append(h)
    return (np.array(rows).reshape(len(x), *h0.shape),)


LSTM = {
    "x": "sbi", "w": "4hi", "r": "4hh", "bias": "4h", "peepholes": "3,h", "lengths": "b", "h0": "bh", "c0": "bh",
}  # fmt: skip
GRU = {"x": "sbi", "w": "3hi", "r": "3hh", "bias": "3h", "state_bias": "3h", "h0": "bh"}
CASES: Mapping[str, Case] = {
    "Running": Case({"x": "bsi"}, lambda x: (np.cumsum(x, 1),)),
    "Decaying": Case({"x": "bs", "last": "b"}, _decaying),
    "Fibonacci": Case({"x": "s"}, _fibonacci, integers={"x": "h"}),
    "Filtered": Case({"start": "h", "moves": "hh", "seen": "sh"}, _filtered),
    "Best": Case({"start": "h", "moves": "hh", "seen": "sh"}, _best),
    "Lstm": Case(LSTM, _lstm, {"clip": 0.7}, {"lengths": "s"}),
    "LstmBackwards": Case(LSTM, lambda **a: _lstm(**a, backwards=True), {}, {"lengths": "s"}),
    "Both": Case({"x": "sbi", "w": "2,hi", "r": "2,hh"}, _both),
    "Gru": Case(GRU, _gru),
    "Gru, reset after": Case(GRU, _gru, {"linear_before_reset": True}),
}
CELLS = [(name, number) for name in CASES for number in range(2)]


def _sizes(letters: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """`4hi`: four times h, i; `3,h`: three, h."""
    found: list[int] = []
    factor = 1
    for letter in letters:
        if letter.isdigit():
            factor = int(letter)
        elif letter == ",":
            found.append(factor)
            factor = 1
        else:
            found.append(factor * sizes[letter])
            factor = 1
    return tuple(found)


def _drawn(name: str, number: int) -> tuple[Case, Arrays]:
    print(f"OPGEN_TEST_SEED={SEED}: {name}, {number}")
    rng = np.random.default_rng([SEED, sorted(CASES).index(name), number])
    case = CASES[name]
    sizes = {n: int(rng.choice([1, 2, 3, 5, 9])) for n in "sbih"}
    if number == 0:
        sizes["s"] = 1
    arrays: Arrays = {}
    for n, letters in case.shapes.items():
        shape = _sizes(letters, sizes)
        if n in case.integers:
            arrays[n] = rng.integers(0, sizes[case.integers[n]] + 1, shape).astype(np.int32)
        elif name in ("Filtered",):
            arrays[n] = rng.random(shape).astype(np.float32)
        else:
            arrays[n] = (0.5 * rng.standard_normal(shape)).astype(np.float32)
    return case, arrays


def _assert_right(case: Case, found: Mapping[str, Array] | tuple[Array, ...], arrays: Arrays) -> None:
    results = tuple(found.values()) if isinstance(found, Mapping) else found
    right = case.right(**arrays, **case.attrs)
    assert len(results) == len(right)
    for result, expected in zip(results, right, strict=True):
        np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-5)


def _kernel(name: str, case: Case, arrays: Arrays) -> tuple[Kernel, dict[str, int | float]]:
    """The generic kernel of a call, and its parameters."""
    module = spec(STEPS)
    op = module.op(name.partition(",")[0])
    types = {v.name: next(str(arrays[t.name].dtype) for t in op.tensors if t.dtype == v.name)
             for v in op.type_variables}  # fmt: skip
    lowered = lower(module, op, Variant(types, {}))
    call = solve(op, module, {n: a.shape for n, a in arrays.items()}, {}, dict(case.attrs))
    values = [evaluate(a, call) for a in lowered.arguments]
    return lowered.kernel, {p.name: v for p, v in zip(lowered.kernel.parameters, values, strict=True)}


@pytest.mark.parametrize(("name", "number"), CELLS)
def test_calls(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case, arrays = _drawn(name, number)
    op = spec(STEPS).op(name.partition(",")[0])
    for policy in ("always", "never"):
        monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
        found = getattr(opgen.load(STEPS), op.function_name)(**arrays, **case.attrs)
        _assert_right(case, found if isinstance(found, tuple) else (found,), arrays)


@pytest.mark.parametrize(("name", "number"), [(n, k) for n, k in CELLS if k == 1])
def test_loop_ir(name: str, number: int) -> None:
    """The interpreter, on the kernel as lowered and as scheduled for a CPU, generic and bound; all reads inside."""
    case, arrays = _drawn(name, number)
    kernel, parameters = _kernel(name, case, arrays)
    verify(kernel, bounds=True)
    assert parse_kernel(print_kernel(kernel)) == kernel
    assert any(s.kind == "ordered" for s in loops_in(kernel.body))
    left = {p.name: parameters[p.name] for p in kernel.parameters if p.dtype.is_float}
    integers = {p.name: int(parameters[p.name]) for p in kernel.parameters if not p.dtype.is_float}
    bound = simplify(bind(kernel, integers))
    for seen, given in ((kernel, parameters), (bound, left)):
        fast = legalize(scheduled(simplify(seen))[1])
        verify(fast, bounds=True)
        for k in (seen, fast):
            _assert_right(case, interpret(k, arrays, given, seed=number), arrays)


@pytest.mark.skipif(emulation.compiler() is None, reason="needs a C++ compiler")
def test_cuda() -> None:
    """CUDA C of every op, run on the CPU."""
    drawn = {name: _drawn(name, 1) for name in CASES}
    kernels = {name: _kernel(name, case, arrays) for name, (case, arrays) in drawn.items()}
    programs = compile_emulated([legalize(scheduled(simplify(k), "cuda")[1]) for k, _ in kernels.values()])
    for (name, (case, arrays)), program in zip(drawn.items(), programs, strict=True):
        _assert_right(case, program(arrays, kernels[name][1]), arrays)


def test_c() -> None:
    case, arrays = _drawn("Decaying", 1)
    of_one = chosen(spec(STEPS), ("Decaying",))
    library, op = Library(of_one, built(STEPS, None, ("Decaying",))), of_one.op("Decaying")
    right = case.right(**arrays, **case.attrs)
    results = [np.zeros(r.shape, np.float32) for r in right]
    given = [of(arrays[i.name]) for i in op.inputs]
    assert library.run(op, given, dict(case.attrs), [of(r) for r in results]) == OK, library.error()
    _assert_right(case, tuple(results), arrays)


def test_no_steps() -> None:
    running = generated(STEPS).running
    assert running(np.zeros((2, 0, 3), np.float32)).shape == (2, 0, 3)
    case, arrays = _drawn("Lstm", 1)
    arrays["x"] = arrays["x"][:0]
    arrays["lengths"][:] = 0
    y, last, cell = generated(STEPS).lstm(**arrays)
    assert y.shape[0] == 0
    np.testing.assert_array_equal(last, arrays["h0"])
    np.testing.assert_array_equal(cell, arrays["c0"])
    assert case.shapes["h0"] == "bh"


def test_what_does_not_depend_on_the_steps_is_computed_before() -> None:
    """The product of the input and its weights is one nest over all steps, the steps only multiply the state."""
    case, arrays = _drawn("Lstm", 2)
    kernel, _ = _kernel("Lstm", case, arrays)
    (steps,) = (s for s in loops_in(kernel.body) if s.kind == "ordered")
    inside = [s.var for s in loops_in(steps.body) if isinstance(s, For)]
    assert sum("_k" in var for var in inside) == 1, inside
    assert sum("_k" in s.var for s in loops_in(kernel.body)) == 2


@pytest.mark.parametrize("name", [o.name for o in spec(STEPS).ops])
def test_model(name: str) -> None:
    """The model as a spec reads back as the same model."""
    op = spec(STEPS).op(name)
    again = load_text(write_op(spec(STEPS), op)).op(name)
    assert again.definitions == op.definitions


def test_the_gradient_of_running_sums_is_running_sums_from_the_other_end() -> None:
    running = generated(STEPS).running
    grad = np.arange(20, dtype=np.float32).reshape(2, 5, 2) ** 2
    found = opgen.gradient(running, wrt="x")(np.ones_like(grad), grad)
    np.testing.assert_array_equal(found, grad[:, ::-1].cumsum(1)[:, ::-1])
