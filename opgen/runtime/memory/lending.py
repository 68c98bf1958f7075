"""Results for other libraries: arrays of types that numpy itself does not lend by DLPack, as bfloat16."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from opgen.runtime.memory.dlpack import (
    CODES,
    PENDING,
    PENDING_VERSIONED,
    Managed,
    Tensor,
    Versioned,
    is_capsule,
    pointer_of,
)


class LentArray(np.ndarray):
    """A numpy array that lends types of ml_dtypes by DLPack, too: `torch.from_dlpack(array)`."""

    def __dlpack__(self, **options: Any) -> Any:
        """Return a capsule over the memory; options and errors are those of numpy's arrays."""
        if self.dtype.name not in CODES or self.dtype.char in np.typecodes["All"]:
            return self.view(np.ndarray).__dlpack__(**options)
        capsule = self.view(np.ndarray).view(f"u{self.dtype.itemsize}").__dlpack__(**options)
        tensor = _tensor_of(capsule)
        tensor.code, tensor.bits = CODES[self.dtype.name]
        return capsule


def _tensor_of(capsule: object) -> Tensor:
    """Return the tensor that a capsule of numpy's describes, to be written."""
    if is_capsule(capsule, PENDING_VERSIONED):
        return cast("Tensor", Versioned.from_address(pointer_of(capsule, PENDING_VERSIONED)).tensor)
    return cast("Tensor", Managed.from_address(pointer_of(capsule, PENDING)).tensor)


def lent(result: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a result for a call with tensors of another library's, over the same memory."""
    return result.view(LentArray) if result.dtype.char not in np.typecodes["All"] else result


def for_caller(
    results: tuple[npt.NDArray[Any], ...], out: Sequence[object] | None, others: bool
) -> tuple[npt.NDArray[Any], ...]:
    """Return the results for the caller: the given `out`, else new ones.

    Other libraries can read new ones if some tensor was another library's.
    """
    given = (None,) * len(results) if out is None else out
    return tuple(
        cast("npt.NDArray[Any]", o) if o is not None else lent(r) if others else r
        for r, o in zip(results, given, strict=True)
    )
