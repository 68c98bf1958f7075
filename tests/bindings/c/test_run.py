"""Calls that run: results as the interpreter's, for all CPU levels and any number of threads; wrong tensors refused."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
import pytest

from opgen.bindings.c.build import Options, build, chosen, host_targets
from opgen.bindings.c.kernels import Special
from opgen.lower import variants
from tests.bindings.c.library import INVALID, OK, Library, Tensor, built, of, tensor
from tests.bindings.modules import OPS, SAMPLES, generated, spec
from tests.harness import random_arrays

CONV = {"strides": [1, 2, 1, 1], "padding": "SAME"}
SHAPES = {"input": (2, 7, 6, 4), "filter": (3, 3, 2, 6)}


def _library(path: Path = OPS) -> Library:
    return Library(spec(path), built(path))


def _expected(arrays: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(generated(OPS).conv2d(**arrays, **CONV))


def _bits(a: np.ndarray) -> bytes:
    return a.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_all_types_agree_with_python(dtype: str) -> None:
    arrays = random_arrays(SHAPES, dtype, 3)
    expected = _expected(arrays)
    out = np.zeros(expected.shape, expected.dtype)
    library = _library()
    status = library.run(spec(OPS).op("Conv2D"), [of(arrays["input"]), of(arrays["filter"])], CONV, [of(out)])
    assert status == OK, library.error()
    tolerance = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-20, "float64": 2**-48, "int32": 0}[dtype]
    np.testing.assert_allclose(out.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance)


def test_every_variant_of_every_op_has_a_kernel() -> None:
    source = (built(OPS) / "src" / "nn_ops" / "nn_ops_kernels.c").read_text()
    for op in spec(OPS).ops:
        for v in variants(op):
            assert f"/* {op.function_name}_{v.suffix} */" in source


def test_specialised_kernels_are_taken_and_give_the_same_bits(tmp_path: Path) -> None:
    module = spec(OPS)
    special = Special("Conv2D", {"T": "float32"}, SHAPES, {}, CONV)
    options = Options(ops=("Conv2D",), specials=(special,), targets=("x86-64-v3",), jobs=1)
    build(module, "nn_ops.op", tmp_path, options)
    table = (tmp_path / "src" / "nn_ops" / "nn_ops_kernels.c").read_text()
    assert "values_0[] = {2, 7, 6, 2, 2, 3, 3, 3, 4, 6, 2, 1, 1, 1, 1, 1};" in table
    arrays = random_arrays(SHAPES, "float32", 3)
    results = []
    for library in (_library(), Library(chosen(module, ("Conv2D",)), tmp_path)):
        out = np.zeros((2, 4, 6, 6), np.float32)
        inputs = [of(arrays["input"]), of(arrays["filter"])]
        assert library.run(module.op("Conv2D"), inputs, CONV, [of(out)]) == OK, library.error()
        results.append(_bits(out))
    assert results[0] == results[1]


def test_workspace_of_the_callers() -> None:
    library = _library(SAMPLES)
    op = spec(SAMPLES).op("Softmax")
    x = np.random.default_rng(1).standard_normal((5, 33)).astype(np.float32)
    out = np.full_like(x, np.nan)
    size = library.workspace(op, [of(x)], {})
    assert size >= 4 * (5 + 5 + 5 * 33)
    assert library.run(op, [of(x)], {}, [of(out)], np.zeros(size, np.uint8)) == OK, library.error()
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)
    assert library.run(op, [of(x)], {}, [of(out)], np.zeros(size - 1, np.uint8)) == INVALID
    assert library.error() == (f"Softmax: argument 'workspace_size': expected at least {size} bytes, given {size - 1}")


def test_out_of_memory() -> None:
    library = _library(SAMPLES)
    op = spec(SAMPLES).op("Softmax")
    huge = (2**30, 2**15)  # no address space has room for it; beyond 2**48 bytes the call's numbers are refused
    one = np.zeros(64, np.float32)
    inputs, outputs = tensor(huge, "float32", one), tensor(huge, "float32", np.zeros(1))
    outputs.data = 1 << 62
    assert library.run(op, [inputs], {}, [outputs]) == 2
    assert library.error() == "Softmax: not enough memory for temporary results"


def _wrong(change: str) -> tuple[Tensor | None, str]:
    """A malformed tensor, and what is said of it."""
    array = np.zeros(SHAPES["input"], np.float32)
    t = of(array)
    if change == "missing":
        return None, "a tensor, given nothing"
    if change == "null data":
        t.data = None
        return t, "a tensor with data, given a null pointer"
    if change == "negative size":
        t.shape[1] = -7
        return t, "sizes that are not negative, given shape [2, -7, 6, 4]"
    if change == "rank":
        t.ndim = 3
        return t, "a tensor of rank 4, given shape [2, 7, 6]"
    if change == "negative rank":
        t.ndim = -1
        return t, "a tensor, given a tensor of rank -1"
    if change == "endless rank":
        t.ndim = (1 << 31) - 1
        return t, "a tensor of at most 64 dimensions, given 2147483647"
    if change == "no shape":
        t.shape = None
        return t, "a tensor, given a tensor of rank 4 without a shape"
    if change == "lanes":
        t.lanes = 2
        return t, "float16, bfloat16, float32, float64 or int32, given float32x2[2, 7, 6, 4]"
    if change == "type":
        t.code = 1
        return t, "float16, bfloat16, float32, float64 or int32, given uint32[2, 7, 6, 4]"
    if change == "device":
        t.device_type = 2
        return t, "a tensor in this machine's memory, given a tensor on device 2:0"
    if change == "strides":
        t.strides = (ctypes.c_int64 * 4)(1, 2, 3, 4)
        return t, "a C-contiguous tensor, given strides [1, 2, 3, 4]"
    t.byte_offset = 2
    return t, f"data at a multiple of 4 bytes, given {hex(t.data)} with an offset of 2 bytes"


CHANGES = (
    *("missing", "null data", "negative size", "rank", "negative rank", "endless rank", "no shape", "lanes", "type"),
    "device",
)


@pytest.mark.parametrize("change", [*CHANGES, "strides", "offset"])
def test_malformed_tensors(change: str) -> None:
    library = _library()
    given, said = _wrong(change)
    out = np.zeros((2, 4, 6, 6), np.float32)
    kernel = of(np.zeros(SHAPES["filter"], np.float32))
    assert library.run(spec(OPS).op("Conv2D"), [given, kernel], CONV, [of(out)]) == INVALID
    assert library.error() == f"Conv2D: argument 'input': expected {said}"


def test_wrong_outputs() -> None:
    library = _library()
    op = spec(OPS).op("Conv2D")
    inputs = [of(np.zeros(SHAPES[n], np.float32)) for n in ("input", "filter")]
    wrong = of(np.zeros((2, 4, 6, 5), np.float32))
    assert library.run(op, inputs, CONV, [wrong]) == INVALID
    assert library.error() == ("Conv2D: argument 'output': expected float32[2, 4, 6, 6], given float32[2, 4, 6, 5]")
    assert library.run(op, inputs, CONV, [None]) == INVALID
    assert library.error() == "Conv2D: argument 'output': expected a tensor, given nothing"
    shared = np.zeros(2 * 7 * 6 * 6, np.float32)
    inputs[0] = tensor(SHAPES["input"], "float32", shared)
    assert library.run(op, inputs, CONV, [tensor((2, 4, 6, 6), "float32", shared)]) == INVALID
    assert library.error() == (
        "Conv2D: argument 'output': expected memory that no input or other result uses, "
        "given a tensor that overlaps one of them"
    )


_CHILD = """
import os, sys, hashlib, numpy as np
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.bindings.c.library import Library, of
from tests.bindings.modules import OPS, spec
from opgen.bindings.c.build import chosen
module = chosen(spec(OPS), ("Conv2D",))
library = Library(module, Path(sys.argv[2]))
library.function("nn_ops_cpu_level").restype = __import__("ctypes").c_char_p
op = module.op("Conv2D")
rng = np.random.default_rng(5)
x, w = rng.standard_normal((3, 17, 19, 8)).astype("f4"), rng.standard_normal((3, 3, 8, 16)).astype("f4")
def run():
    out = np.zeros((3, 9, 19, 16), np.float32)
    status = library.run(op, [of(x), of(w)], {"strides": [1, 2, 1, 1], "padding": "SAME"}, [of(out)])
    assert status == 0, library.error()
    return hashlib.sha256(out.tobytes()).hexdigest()
