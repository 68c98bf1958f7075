"""`opgen.load` and `opgen.gradient`: functions made at run time, like generated ones in every respect."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opgen
from opgen.diagnostics import DiagnosticError, UserError
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from tests.bindings.modules import OPS, SAMPLES, generated

RNG = np.random.default_rng(6)
X, F = RNG.standard_normal((2, 5, 6, 4)), RNG.standard_normal((3, 2, 2, 6))
ATTRS = {"strides": [1, 2, 1, 1], "padding": "SAME"}

USERS = '''
"""A user's own."""

op Blend {
  """x and y blended, weighted by `weight`."""
  type T in {half, float32, float64}
  input x: T[n] """One."""
  input y: T[n] """The other."""
  attr weight: float = 0.25 """Of `x`."""
  output z: T[n] """Between both."""
  z[i] = weight * x[i] * x[i] + (1.0 - weight) * y[i]
}
'''


def test_declared_and_derived_gradients_are_the_same() -> None:
    nn = generated(OPS)
    g = RNG.standard_normal(nn.conv2d(X, F, **ATTRS).shape)
    by_input = opgen.gradient(nn.conv2d, wrt="input")
    by_filter = opgen.gradient(nn.conv2d, wrt="filter")
    declared = nn.conv2d_backprop_input(X.shape, F, g, **ATTRS)
    assert by_input(X, F, g, **ATTRS).tobytes() == declared.tobytes()
    assert by_filter(X, F, g, **ATTRS).tobytes() == nn.conv2d_backprop_filter(X, F.shape, g, **ATTRS).tobytes()
    out = np.empty_like(X)
    assert by_input(X, F, g, **ATTRS, out=out) is out


def test_gradients_of_gradients() -> None:
    nn = generated(OPS)
    once = opgen.gradient(nn.raw_ops.Conv2D, wrt="input")
    g = RNG.standard_normal(nn.conv2d(X, F, **ATTRS).shape)
    forward_again = opgen.gradient(once, wrt="grad_output")
    np.testing.assert_allclose(forward_again(X, F, g, X, **ATTRS), nn.conv2d(X, F, **ATTRS), rtol=1e-12, atol=1e-12)
    by_filter = opgen.gradient(once, wrt="filter")
    np.testing.assert_allclose(
        by_filter(X, F, g, X, **ATTRS), nn.conv2d_backprop_filter(X, F.shape, g, **ATTRS), rtol=1e-12, atol=1e-12
    )
    declared = opgen.gradient(nn.conv2d_backprop_input, wrt="filter")
    assert declared(X.shape, F, g, X, **ATTRS).shape == F.shape


def test_they_are_documented_and_can_be_read() -> None:
    function = opgen.gradient(generated(OPS).depthwise_conv2d, wrt="filter")
    assert function.__name__ == "depthwise_conv2d_gradient_filter"
    parameters = list(inspect.signature(function).parameters)
    assert parameters[:5] == ["input", "filter", "grad_output", "strides", "padding"]
    assert parameters[5:] == ["rate", "name", "data_format", "dilations", "out"]
    doc = inspect.getdoc(function)
    assert doc is not None
    assert doc.startswith("The gradient of `depthwise_conv2d` with respect to `filter`, derived from its mathematics.")
    assert "Only its shape counts." in doc
    assert "sum[n, y, x](grad_output[" in doc
    assert inspect.getsource(function).startswith("def depthwise_conv2d_gradient_filter(")
    assert opgen.gradient(generated(OPS).depthwise_conv2d, wrt="filter") is function


def test_their_checks_are_derived() -> None:
    function = opgen.gradient(generated(OPS).conv2d, wrt="input")
    with pytest.raises(ArgumentValueError) as caught:
        function(X, F, np.zeros((2, 3, 6, 5)), **ATTRS)
    assert str(caught.value) == (
        "gradient of Conv2D with respect to 'input': argument 'grad_output': expected shape [2, 3, 6, 6] "
        "(batch, out_height, out_width, groups * group_outputs), given shape [2, 3, 6, 5]"
    )
    integers = np.zeros((2, 5, 6, 4), np.int32)
    with pytest.raises(ArgumentTypeError) as wrong:
        function(integers, F, np.zeros((2, 3, 6, 6)), **ATTRS)
    assert str(wrong.value) == (
        "gradient of Conv2D with respect to 'input': argument 'input': expected float16, bfloat16, float32 or float64, "
        "given int32[2, 5, 6, 4]"
    )


def test_a_stretched_dimension() -> None:
    add = generated(SAMPLES).scaled_add
    x, y = np.ones((3, 1)), np.ones((1, 4))
    g = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(opgen.gradient(add, "x")(x, y, g, alpha=2.0), 2 * g.sum(1, keepdims=True))
    np.testing.assert_array_equal(opgen.gradient(add, "y")(x, y, g, alpha=2.0), g.sum(0, keepdims=True))
    # The gradient's shape tells how far inputs stretch, as another input of the op would.
    one = np.ones((1, 1))
    np.testing.assert_array_equal(opgen.gradient(add, "x")(one, one, g, alpha=2.0), [[2 * g.sum()]])
    with pytest.raises(ArgumentValueError) as caught:
        opgen.gradient(add, "x")(np.ones((2, 1)), one, g)
    expected = "expected dimension 0 to be 3 or 1 (rows), given shape [2, 1]"
    assert str(caught.value) == f"gradient of ScaledAdd with respect to 'x': argument 'x': {expected}"


def test_a_users_own_spec(tmp_path: Path) -> None:
    path = tmp_path / "mine.op"
    path.write_text(USERS, encoding="utf-8")
    mine = opgen.load(path)
    assert mine.__doc__ == "A user's own."
    x, y = np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    np.testing.assert_allclose(mine.blend(x, y), 0.25 * x * x + 0.75 * y)
    np.testing.assert_allclose(mine.raw_ops.Blend(x=x, y=y, weight=1.0), x * x)
    g = np.array([1.0, 10, 100])
    np.testing.assert_allclose(opgen.gradient(mine.blend, wrt="x")(x, y, g, weight=0.5), x * g)
    np.testing.assert_allclose(opgen.gradient(opgen.gradient(mine.blend, "x"), "x")(x, y, g, np.ones(3)), 0.5 * g)
    path.unlink()  # what is loaded needs its file no more
    assert opgen.gradient(mine.blend, wrt="y")(x.astype(np.float32), y.astype(np.float32), g.astype(np.float32)).sum()


def test_gradients_of_ops_that_count(tmp_path: Path) -> None:
    path = tmp_path / "counting.op"
    path.write_text(
        """
op Taken {
  type T in {float32, float64}
  input x: T[n]
  input chosen: bool[n]
  count found = sum[i](if chosen[i] then int64(1) else 0)
  output y: T[found]
  let at[p] = descending[i](if chosen[i] then int8(1) else 0, p) where p < found
  y[p] = x[at[p]] * x[at[p]]
}
op TakenGradient { gradient of Taken with respect to x input x input chosen input dy like y output dx like x }
op Leading {
  type T in {float32, float64}
  input x: T[n]
  count found = sum[i](if x[i] > T(0) then int64(1) else 0)
  output y: T[found]
  y[p] = x[p] else 0
}
op LeadingGradient { gradient of Leading with respect to x input x shape_only input dy like y output dx like x }
""",
        encoding="utf-8",
    )
    counting = opgen.load(path)
    x, chosen, g = np.array([1.0, -2, 3]), np.array([True, False, True]), np.array([10.0, 100])
    for by_x in (opgen.gradient(counting.taken, wrt="x"), counting.taken_gradient):
        assert by_x(x, chosen, g).tolist() == by_x(x, chosen, g, found=2).tolist() == [20, 0, 600]
        with pytest.raises(ArgumentValueError, match=r"expected shape \[2\] \(found\), given shape \[1\]"):
            by_x(x, chosen, g[:1])
    again = opgen.gradient(opgen.gradient(counting.taken, wrt="x"), wrt="grad_y")
    assert again(x, chosen, g, np.ones(3)).tolist() == [2, 6]
    assert inspect.signature(counting.leading_gradient).parameters["found"].default is inspect.Parameter.empty
    assert counting.leading_gradient(x, g, found=2).tolist() == [10, 100, 0]


def test_ops_without_inputs(tmp_path: Path) -> None:
    path = tmp_path / "numbers.op"
    path.write_text(
        """
op Identity {
  attr size: int
  attr value: float = 1.0
  output y: float32[size, size]
  y[i, j] = if i == j then value else 0.0
}
op Powers { output squares: int64[3] output cubes: int64[3] squares[i] = int64(i * i) cubes[i] = int64(i * i * i) }
""",
        encoding="utf-8",
    )
    numbers = opgen.load(path)
    for _ in range(2):
        np.testing.assert_array_equal(numbers.identity(3, value=2.0), 2 * np.eye(3))
        assert [a.tolist() for a in numbers.powers()] == [[0, 1, 4], [0, 1, 8]]
    assert numbers.identity(0).shape == (0, 0)
    np.testing.assert_array_equal(numbers.prepare.identity(2)(), np.eye(2))
    with pytest.raises(ArgumentValueError) as caught:
        numbers.identity(-1)
    expected = "expected sizes that give 'y' a shape (computed [-1, -1]), given none"
    assert str(caught.value) == f"Identity: argument 'Identity': {expected}"


def test_requirements_stand_in_docstrings_with_the_names_of_their_numbers() -> None:
    doc = inspect.getdoc(generated(OPS).conv2d) or ""
    required = doc[doc.index("Raises:") :]
    assert "{" not in required
    assert "`in_height`" in required


def test_a_list_of_inputs_gives_a_tuple_of_gradients() -> None:
    nn = generated(OPS)
    g = RNG.standard_normal(nn.conv2d(X, F, **ATTRS).shape)
    for wrt in (["filter", "input"], ("filter", "input"), ["input"]):
        expected = [opgen.gradient(nn.conv2d, wrt=name)(X, F, g, **ATTRS) for name in wrt]
        together = opgen.gradient(nn.conv2d, wrt=wrt)
        found = together(X, F, g, **ATTRS)
        outs = tuple(np.empty_like(e) for e in expected)
        assert isinstance(found, tuple)
        assert all(r is o for r, o in zip(together(X, F, g, **ATTRS, out=outs), outs, strict=True))
        for one, other, out in zip(found, expected, outs, strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(out, other)
        captured = opgen.compile(lambda g, together=together: together(X, F, g, **ATTRS))(g)
        np.testing.assert_allclose(captured[0], expected[0], rtol=1e-12)
        assert list(inspect.signature(together).parameters)[:3] == ["input", "filter", "grad_output"]
    title = "gradient of Conv2D with respect to 'input': "
    with pytest.raises(ArgumentTypeError, match=title + "argument 'out': expected a tuple of 1 arrays, given float64"):
        together(X, F, g, **ATTRS, out=outs[0])
    for wrong in (lambda: together(X, F, g), lambda: together(X, F, g, **ATTRS, width=1)):
        with pytest.raises(
            ArgumentTypeError, match=title + "(argument 'strides': expected|unknown argument 'width'; )"
        ):
            wrong()
    with pytest.raises(ArgumentValueError, match=title + "argument 'out': expected float64"):
        opgen.gradient(nn.conv2d, wrt="input")(X, F, g, **ATTRS, out=g)


def test_what_is_refused() -> None:
    for wrong in ([], 3, ["input", 3]):
        with pytest.raises(UserError, match="'wrt': expected the name of an input, or a list of names, given"):
            opgen.gradient(generated(OPS).conv2d, wrt=wrong)
    with pytest.raises(UserError, match=r"^expected a function of a generated module, given len$"):
        opgen.gradient(len, wrt="x")
    with pytest.raises(UserError, match=r"^expected a function of a generated module, given test_what_is_refused$"):
        opgen.gradient(test_what_is_refused, wrt="x")
    with pytest.raises(DiagnosticError, match="did you mean 'input'"):
        opgen.gradient(generated(OPS).conv2d, wrt="imput")
    with pytest.raises(DiagnosticError, match="did you mean"):
        opgen.gradient(generated(OPS).conv2d_backprop_input_v2, wrt="inputs")
    with pytest.raises(DiagnosticError, match="nothing depends on the values of 'input'"):
        opgen.gradient(generated(OPS).conv2d_backprop_input_v2, wrt="input")
    with pytest.raises(AttributeError, match="module 'opgen' has no attribute 'gradients'"):
        opgen.gradients  # noqa: B018


def test_importing_opgen_imports_nothing() -> None:
    code = "import sys, opgen; print(sum(m.split('.')[0] == 'opgen' for m in sys.modules), 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
