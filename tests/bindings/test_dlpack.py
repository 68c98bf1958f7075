"""bfloat16 by DLPack, from an exporter made for the test."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from opgen.runtime.dlpack import _Deleter, _Managed
from opgen.runtime.errors import ArgumentTypeError
from opgen.runtime.tensors import TensorChecks

check = TensorChecks("Op")
_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes, _new.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object


class Exporter:
    """A tensor of a library that has bfloat16: `words` are its bits, `code` and `bits` its DLPack type."""

    def __init__(self, words: npt.NDArray[np.uint16], code: int = 4, bits: int = 16) -> None:
        self.words, self.code, self.bits = words, code, bits
        self.deleted: list[int] = []
        self.kept: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, *, stream: None = None) -> Any:
        a = self.words
        managed = _Managed()
        t = managed.tensor
        t.data, t.device_type, t.ndim, t.code, t.bits, t.lanes = a.ctypes.data, 1, a.ndim, self.code, self.bits, 1
        shape = (ctypes.c_int64 * a.ndim)(*a.shape)
        steps = (ctypes.c_int64 * a.ndim)(*(s // 2 for s in a.strides))
        t.shape, t.strides = ctypes.cast(shape, type(t.shape)), ctypes.cast(steps, type(t.strides))
        managed.deleter = _Deleter(self.deleted.append)
        self.kept += [managed, shape, steps]
        return _new(ctypes.addressof(managed), b"dltensor", None)


class Nowhere(Exporter):
    """A tensor without memory, such as PyTorch's on the device `meta`."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("Unknown device type meta for Dlpack")


VALUES = np.array([[1.0, -2.5, 3.0], [0.5, 1e30, -0.0]], np.float32).astype(ml_dtypes.bfloat16)
BITS = VALUES.view(np.uint16)


@pytest.mark.parametrize("view", [np.s_[:], np.s_[::-1, :], np.s_[:, ::-2], np.s_[1], np.s_[:0]], ids=str)
def test_the_elements_are_copied_and_the_memory_given_back(view: Any) -> None:
    exporter = Exporter(BITS[view])
    name, (found,) = check.common_type(("float32", "bfloat16"), {"x": exporter})
    assert name == "bfloat16"
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found.view(np.uint16), BITS[view])
    assert not np.shares_memory(found.view(np.uint16), BITS)
    assert len(exporter.deleted) == 1


def test_other_unknown_types_are_refused() -> None:
    with pytest.raises(
        ArgumentTypeError, match=r"argument 'x': expected a readable tensor, given an object of type Exporter \("
    ):
        check.common_type(("float32",), {"x": Exporter(BITS, code=7, bits=16)})


def test_a_tensor_that_is_nowhere() -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        check.typed("x", Nowhere(BITS), "bfloat16")
    given = "an object of type Nowhere (Unknown device type meta for Dlpack)"
    assert str(caught.value) == f"Op: argument 'x': expected a readable tensor, given {given}"
