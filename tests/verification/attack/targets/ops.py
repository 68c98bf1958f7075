"""A small module of ops that several targets call, and right calls of them."""

from __future__ import annotations

import importlib.util
import random
import reprlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from opgen.bindings.generate import generate

Array = npt.NDArray[Any]

SPEC = '''"""Ops for attacks."""

op Product {
  """A product of matrices, a bias and a factor."""
  type T in {half, bfloat16, float32, float64, int32}
  input a: T[rows, depth] """Left."""
  input b: T[depth, columns] """Right."""
  input bias: T[columns | 1] """Added to each row."""
  attr factor: int = 1 """A factor."""
  output sums: T[rows, columns] """Sums."""
  sums[i, j] = sum[k](a[i, k] * b[k, j]) * T(factor) + bias[j]
}

op Windows {
  """Sums of windows."""
  type T in {float32, float64, int32}
  input x: T[batch, length, channels] layout order """Rows."""
  attr strides: int[3] >= 1 = [1, 1, 1] layout order """Steps."""
  attr reach: int >= 0 = 1 """Places on each side."""
  attr order: layout {NLC, NCL} = NLC """The order of dimensions."""
  require strides.N == 1 and strides.C == 1 : strides "1 for the batch and channel dimensions"
  let out_length = (length + strides.L - 1) // strides.L
  output y: T[batch, out_length, channels] layout order """Sums."""
  y[n, i, c] = sum[r < 2 * reach + 1](x[n, i * strides.L + r - reach, c])
}

op Shares {
  """Rows as parts of their sums."""
  type T in {float32, float64}
  input x: T[rows, columns] """Values."""
  attr offset: float = 0.5 """Added to sums."""
  output y: T[rows, columns] """Parts."""
  output total: T[rows] """Sums."""
  let s[i] = sum[j](abs(x[i, j]))
  total[i] = s[i] + offset
  y[i, j] = x[i, j] / (s[i] + offset)
}
'''

TYPES = {
    "half": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
    "int32": np.int32,
}


@dataclass
class Call:
    """A right call: tensors and attributes by name."""

    op: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.op}({', '.join(f'{n}={_shown(v)}' for n, v in self.arguments.items())})"


def _shown(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{type(value).__name__} {value.dtype}{list(value.shape)} strides {value.strides}"
    return f"{type(value).__name__} {_repr(value)}"


def _repr(value: object) -> str:
    """What a value says it is; crafted ones may not be able to, and large ones say too much."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"of {value.bit_length()} bits"
    try:
        return reprlib.repr(value)[:120]
    except Exception as error:
        return type(error).__name__


def module(folder: Path, name: str = "attacked") -> Any:
    """The generated module, imported."""
    (folder / "specs").mkdir(exist_ok=True)
    (folder / "specs" / f"{name}.op").write_text(SPEC)
    generate([folder / "specs"], folder / "generated")
    found = importlib.util.spec_from_file_location(name, folder / "generated" / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    sys.modules[name] = made
    found.loader.exec_module(made)
    return made


def right_call(choose: random.Random, largest: int = 9) -> Call:
    """A call that is right, with whole numbers small enough to be exact in every type."""
    source = np.random.default_rng(choose.randrange(1 << 32))

    def size() -> int:
        return choose.choice((0, 1, 2, 3, choose.randint(1, largest), choose.randint(1, largest)))

    def array(dtype: Any, *shape: int) -> Array:
        return source.integers(-3, 4, shape).astype(dtype)

    match choose.choice(("product", "windows", "shares")):
        case "product":
            t, m, k, n = TYPES[choose.choice([*TYPES])], size(), size(), size()
            return Call("product", {"a": array(t, m, k), "b": array(t, k, n), "bias": array(t, choose.choice((n, 1))),
                                    "factor": choose.randint(-2, 3)})  # fmt: skip
        case "windows":
            t = TYPES[choose.choice(("float32", "float64", "int32"))]
            order = choose.choice(("NLC", "NCL"))
            step, last = choose.randint(1, 3), order == "NCL"
            return Call("windows", {"x": array(t, size(), size(), size()), "reach": choose.randint(0, 4),
                                    "strides": [1, 1, step] if last else [1, step, 1], "order": order})  # fmt: skip
    t = TYPES[choose.choice(("float32", "float64"))]
    return Call("shares", {"x": array(t, size(), size()), "offset": choose.choice((0.5, 1.0, 4.0))})