found = [run()]
for count in (1, 2, 3, 8):
    assert library.function("nn_ops_set_num_threads")(count) == 0
    found.append(run())
if (child := os.fork()) == 0:
    os._exit(run() != found[0])
assert os.waitpid(child, 0)[1] == 0
assert len(set(found)) == 1, found
print(library.function("nn_ops_cpu_level")().decode(), found[0])
"""


@functools.cache
def _child(**environment: str) -> list[str]:
    """The level, and the hash of a result, in a process with an environment; the library has all levels."""
    root, library = Path(__file__).resolve().parents[3], built(OPS, None, ("Conv2D",), host_targets())
    command = [sys.executable, "-c", _CHILD, str(root), str(library)]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3"])
def test_a_lower_level_of_the_cpu_same_bits(level: str) -> None:
    best, bits = _child()
    if not best.startswith("x86-64-v") or best < level:
        pytest.skip(f"this machine is {best}")
    assert _child(NN_OPS_CPU_LEVEL=level) == [level, bits]


def test_a_level_that_is_not_there_is_ignored() -> None:
    assert _child(NN_OPS_CPU_LEVEL="x86-64-v9") == _child()


def test_openmp_if_it_is_asked_for_and_after_a_fork() -> None:
    assert _child(NN_OPS_THREADING="openmp") == _child()
