"""`random(seed, i)`: the numbers of Philox 4x32-10, the same by every path; a user's dropout of a few lines.

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
from generated import onnx_ops
from opgen.grad import load_text
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.lower import Variant, lower
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import compile_emulated
from opgen.runtime.threads import get_num_threads, set_num_threads
from opgen.schedule.default import scheduled
from opgen.spec.call.shapes import evaluate, solve
from opgen.spec.unparse import write_op
from tests.bindings.c.library import OK, Library, built, of
from tests.bindings.modules import ROOT, generated, spec

Array = npt.NDArray[np.generic]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
SPEC = ROOT / "tests" / "specs" / "random_numbers.op"
OPS = generated(SPEC)


def _philox(seed: float, places: range) -> Array:
    """As in the paper, in Python's integers: ten rounds, then the first 27 and 26 bits of two words."""
    mask, numbers = 2**32 - 1, []
    whole = int(np.floor(seed))
    key = (whole & mask, int((seed - whole) * 2**32))
    for place in places:
        c = [place & mask, place >> 32, 0, 0]
        for r in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            k = [(key[0] + r * 0x9E3779B9) & mask, (key[1] + r * 0xBB67AE85) & mask]
            c = [(q >> 32) ^ c[1] ^ k[0], q & mask, (p >> 32) ^ c[3] ^ k[1], p & mask]
        numbers.append(((c[0] >> 5) * 2**26 + (c[1] >> 6)) / 2**53)
    return np.array(numbers)


@pytest.mark.parametrize("seed", [0.0, 1.0, 2.5, -7.25, 1e15])
def test_numbers_of_the_paper_and_of_onnx(seed: float) -> None:
    found = OPS.drawn(np.zeros(101), seed=seed)
    np.testing.assert_array_equal(found, _philox(seed, range(101)))
    if np.float32(seed) == seed:
        np.testing.assert_array_equal(found, onnx_ops.random_uniform(shape=[101], dtype="float64", seed=seed))


def test_seeds_and_places_that_are_elements() -> None:
    at = np.array([5, 0, 2**31 - 1], np.int32)
    seeds = np.array([3.0, 0.0, 2.5], np.float32)
    right = [_philox(float(s), range(int(a), int(a) + 1))[0] for s, a in zip(seeds, at, strict=True)]
    np.testing.assert_array_equal(OPS.at_elements(at, seeds), right)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dropout(dtype: str) -> None:
    x = np.random.default_rng(SEED).standard_normal((37, 53)).astype(dtype)
    keep = _philox(3, range(x.size)).reshape(x.shape) >= 0.25
    found = OPS.drop_some(x, rate=0.25, seed=3)
    np.testing.assert_array_equal(found == 0, ~keep | (x == 0))
    np.testing.assert_allclose(found, np.where(keep, x.astype(float) / 0.75, 0), rtol=4 * np.finfo(dtype).eps)
    gradient = opgen.gradient(OPS.drop_some, wrt="x")(x, np.ones_like(x), rate=0.25, seed=3)
    np.testing.assert_array_equal(gradient != 0, keep)


def test_threads_give_the_same() -> None:
    x, before = np.ones((500, 400), np.float32), get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            found.append(OPS.drop_some(x, seed=5))
    finally:
        set_num_threads(before)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def _sampled(x: Array) -> dict[str, Array]:
    rows = len(x)
    picked = _philox(1, range(x.size)).reshape(x.shape) < 0.5
    at = (_philox(1, range(rows)) * rows).astype(int)
    return {"y": (x * picked).sum(1), "z": x[at].sum(1)}


def test_terms_and_subscripts() -> None:
    x = np.random.default_rng(SEED).standard_normal((7, 9))
    y, z = OPS.sampled(x)
    right = _sampled(x)
    np.testing.assert_allclose(y, right["y"], rtol=1e-13)
    np.testing.assert_allclose(z, right["z"], rtol=1e-13)


def _kernel(name: str, arrays: dict[str, Array]) -> tuple[Kernel, dict[str, int | float]]:
    module = spec(SPEC)
    op = module.op(name)
    lowered = lower(module, op, Variant({v.name: "float64" for v in op.type_variables}, {}))
    call = solve(op, module, {n: a.shape for n, a in arrays.items()}, {}, {})
    values = [evaluate(a, call) for a in lowered.arguments]
    return lowered.kernel, {p.name: v for p, v in zip(lowered.kernel.parameters, values, strict=True)}


@pytest.mark.skipif(emulation.compiler() is None, reason="needs a C++ compiler")
def test_loop_ir_and_cuda() -> None:
    x = np.random.default_rng(SEED).standard_normal((7, 9))
    drawn = {"DropSome": {"x": x}, "Sampled": {"x": x}}
    keep = _philox(0, range(x.size)).reshape(x.shape) >= 0.5
    right = {"DropSome": {"y": np.where(keep, x / 0.5, 0)}, "Sampled": _sampled(x)}
    kernels = {name: _kernel(name, arrays) for name, arrays in drawn.items()}
    programs = compile_emulated([legalize(scheduled(simplify(k), "cuda")[1]) for k, _ in kernels.values()])
    for (name, arrays), program in zip(drawn.items(), programs, strict=True):
        kernel, parameters = kernels[name]
        verify(kernel, bounds=True)
        assert parse_kernel(print_kernel(kernel)) == kernel
        for found in (interpret(kernel, arrays, parameters), program(arrays, parameters)):
            for result, expected in right[name].items():
                np.testing.assert_allclose(found[result], expected, rtol=1e-13, err_msg=name)


def test_c() -> None:
    library, op = Library(spec(SPEC), built(SPEC)), spec(SPEC).op("Drawn")
    result = np.zeros(33)
    assert library.run(op, [of(np.zeros(33))], {"seed": 2.5}, [of(result)]) == OK, library.error()
    np.testing.assert_array_equal(result, _philox(2.5, range(33)))


@pytest.mark.parametrize("name", [o.name for o in spec(SPEC).ops])
def test_model(name: str) -> None:
    op = spec(SPEC).op(name)
    assert load_text(write_op(spec(SPEC), op)).op(name).definitions == op.definitions


def test_a_users_folder(tmp_path: Path) -> None:
    text = SPEC.read_text()
    start = text.index("op DropSome")
    (tmp_path / "mine.op").write_text(text[start : text.index("\n}\n", start) + 3])

    def run(*arguments: str) -> str:
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "1 op" in run(sys.executable, "-m", "opgen", "check", "mine.op")
    run(sys.executable, "-m", "opgen", "generate", "mine.op", "-o", "made")
    program = "import numpy as n; from made import mine; print(mine.drop_some(n.ones((1, 6)), seed=9).tolist())"
    keep = _philox(9, range(6)) >= 0.5
    assert run(sys.executable, "-c", program).strip() == str([np.where(keep, 2.0, 0.0).tolist()])
