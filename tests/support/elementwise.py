"""Elementwise kernels, and numpy's types for their operands."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from opgen.codegen.llvm.target import Target
from opgen.dtypes import DTYPES, DType
from tests.codegen.llvm.jit import Compiled
from tests.codegen.llvm.kernels import elementwise

NUMPY = {
    "bool": np.dtype(np.bool_),
    **{d.name: np.dtype(d.name) for d in DTYPES.values() if d.is_int and not d.is_bits},
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
INTEGERS = [d for d in DTYPES.values() if d.is_int and not d.is_bits]


def run(of: object, inputs: list[NDArray], types: list[DType], output: DType, lanes: int, target: str) -> NDArray:
    count = len(inputs[0])
    padded = [np.concatenate([a, np.ones(-count % lanes, a.dtype)]) for a in inputs]
    kernel = Compiled(elementwise(types, output, of, lanes=lanes), Target.from_name(target))
    result = np.empty(len(padded[0]), NUMPY[output.name])
    assert kernel(*padded, result, n=len(result) // lanes) == 0
    return result[:count]


def bits(a: NDArray) -> NDArray:
    return a.view(np.uint32 if a.dtype.itemsize == 4 else np.uint64)
