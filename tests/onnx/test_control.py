"""Branches, and models that run again and again: written out, or in parts where only a run decides."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import opgen
from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentTypeError
from opgen.graph.build import resolve
from opgen.graph.build.parts import Part
from opgen.graph.build.unrolled import CALLS
from opgen.graph.compiled.staged import StagedModel
from opgen.graph.ir.problems import ModelError
from opgen.onnx.errors import MalformedModelError, UnsupportedModelError

Array = npt.NDArray[Any]

HEAD = '<ir_version: 8, opset_import: ["" : {opset}]>\n'

CHOICE = """g (float[n] x) => (float[n] y) {
  s = ReduceSum <keepdims=0> (x)
  zero = Constant <value_float=0.0> ()
  c = Greater (s, zero)
  chosen = If (c) <then_branch = t () => (a) { a = Add (x, s) }, else_branch = e () => (b) { b = Neg (x) }>
  y = Exp (chosen)
}"""

WHILE = """g (float[n] x, float[] limit) => (float[n] y, float[k, n] all) {
  s = ReduceSum <keepdims=0> (x)
  c = Less (s, limit)
  most = Constant <value_int=100> ()
  y, all = Loop (most, c, x) <body = b (int64 i, bool go, float[n] v) => (more, next, shown) {
    next = Add (v, x)
    shown = Mul (next, next)
    sum = ReduceSum <keepdims=0> (next)
    more = Less (sum, limit)
  }>
}"""

SCAN = """g (float[2] h, float[2, m] x, float[m, 2] z) => (float[2] last, float[2, m] y, float[m, 2] w) {
  last, y, w = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],
      scan_output_axes = [-1, 0], scan_output_directions = [0, 1],
      body = b (float[2] state, float[2] a, float[2] c) => (next, shown, other) {
    twice = Add (state, state)
    next = Add (twice, a)
    shown = Sub (next, c)
    other = Add (state, h)
  }> (h, x, z)
}"""


def compiled(text: str, opset: int = 18) -> StagedModel:
    """The model."""
    return opgen.compile(parser.parse_model(HEAD.format(opset=opset) + text))


def compare(text: str, *rows: dict[str, Array]) -> StagedModel:
    """Runs a model and the reference on each row of inputs."""
    model, reference = compiled(text), ReferenceEvaluator(parser.parse_model(HEAD.format(opset=18) + text))
    for given in rows:
        found = model.run(given)
        for name, wanted in zip(found, reference.run(None, given), strict=True):
            assert found[name].dtype == wanted.dtype
            np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-6)
    return model


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_branch_by_a_computed_condition_runs_the_side_that_it_takes() -> None:
    x = np.abs(floats(5))
    model = compare(CHOICE, {"x": x}, {"x": -x}, {"x": x[:3]}, {"x": x})
    assert model.explain().count("# part ") == 4
    assert np.array_equal(model(x), model.run({"x": x})["y"])


def test_results_go_where_the_caller_wants_them_and_are_the_callers() -> None:
    model = compiled(CHOICE)
    x, out = np.abs(floats(5)), np.empty(5, np.float32)
    assert model(x, out=out) is out
    assert np.array_equal(out, model(x))
    with pytest.raises(ArgumentTypeError, match=r"argument 'out': expected a numpy array of float32\[5\]"):
        model(x, out=np.empty(4, np.float32))


def test_runs_end_when_their_condition_is_false() -> None:
    x = np.abs(floats(4)) + 1
    compare(WHILE, *({"x": x, "limit": np.float32(limit)} for limit in (50, 1000, 9)))
    model = compiled(WHILE)
    y, shown = model(x, np.float32(0))
    assert np.array_equal(y, x)
    assert shown.shape == (0, 4)


@pytest.mark.parametrize("length", [5, 100, 0])
def test_runs_over_slices_along_any_axis_and_backward(length: int) -> None:
    """As many as are written out, more, and none."""
    h, x, z = floats(2), floats(2, length, seed=1), floats(length, 2, seed=2)
    model = compiled(SCAN)
    last, y, w = model(h, x, z)
    state, shown, other = h, [], []
    for a, c in zip(x.T[::-1], z, strict=True):
        other.append(state + h)
        state = state + state + a
        shown.append(state - c)
    np.testing.assert_allclose(last, state, rtol=1e-5)
    np.testing.assert_allclose(y, np.array(shown, np.float32).reshape(length, 2).T, rtol=1e-5)
    np.testing.assert_allclose(w, np.array(other[::-1], np.float32).reshape(length, 2), rtol=1e-5)


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_slices_have_a_dimension_less_however_many_runs_are_written_out(
    rank: int, axis: int, backward: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices of every rank, scalars too, by one program and in parts."""
    axis %= rank
    shape = [4, 2, 3][:rank]
    inner = [size for at, size in enumerate(shape) if at != axis]
    whole, each = ",".join(map(str, shape)), ",".join(map(str, inner))
    text = f"""g (float[{each}] h, float[{whole}] x) => (float[{each}] last, float[{whole}] y) {{
      last, y = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}], scan_input_directions = [{backward}],
          scan_output_axes = [{axis}], scan_output_directions = [{backward}],
          body = b (float[{each}] s, float[{each}] a) => (t, u) {{ t = Add (s, a) u = Mul (t, a) }}> (h, x)
    }}"""
    h, x = np.asarray(floats(*inner)), floats(*shape, seed=1)
    order = slice(None, None, -1 if backward else 1)
    sums = h + np.cumsum(np.moveaxis(x, axis, 0)[order], 0)
    wanted = np.moveaxis(sums[order], 0, axis) * x
    for most in (64, 1):
        monkeypatch.setattr("opgen.graph.build.unrolled.RUNS", most)
        model = compiled(text)
        last, y = model(h, x)
        np.testing.assert_allclose(last, sums[-1], rtol=1e-5, atol=1e-6, strict=True)
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6, strict=True)
        assert bool(model.parts) == (most < shape[axis])


