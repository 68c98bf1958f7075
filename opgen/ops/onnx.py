"""ONNX's operators: the functions generated from `onnx_ops.op`."""

from opgen.ops.onnx_ops import *  # noqa: F403
from opgen.ops.onnx_ops import __all__ as __all__
