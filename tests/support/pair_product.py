"""A product of matrices of bfloat16, as a kernel."""

from __future__ import annotations

from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel

PRODUCT = """
kernel product(x: bfloat16[{m}, {c}], w: bfloat16[{c}, {k}]) -> (y: float32[{m}, {k}]):
  for i in 0..{m}:
    for j in 0..{k}:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for c in 0..{c}:
        acc[] = fma(float32(x[i, c]), float32(w[c, j]), acc[])
      y[i, j] = acc[]
"""


def product(m: int, c: int, k: int) -> Kernel:
    return parse_kernel(PRODUCT.replace("{m}", str(m)).replace("{c}", str(c)).replace("{k}", str(k)))
