"""Hand-written kernels in the lowered form, one for each structure that schedules meet."""

from __future__ import annotations

import random

from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel

DENSE = """
kernel dense(batch: int64 in [0, inf], height: int64 in [0, inf], width: int64 in [0, inf], groups: int64 in [0, inf],
             channels: int64 in [0, inf], taps_h: int64 in [0, inf], taps_w: int64 in [0, inf], outs: int64 in [0, inf],
             out_h: int64 in [0, inf], out_w: int64 in [0, inf], step_h: int64 in [1, 64], step_w: int64 in [1, 64],
             gap_h: int64 in [1, 64], gap_w: int64 in [1, 64], top: int64, left: int64,
             image: {T}[batch, height, width, groups*channels],
             filter: {T}[taps_h, taps_w, channels, groups*outs]) -> (result: {T}[batch, out_h, out_w, groups*outs]):
  for n in 0..batch:
    for y in 0..out_h:
      for x in 0..out_w:
        for g in 0..groups:
          for k in 0..outs:
            alloc acc: {C}[] register
            acc[] = {Z}
            for r in 0..taps_h:
              if y*step_h + r*gap_h - top >= 0 and y*step_h + r*gap_h - top < height:
                for s in 0..taps_w:
                  if x*step_w + s*gap_w - left >= 0 and x*step_w + s*gap_w - left < width:
                    for c in 0..channels:
                      acc[] = {F}
            result[n, y, x, g*outs + k] = {O}
"""

LANES = """
kernel lanes(batch: int64 in [0, inf], height: int64 in [0, inf], width: int64 in [0, inf], channels: int64 in [0, inf],
             taps_h: int64 in [0, inf], taps_w: int64 in [0, inf], out_h: int64 in [0, inf], out_w: int64 in [0, inf],
             step: int64 in [1, 64], top: int64, left: int64,
             image: float32[batch, height, width, channels], filter: float32[taps_h, taps_w, channels]) -> (
             result: float32[batch, out_h, out_w, channels]):
  for n in 0..batch:
    for y in 0..out_h:
      for x in 0..out_w:
        for c in 0..channels:
          alloc acc: float32[] register
          acc[] = 0.0f32
          for r in 0..taps_h:
            if y*step + r - top >= 0 and y*step + r - top < height:
              for s in 0..taps_w:
                if x*step + s - left >= 0 and x*step + s - left < width:
                  acc[] = fma(image[n, y*step + r - top, x*step + s - left, c], filter[r, s, c], acc[])
          result[n, y, x, c] = acc[]
"""

PRODUCT = """
kernel product(m: int64 in [0, inf], n: int64 in [0, inf], p: int64 in [0, inf],
             a: float32[m, p], b: float32[p, n]) -> (
             c: float32[m, n]):
  for i in 0..m:
    for j in 0..n:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for k in 0..p:
        acc[] = fma(a[i, k], b[k, j], acc[])
      c[i, j] = acc[]
"""

ELEMENTWISE = """
kernel elementwise(m: int64 in [0, inf], n: int64 in [0, inf], x: float32[m, n], bias: float32[n]) -> (
             y: float32[m, n]):
  for i in 0..m:
    for j in 0..n:
      y[i, j] = max(x[i, j]*2.0f32 + bias[j], 0.0f32)
"""

TRANSPOSE = """
kernel transpose(m: int64 in [0, inf], n: int64 in [0, inf], x: float32[m, n]) -> (y: float32[n, m]):
  for j in 0..n:
    for i in 0..m:
      y[j, i] = x[i, j]
"""

NORMALISE = """
kernel normalise(m: int64 in [0, inf], n: int64 in [0, inf], x: float32[m, n]) -> (y: float32[m, n]):
  alloc peak: float32[m] heap
  alloc total: float32[m] heap
  for peak_i in 0..m:
    alloc acc: float32[] register
    acc[] = -inf_f32
    for j in 0..n:
      acc[] = max(acc[], x[peak_i, j])
    peak[peak_i] = acc[]
  for total_i in 0..m:
    alloc acc2: float32[] register
    acc2[] = 0.0f32
    for j2 in 0..n:
      acc2[] = acc2[] + exp(x[total_i, j2] - peak[total_i])
    total[total_i] = acc2[]
  for i in 0..m:
    for l in 0..n:
      y[i, l] = exp(x[i, l] - peak[i]) / total[i]
"""

INTEGERS = """
kernel integers(m: int64 in [0, inf], n: int64 in [0, inf], x: int32[m, n], y: int32[m, n]) -> (z: int32[m, n]):
  for i in 0..m:
    for j in 0..n:
      alloc element: int32[] register
      if i > 0 and j > 0:
        element[] = x[i - 1, j - 1]
      else:
        element[] = 7i32
      z[i, j] = element[]*y[i, j] + x[i, j]
"""


def dense(dtype: str = "float32") -> Kernel:
    """A windowed sum of products with groups, in a scalar type."""
    compute = {"float16": "float32", "bfloat16": "float32"}.get(dtype, dtype)
    image = "image[n, y*step_h + r*gap_h - top, x*step_w + s*gap_w - left, g*channels + c]"
    factor = "filter[r, s, c, g*outs + k]"
    if compute != dtype:
        image, factor = f"{compute}({image})", f"{compute}({factor})"
    step = f"acc[] + {image}*{factor}" if compute == "int32" else f"fma({image}, {factor}, acc[])"
    zero = {"int32": "0i32", "float32": "0.0f32", "float64": "0.0f64"}[compute]
    out = "acc[]" if compute == dtype else f"{dtype}(acc[])"
    text = DENSE.replace("{T}", dtype).replace("{C}", compute).replace("{Z}", zero)
    return parse_kernel(text.replace("{F}", step).replace("{O}", out))


def kernel(text: str) -> Kernel:
    return parse_kernel(text)


def random_dense(rng: random.Random) -> dict[str, int]:
    """Small sizes for `dense`, edges and empty dimensions among them."""
    height, width = rng.randint(0, 7), rng.randint(1, 11)
    taps_h, taps_w = rng.randint(1, 3), rng.randint(1, 3)
    return {
        "batch": rng.choice([1, 1, 2]),
        "height": height,
        "width": width,
        "groups": rng.choice([1, 1, 2]),
        "channels": rng.randint(0, 3),
        "taps_h": taps_h,
        "taps_w": taps_w,
        "outs": rng.choice([1, 3, 4, 5, 8, 9]),
        "out_h": rng.randint(0, 4),
        "out_w": rng.choice([1, 2, 5, 7, 9, 14]),
        "step_h": rng.randint(1, 2),
        "step_w": rng.randint(1, 2),
        "gap_h": rng.randint(1, 2),
        "gap_w": rng.randint(1, 2),
        "top": rng.randint(0, 2),
        "left": rng.randint(0, 2),
    }
