"""Random inputs for arguments that nobody provides."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from opgen.dtypes import DType
from opgen.runtime.memory.buffers import AnyArray, numpy_dtype


def drawn(kinds: Mapping[str, tuple[DType, tuple[int, ...]]], seed: int = 0) -> dict[str, AnyArray]:
    """Return normal floats; integers and flags of 0 and 1, which are in range whatever they count."""
    generator = np.random.default_rng(seed)
    found: dict[str, AnyArray] = {}
    for name, (dtype, shape) in kinds.items():
        values = generator.standard_normal(shape) if dtype.is_float else generator.integers(0, 2, shape)
        found[name] = np.asarray(values).astype(numpy_dtype(dtype))
    return found
