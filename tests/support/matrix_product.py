"""A spec of matrix products, for libraries."""

from __future__ import annotations

SPEC = '''
"""Products."""
op MatMul {
  """A product of matrices."""
  type T in {float32}
  input x: T[n, k] """The left one."""
  input w: T[k, m] """The right one."""
  output y: T[n, m] """The product."""
  y[i, j] = sum[q < k](x[i, q] * w[q, j])
}
'''
