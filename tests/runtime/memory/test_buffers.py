"""Arrays as kernels want them."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

from opgen.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT32, INT32, DType
from opgen.runtime.memory.buffers import dtype_of, empty_aligned, numpy_dtype, poison
from tests.support.kernels import output_of

SHAPES = [(), (0,), (1,), (3, 0, 2), (2, 3, 5), (1000,), (1007,), (1008,), (1009,), (300, 300), (2048, 1024)]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_types_go_both_ways(dtype: DType) -> None:
    array = np.zeros(3, numpy_dtype(dtype))
    assert array.itemsize == dtype.bytes
    assert dtype_of(array) == dtype


def test_bfloat16_is_that_of_ml_dtypes() -> None:
    assert numpy_dtype(BFLOAT16) == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("given", ["complex64", "S4", "object", ">f4", ">i8", "datetime64[s]"])
def test_other_types_are_none_of_opgens(given: str) -> None:
    assert dtype_of(np.zeros(2, given)) is None


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [BOOL, BFLOAT16, FLOAT32], ids=str)
def test_new_arrays_start_on_a_cache_line(shape: tuple[int, ...], dtype: DType) -> None:
    arrays = [empty_aligned(shape, dtype) for _ in range(5)]
    for array in arrays:
        assert array.shape == shape
        assert array.dtype == numpy_dtype(dtype)
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.__array_interface__["data"][0] % 64 == 0


def test_new_arrays_share_no_memory_and_outlive_their_making() -> None:
    arrays = [empty_aligned((n,), INT32) for n in range(300)]
    for n, array in enumerate(arrays):
        array[...] = n
    gc.collect()
    assert all((array == n).all() for n, array in enumerate(arrays))


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if not d.is_bits], ids=str)
def test_poison(dtype: DType) -> None:
    array = empty_aligned((2, 7), dtype)
    poison(array)
    if dtype.is_float:
        assert np.isnan(array).all()
    elif dtype == BOOL:
        assert array.all()
    else:
        assert (array == array[0, 0]).all()
        assert array[0, 0] < -1 if dtype.signed else array[0, 0] > np.iinfo(array.dtype).max // 2


def test_ml_dtypes_is_imported_only_for_bfloat16() -> None:
    program = """
        import sys
        from opgen.dtypes import BFLOAT16, FLOAT16
        from opgen.runtime.memory.buffers import empty_aligned
        empty_aligned((3,), FLOAT16)
        before = "ml_dtypes" in sys.modules
        empty_aligned((3,), BFLOAT16)
        print(before, "ml_dtypes" in sys.modules)
    """
    assert output_of(program) == "False True"
