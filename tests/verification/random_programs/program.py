"""A random program: the text of a spec, and the sizes, attributes and types of one call of it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Program:
    """`shapes` are those of the inputs, `types` what stands for the type variables, `inputs` the inputs' types."""

    seed: int
    text: str
    shapes: dict[str, tuple[int, ...]]
    inputs: dict[str, str]
    attrs: dict[str, int | float | bool | str]
    types: dict[str, str]

    @property
    def arrays(self) -> dict[str, Array]:
        """Values for the inputs, each by its name: standard normal, small integers, or whole numbers with ties."""
        return {name: self._array(name, self.inputs[name]) for name in self.shapes}

    def _array(self, name: str, dtype: str) -> Array:
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        shape = self.shapes[name]
        if dtype == "bool":
            return rng.random(shape) < 0.5
        if dtype in ("int32", "int64"):
            return rng.integers(-8, 9, shape).astype(dtype)
        whole = rng.random() < 0.15
        values = rng.integers(-3, 4, shape).astype(np.float64) if whole else rng.standard_normal(shape)
        return values.astype(numpy_type(dtype))

    def cotangent(self, name: str, shape: tuple[int, ...], dtype: str) -> Array:
        """Values for the gradient by an output."""
        rng = np.random.default_rng([self.seed, zlib.crc32(name.encode()), 1])
        return rng.standard_normal(shape).astype(numpy_type(dtype))


def numpy_type(dtype: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