def test_a_batch_of_sequences_as_version_8_has_them() -> None:
    text = """g (float[b, 2] h, float[b, n, 2] x) => (float[b, 2] y, float[b, n, 2] z) {
      y, z = Scan <num_scan_inputs = 1, directions = [1],
          body = r (float[2] state, float[2] a) => (next, shown) { next = Add (state, a) shown = Identity (next) }>
        ("", h, x)
    }"""
    model = compiled(text, 8)
    h, x = floats(3, 2), floats(3, 4, 2, seed=1)
    y, z = model(h, x)
    wanted = h[:, None] + np.cumsum(x[:, ::-1], 1)
    np.testing.assert_allclose(z, wanted, rtol=1e-5)
    np.testing.assert_allclose(y, wanted[:, -1], rtol=1e-5)


def test_branches_in_runs_in_branches_see_what_is_around_them() -> None:
    text = """g (float[n] x, int64[] times, float[] t) => (float[n] y) {
      s = ReduceSum <keepdims=0> (x)
      c = Less (s, t)
      y = If (c) <then_branch = outer () => (a) {
          go = Constant <value_int = 1> ()
          flag = Cast <to = 9> (go)
          a = Loop (times, flag, x) <body = b (int64 i, bool f, float[n] v) => (f, w) {
              size = ReduceMax <keepdims=0> (v)
              big = Greater (size, t)
              w = If (big) <then_branch = p () => (q) { q = Sub (v, s) }, else_branch = r () => (o) { o = Add (v, x) }>
          }>
        }, else_branch = other () => (d) { d = Neg (x) }>
    }"""
    x = floats(70)  # more than are taken as sizes
    rows = [{"x": x, "times": np.int64(k), "t": np.float32(t)} for k, t in ((3, 50), (5, 2.5), (3, -90), (0, 80))]
    compare(text, *rows)


def test_states_may_grow() -> None:
    text = """g (float[n] x, float[] t) => (float[m] y) {
      first = ReduceSum <keepdims=0> (x)
      c = Less (first, t)
      none = Constant <value_int = 10> ()
      y = Loop (none, c, x) <body = b (int64 i, bool f, float[k] v) => (go, w) {
          w = Concat <axis = 0> (v, x)
          s = ReduceSum <keepdims=0> (w)
          go = Less (s, t)
      }>
    }"""
    compare(text, {"x": np.abs(floats(6)), "t": np.float32(20)})


