"""TensorFlow's operators and their gradients: the functions generated from `nn_ops.op`."""

from opgen.ops.nn_ops import *  # noqa: F403
from opgen.ops.nn_ops import __all__ as __all__
