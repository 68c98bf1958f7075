"""The operators that come with opgen, ready to call.

    from opgen.ops import nn, onnx

    nn      TensorFlow's operators and their gradients
    onnx    ONNX's operators

Each gives the functions of one generated module.  The generated modules exist once in the repository, in `generated/`:
the wheel has copies of them in this folder, a checkout finds them there.
"""

from __future__ import annotations

import importlib
from pathlib import Path

__all__ = ["nn", "onnx"]

_GENERATED = Path(__file__).parents[2] / "generated"
if not Path(__file__).with_name("nn_ops.py").is_file():
    __path__.append(str(_GENERATED))


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'opgen.ops' has no attribute {name!r}")
    return importlib.import_module(f"opgen.ops.{name}")


def __dir__() -> list[str]:
    return __all__