def test_runs_that_are_counted_by_constants_are_one_program() -> None:
    text = """g (float[n] x) => (float[n] y, float[3, n] all) {
      three = Constant <value_int = 3> ()
      y, all = Loop (three, "", x) <body = b (int64 i, bool f, float[n] v) => (f, w, shown) {
          k = Cast <to = 1> (i)
          w = Add (v, k)
          shown = Mul (w, x)
      }>
    }"""
    model, x = compiled(text), floats(4)
    y, shown = model(x)
    np.testing.assert_allclose(y, x + 3, rtol=1e-6)
    np.testing.assert_allclose(shown, np.stack([x, x + 1, x + 3]) * x, rtol=1e-6)
    assert len(model.programs) == 1
    assert not model.parts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            """g (float[n] x, int64[] k) => (float[m] y) {
              y = Loop (k, "", x) <body = b (int64 i, bool f, float[n] v) => (f, v, grown) {
                one = Constant <value_ints = [1]> ()
                zero = Constant <value_ints = [0]> ()
                j = Unsqueeze (i, zero)
                end = Add (j, one)
                grown = Slice (v, zero, end)
              }>
            }""",
            r"node 'Loop' \(Loop\): its results of two runs have the shapes \[1\] and \[2\]",
        ),
        (
            """g (float[n] x, float[m] z) => (float[n] y) {
              y = Scan <num_scan_inputs = 2, body = b (float a, float c) => (o) { o = Add (a, c) }> (x, z)
            }""",
            r"node 'Scan' \(Scan\): its tensors have 2 and 3 slices",
        ),
        (
            """g (float[n] x, float[m] z) => (float[n] y) {
              y = Scan <num_scan_inputs = 1, scan_input_axes = [2], body = b (float a) => (o) { o = Add (a, z) }> (x)
            }""",
            r"node 'Scan' \(Scan\): an axis is 2, of a tensor of 1 dimensions",
        ),
    ],
)
def test_what_does_not_fit_is_said_of_the_node(text: str, said: str) -> None:
    model = opgen.compile(parser.parse_model(HEAD.format(opset=18) + text.replace("y = Loop", "u, y = Loop")))
    second = np.int64(2) if "int64[] k" in text else floats(2)
    with pytest.raises(ModelError, match=said):
        model(floats(3), second)


def test_nodes_that_do_not_fit_their_graphs_are_malformed() -> None:
    for text, error, said in (
        ("y = Loop (x) <body = b (int64 i) => (i) {}>", MalformedModelError, "its graph has 1 inputs and 1 outputs"),
        ("y = Scan <num_scan_inputs = 3, body = b (v) => (v) {}> (x)", MalformedModelError, "'num_scan_inputs' is 3"),
        ("y = Scan <num_scan_inputs = 1, scan_input_directions = [2], body = b (v) => (v) {}> (x)",
         MalformedModelError, "each is 0 or 1"),
        ('y = Loop ("", "") <body = b (int64 i, bool f) => (f, o) { o = SequenceEmpty () }>',
         UnsupportedModelError, "SequenceEmpty"),
    ):  # fmt: skip
        with pytest.raises(error) as caught:
            opgen.compile(parser.parse_model(HEAD.format(opset=18) + f"g (float[n] x) => (float[n] y) {{ {text} }}"))
        assert said in str(caught.value)


def test_runs_for_each_element_of_a_sequence_are_not_supported() -> None:
    text = """g (float[n] x) => (float[m] y) {
      s = SequenceConstruct (x, x)
      t = SequenceMap <body = b (float[n] e) => (float[n] r) { r = Neg (e) }> (s)
      y = ConcatFromSequence <axis = 0> (t)
    }"""
    with pytest.raises(UnsupportedModelError, match=r"node 'SequenceMap' \(SequenceMap\): there is no spec of it"):
        compiled(text)


def test_without_a_first_condition_none_counts() -> None:
    """As the standard has it: the condition that a run gives is ignored then."""
    text = """g (float[n] x, int64[] k) => (float[n] y) {
      y = Loop (k, "", x) <body = b (int64 i, bool f, float[n] v) => (no, w) { no = Not (f) w = Add (v, v) }>
    }"""
    model, x = compiled(text), floats(3)
    for k in (3, 70):  # written out, and in parts
        np.testing.assert_allclose(model(x, np.int64(k)), x * 2.0**k, rtol=1e-6)


