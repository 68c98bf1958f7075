"""Kernels that are built already run where neither LLVM nor the spec's reader is installed; to build one is refused."""

from __future__ import annotations

import os
import platform
import random
import subprocess
import sys
from pathlib import Path

import pytest

from opgen.diagnostics import InternalError
from opgen.runtime import threads
from opgen.runtime.memory import temporaries_ir
from opgen.runtime.native.elf import Image

ROOT = Path(__file__).resolve().parent.parent.parent

_BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("llvmlite", "lark", "jinja2", "click", "rich", "pygments"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""

_PROGRAM = """
import hashlib
import numpy as np
from generated import nn_ops
from opgen.runtime.kernels import launcher
from opgen.runtime import threads
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.dtypes import DTYPES

threads.set_num_threads(2)
def tensor(*shape, dtype="float32"):
    values = np.random.default_rng(sum(shape)).standard_normal(shape)
    return (10 * values).astype(numpy_dtype(DTYPES[dtype]))

def told(y):
    print(y.dtype, y.shape, hashlib.sha256(y.tobytes()).hexdigest())

for dtype in ("float16", "bfloat16", "float32", "float64", "int32"):
    x, f = tensor(1, 12, 12, 16, dtype=dtype), tensor(3, 3, 16, 24, dtype=dtype)
    for stride in (1, 2):
        for _ in range(2):
            y = nn_ops.conv2d(x, f, [1, stride, stride, 1], "SAME")
        told(y)
    told(nn_ops.conv2d(x, f, [1, 1, 1, 1], "VALID"))
x, f = tensor(2, 40, 40, 32), tensor(3, 3, 32, 32)
y = nn_ops.conv2d(x, f, [1, 1, 1, 1], "SAME")
told(y)
told(nn_ops.conv2d_backprop_input(x.shape, f, y, [1, 1, 1, 1], "SAME"))
told(nn_ops.conv2d_backprop_filter(x, f.shape, y, [1, 1, 1, 1], "SAME"))
assert launcher._load() is not None
assert threads.means() == threads.parallel_for().means
"""

_UNBUILT = """
import numpy as np
from generated import nn_ops
from opgen.diagnostics import UserError
try:
    nn_ops.conv2d(np.ones((1, 3, 3, 5), np.float32), np.ones((1, 1, 5, 5), np.float32), [1, 1, 1, 1], "SAME")
except UserError as error:
    print(type(error).__name__, isinstance(error, ImportError), error)
try:
    nn_ops.conv2d([1.0], [1.0], [1, 1, 1, 1], "SAME")
except ValueError as error:
    print(error)
"""


def output(program: str, cache: Path) -> str:
    environment = {**os.environ, "OPGEN_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


needs_x86 = pytest.mark.skipif(
    platform.machine() != "x86_64" or not sys.platform.startswith("linux"), reason="object files of Linux on x86-64"
)


@needs_x86
def test_what_is_built_runs_and_gives_the_same_bits(tmp_path: Path) -> None:
    built = output(_PROGRAM, tmp_path)
    assert len(built.splitlines()) == 18
    assert output(_BLOCKED + _PROGRAM, tmp_path) == built


@needs_x86
def test_what_is_not_built_is_refused(tmp_path: Path) -> None:
    head = "NoCompilerError True this call needs a kernel that is not in the cache, and 'llvmlite', which building it "
    for _ in range(2):  # with a cache that is empty, and with one that knows the machine
        refused, wrong = output(_BLOCKED + _UNBUILT, tmp_path).splitlines()
        assert refused.startswith((head, head.replace("llvmlite", "lark")))
        assert refused.endswith("takes, is not installed: install opgen with what it depends on (pip install opgen), "
                                "or fill the cache where that is (OPGEN_CACHE_DIR)")  # fmt: skip
        assert wrong == "Conv2D: argument 'input': expected a tensor of rank 4, given shape [1]"
        output("from opgen.compiler import toolchain; toolchain.host()", tmp_path)


@pytest.mark.parametrize("code", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\0" * 100, b"MZ" * 100])
def test_what_is_no_object_file(code: bytes) -> None:
    with pytest.raises(InternalError, match="object code"):
        Image(code)


@needs_x86
def test_object_code_that_is_damaged_is_a_typed_error() -> None:
    code = threads.object_code(temporaries_ir.IR)
    drawn, refused = random.Random(1), 0
    for _ in range(2000):
        damaged = bytearray(code[: drawn.choice([len(code)] * 9 + [drawn.randrange(len(code))])])
        for _ in range(3):
            damaged[drawn.randrange(len(damaged))] = drawn.choice([0, 1, 0xF2, 0xFF])
        try:
            Image(bytes(damaged), [temporaries_ir.TAKE])
        except InternalError:
            refused += 1
    assert refused > 500
