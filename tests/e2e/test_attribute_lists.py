"""Lists of attributes at indices: transposition by a table, taps, chosen channels, by every path.

Values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.grad import load_text
from opgen.loop.interpret import interpret
from opgen.loop.verify import verify
from opgen.lower import Variant, lower
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import compile_emulated
from opgen.schedule.default import scheduled
from opgen.spec.call.shapes import evaluate, solve
from opgen.spec.unparse import write_op
from tests.bindings.c.library import Library, built, of
from tests.bindings.modules import ROOT, generated, spec

Array = npt.NDArray[np.generic]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
SPEC = ROOT / "tests" / "specs" / "attribute_lists.op"
OPS = generated(SPEC)


def _drawn(*shape: int) -> Array:
    print(f"OPGEN_TEST_SEED={SEED}")
    return np.random.default_rng(SEED).standard_normal(shape)


@pytest.mark.parametrize("policy", ["always", "never"])
def test_columns_in_another_order(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
    x = _drawn(3, 5)
    for perm in ([3, 1, 0, 2], [4, 4, 0, 1]):
        np.testing.assert_array_equal(OPS.permuted(x, perm=perm), x[:, perm])
    np.testing.assert_array_equal(OPS.permuted(x[:0]), np.zeros((0, 4)))


@pytest.mark.parametrize("perm", [[2, 0, 1], [1, 0, 2], [0, 1, 2], [2, 1, 0]])
def test_transposition_by_a_table(perm: list[int]) -> None:
    x = _drawn(2, 3, 4)
    np.testing.assert_array_equal(OPS.flat_transposed(x.ravel(), perm=perm), x.transpose(perm).ravel())


def _taps(x: Array, offsets: tuple[int, ...]) -> tuple[Array, Array]:
    side = np.stack([x[o : len(x) - 9 + o] for o in offsets], 1)
    padded = np.concatenate([x, np.zeros(9)])
    return side, np.stack([padded[o : o + len(x)] for o in offsets], 1) @ [0.5, 1.0, -2.0]


@pytest.mark.parametrize("offsets", [(0, 2, 5), (9, 0, 9)])
def test_taps(offsets: tuple[int, ...]) -> None:
    x = _drawn(20)
    for found, right in zip(OPS.taps(x, offsets=offsets), _taps(x, offsets), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-13)


def test_values_and_absent_lists() -> None:
    x = np.arange(3, dtype=np.float32)
    y, z = OPS.beyond(x, some=[7, 8])
    np.testing.assert_array_equal(y, x[:, None] + [2 + 6 + 1, 5 + 6])
    np.testing.assert_array_equal(z - x, [7, 8, -1])
    np.testing.assert_array_equal(OPS.beyond(x)[1] - x, [0, 0, -1])


def test_any_rank() -> None:
    x = _drawn(2, 3, 4)
    for array in (x, x[0], x[0, 0]):
        np.testing.assert_array_equal(OPS.chosen(array, places=[3, 0, 3]), array[..., [3, 0, 3]])


def test_gradients() -> None:
    """They are updates at the elements' places: what is read twice gets both."""
    x, weights = _drawn(3, 5), _drawn(3, 4)
    right = np.zeros_like(x)
    np.add.at(right, (slice(None), [4, 4, 0, 1]), weights)
    np.testing.assert_allclose(opgen.gradient(OPS.permuted, wrt="x")(x, weights, perm=[4, 4, 0, 1]), right, rtol=1e-13)
    x, way = _drawn(20), _drawn(20)[::-1]
    seeds = (_drawn(11, 3), _drawn(20))
    gradient = opgen.gradient(OPS.taps, wrt="x")(x, *seeds, offsets=[1, 1, 4])
    slope = sum((a * s).sum() for a, s in zip(_taps(way, (1, 1, 4)), seeds, strict=True))
    np.testing.assert_allclose((gradient * way).sum(), slope, rtol=1e-12)


def test_what_is_outside_is_an_error_that_names_the_list() -> None:
    text = r"Permuted: argument 'perm': expected integers from 0 to 4 \(dimension 1 of 'x' has 5\), given 5"
    with pytest.raises(ValueError, match=text):
        OPS.permuted(_drawn(3, 5), perm=[0, 1, 2, 5])
    with pytest.raises(ValueError, match=r"argument 'places': expected integers from 0 to 1 .*, given -1"):
        OPS.chosen(_drawn(3, 2), places=[0, -1])
    with pytest.raises(ValueError, match="argument 'places': expected a list of at least one element, given"):
        OPS.chosen(_drawn(3, 2), places=[])


def test_c() -> None:
    library, op = Library(spec(SPEC), built(SPEC)), spec(SPEC).op("Permuted")
    x, result = _drawn(3, 5), np.zeros((3, 4))
    assert library.run(op, [of(x)], {"perm": [4, 0, 0, 2]}, [of(result)]) == 0, library.error()
    np.testing.assert_array_equal(result, x[:, [4, 0, 0, 2]])
    assert library.run(op, [of(x)], {"perm": [4, 0, 0, 9]}, [of(result)]) != 0
    assert "argument 'perm': expected integers from 0 to 4 (dimension 1 of 'x' has 5), given 9" in library.error()


@pytest.mark.skipif(emulation.compiler() is None, reason="needs a C++ compiler")
def test_loop_ir_and_cuda() -> None:
    x = _drawn(24)
    module, given = spec(SPEC), {"FlatTransposed": {"x": x}, "Taps": {"x": x}}
    right = {"FlatTransposed": (x.reshape(2, 3, 4).transpose(2, 0, 1).ravel(),), "Taps": _taps(x, (0, 2, 5))}
    kernels = {n: lower(module, module.op(n), Variant({"T": "float64"}, {})) for n in given}
    programs = compile_emulated([legalize(scheduled(simplify(k.kernel), "cuda")[1]) for k in kernels.values()])
    for (name, arrays), program in zip(given.items(), programs, strict=True):
        kernel, call = kernels[name].kernel, solve(module.op(name), module, {"x": x.shape}, {}, {})
        verify(kernel)
        values = [evaluate(a, call) for a in kernels[name].arguments]
        parameters = {p.name: v for p, v in zip(kernel.parameters, values, strict=True)}
        for found in (interpret(kernel, arrays, parameters), program(arrays, parameters)):
            for result, expected in zip(found.values(), right[name], strict=True):
                np.testing.assert_allclose(result, expected, rtol=1e-13, err_msg=name)


@pytest.mark.parametrize("name", [o.name for o in spec(SPEC).ops])
def test_model(name: str) -> None:
    op = spec(SPEC).op(name)
    assert load_text(write_op(spec(SPEC), op)).op(name).definitions == op.definitions