def test_a_loop_that_never_ends_is_refused_at_once() -> None:
    text = """g (float[n] x) => (float[n] y) {
      y = Loop ("", "", x) <body = b (int64 i, bool f, float[n] v) => (f, w) { w = Neg (v) }>
    }"""
    with pytest.raises(UserError, match=r"'Loop' \(Loop\): it has neither a number of runs nor a condition"):
        compiled(text)(floats(3))


def test_runs_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opgen.graph.build.parts.RUNS", 200)
    text = """g (float[n] x, bool go) => (float[n] y) {
      y = Loop ("", go, x) <body = b (int64 i, bool f, float[n] v) => (f, w) { w = Neg (v) }>
    }"""
    model = compiled(text)
    with pytest.raises(UserError, match=r"'Loop' \(Loop\): it runs more than 200 times"):
        model(floats(3), np.array(True))


def nested(depth: int, runs: int) -> str:
    """Loops in loops, each of so many runs, that add `x` to what they are given."""
    inner = f"o{depth} = Add (s{depth - 1}, x)"
    for level in reversed(range(depth)):
        before = f"s{level - 1}" if level else "x"
        inner = f"""o{level} = Loop (m, "", {before}) <body = b (int64 i{level}, bool c{level}, float[n] s{level})
            => (d{level}, o{level + 1}) {{ d{level} = Identity (c{level}) {inner} }}>"""
    return f"g (float[n] x) => (float[n] o0) {{ m = Constant <value_int = {runs}> () {inner} }}"


@pytest.mark.parametrize(("depth", "runs"), [(2, 3), (3, 4), (2, 40), (3, 24)])
def test_runs_in_runs_are_written_out_up_to_a_bound_in_all(
    depth: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0
    call = resolve._Resolver.call

    def counted(self: Any, step: Any) -> None:
        nonlocal made
        made += 1
        call(self, step)

    monkeypatch.setattr(resolve._Resolver, "call", counted)
    model, x = compiled(nested(depth, runs)), np.float32([1, -2])
    np.testing.assert_array_equal(model(x), x * (1 + runs**depth))
    assert bool(model.parts) == (runs**depth * 2 > CALLS)
    assert made < 2 * depth * CALLS


def test_more_runs_than_are_allowed_are_refused_before_the_first() -> None:
    text = """g (float[n] x, int64[] k) => (float[n] y) {
      y = Loop (k, "", x) <body = b (int64 i, bool f, float[n] v) => (f, w) { w = Neg (v) }>
    }"""
    with pytest.raises(UserError, match="it runs 4611686018427387904 times; 1048576 are allowed"):
        compiled(text)(floats(3), np.int64(2**62))


def test_runs_are_interrupted() -> None:
    """As Ctrl-C does it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    model, before = compiled(nested(5, 64)), signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 4.0)
        with pytest.raises(KeyboardInterrupt):
            model(floats(3))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    short = compiled(nested(2, 3))
    np.testing.assert_array_equal(short(np.float32([1])), np.float32([10]))


def test_branches_in_a_row_are_not_run_in_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by what the one before it gives: as many as there are, the stack is no deeper."""
    steps = "".join(
        f"""s{i} = ReduceSum <keepdims = 0> (v{i}) c{i} = Less (s{i}, zero)
        v{i + 1} = If (c{i}) <then_branch = t{i} () => (a{i}) {{ a{i} = Neg (v{i}) }},
                              else_branch = e{i} () => (b{i}) {{ b{i} = Sub (v{i}, x) }}>"""
        for i in range(8)
    )
    depths = [0]
    run = Part.run

    def counted(self: Part, values: Any) -> dict[str, Array]:
        depths.append(depths[-1] + 1)
        try:
            return run(self, values)
        finally:
            deepest.append(depths.pop())

    deepest: list[int] = []
    monkeypatch.setattr(Part, "run", counted)
    text = f"g (float[n] x) => (float[n] v8) {{ v0 = Identity (x) zero = Constant <value_float = 0.0> () {steps} }}"
    compare(text, {"x": floats(3)}, {"x": -floats(3)})
    assert max(deepest) == 2
