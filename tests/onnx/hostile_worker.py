"""A process that loads and runs models that nobody should give it: `python -m tests.onnx.hostile_worker SEED`.

Each line that comes in is the path of a model; each line that goes out says what became of it: `result`, `refused` and
the error's text, or `wrong` and a traceback.  A model may ask for no more memory than BYTES above what there was.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import traceback
from typing import Any

import numpy as np

import opgen
from opgen.diagnostics import UserError
from opgen.graph.ir.values import Input
from opgen.onnx.load import load
from opgen.runtime.memory.buffers import numpy_dtype

BYTES = 1 << 30
"""What one model may take."""
MANY = 1 << 20
"""Elements of an input for which values are made; a larger one is a smaller array, which does not fit."""


def main() -> None:
    warm()
    generator = np.random.default_rng(int(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(outcome(line.strip(), generator)), flush=True)


def warm() -> None:
    """Whatever a process loads once is there before the memory is bounded."""
    from tests.onnx.models import float_input, model, node

    opgen.compile(model([node("Relu", ["x"], ["y"])], [float_input("x", (3,))]).SerializeToString())(np.ones(3, "f4"))
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, now + BYTES))


def outcome(path: str, generator: np.random.Generator) -> tuple[str, str]:
    try:
        model = load(path)
        compiled = opgen.compile(path)
        compiled(*(drawn(i, generator) for i in model.inputs))
    except UserError as error:
        return "refused", str(error)
    except Exception:
        return "wrong", traceback.format_exc()
    return "result", ""


def drawn(entry: Input, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Values of an input: sizes that are open are small, and sometimes 0; integers are small, too."""
    sizes = [2] if entry.shape is None else [s if isinstance(s, int) else 2 for s in entry.shape]
    shape = tuple(sizes) if math.prod(sizes) <= MANY and len(sizes) <= 32 else (2,)
    values = generator.standard_normal(shape) if entry.dtype.is_float else generator.integers(0, 3, shape)
    return np.asarray(values).astype(numpy_dtype(entry.dtype))


if __name__ == "__main__":
    main()
