"""Inputs of size 1 that stretch count as if the caller had repeated them, in values and in gradients.

Random programs read inputs that may stretch along dimensions that other inputs tell, by name, by a product or by a
named integer, inside and beyond them, in reductions and conditions.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from opgen.grad import gradient, load_text
from opgen.spec.model.model import Module
from tests.grad.cases import Array, Arrays, Case

TEXT = """op A {{
  type T in {{float64}}
  input x: T[n]
  input z: T[m]
  input k: T[q] shape_only
  input zk: T[p * q]
  input a: T[m | 1]
  input b: T[n | 1, m | 1]
  input c: T[p | 1]
  input d: T[l | 1, p | 1]
  input e: T[pq | 1]
  let l = n + m
  let pq = p * q
  output y: T[n]
  output w: T[l]
  output v: T[p, q]
  v[i, j] = zk[i * q + j] * (e[i * q + j] else 0)
  y[i] = x[i] + (a[i] else 2) * (z[i] else 1) + {first}
  w[j] = {second} * (zk[j] else 1) + sum[h < 2](b[j, h] * c[h]) + sum[g < 2](d[j, g])
}}
"""
RANGES = {"n": (1, 4), "m": (1, 4), "p": (1, 3), "q": (1, 2)}


def term(rng: random.Random, index: str) -> str:
    """A product, a choice or a sum of reads at an index and at another."""
    one = rng.choice([f"a[{index}]", f"c[{index}]", f"z[{index}]", f"zk[{index}]"])
    other = rng.choice([f"z[{index}]", f"a[{index}]", f"c[{index}]", f"x[{index} - 1]"])
    two = rng.choice(["a[r]", "c[r]", f"b[{index}, r]", f"b[r, {index}]", f"d[{index}, r]", f"d[r, {index}]"])
    return rng.choice([
        f"({one} else 2) * ({other} else 1)",
        f"(if {index} % 2 == 0 then ({one} else 3) else ({other} else 1))",
        f"sum[r < 3]({two} * ({one} else 1))",
        f"sum[r < 3 if r != {index}]({two})",
        f"max[r < 3]({two} * ({other} else 2))",
        f"sum[h < 2, g < 3](a[h * 3 + g] * ({other} else 2)) + sum[h < 3, g < 2](b[{index}, h * 2 + g])",
    ])  # fmt: skip


def program(seed: int) -> str:
    rng = random.Random(seed)
    return TEXT.format(first=f"{term(rng, 'i')} + {term(rng, 'i')}", second=term(rng, "j"))


def derivative(case: Case, wrt: str, arrays: Arrays) -> Array:
    """The gradient by an input, for the gradients with respect to the outputs that are among the arrays."""
    op = gradient(case.module, case.op, wrt)
    shapes = {t.name: arrays[t.name].shape for t in op.tensors}
    backward = Case(Module("gradients", (op,), ()), op.name, shapes)
    return backward.call().run(arrays)[f"grad_{wrt}"]


@pytest.mark.parametrize("seed", range(25))
def test_as_if_repeated(seed: int) -> None:
    rng = random.Random(f"stretched {seed}")
    module = load_text(program(seed))
    sizes = {name: rng.randint(*bounds) for name, bounds in RANGES.items()}
    n, m, p, q = (sizes[s] for s in "nmpq")
    full = {"x": (n,), "z": (m,), "k": (q,), "zk": (p * q,), "a": (m,), "b": (n, m), "c": (p,), "d": (n + m, p)}
    full["e"] = (p * q,)
    thin = {t: tuple(rng.choice([1, s]) for s in full[t]) if t in "abcde" else full[t] for t in full}
    numbers = np.random.default_rng(seed)
    arrays = {t: numbers.standard_normal(thin[t]) for t in full}
    repeated = {t: np.broadcast_to(arrays[t], full[t]).copy() for t in full}
    case, other = Case(module, "A", thin), Case(module, "A", full)
    found, expected = case.call().run(arrays), other.call().run(repeated)
    for name in ("y", "w", "v"):
        np.testing.assert_array_equal(found[name], expected[name], err_msg=f"seed {seed}: {name}\n{program(seed)}")
    seeds = {f"grad_{name}": numbers.standard_normal(found[name].shape) for name in ("y", "w", "v")}
    for wrt in "abcdexz":
        got = derivative(case, wrt, {**arrays, **seeds})
        all_of_it = derivative(other, wrt, {**repeated, **seeds})
        axes = tuple(i for i, s in enumerate(thin[wrt]) if s == 1)
        kept = all_of_it.sum(axis=axes, keepdims=True) if axes else all_of_it
        np.testing.assert_allclose(got, kept, rtol=1e-12, atol=1e-12, err_msg=f"seed {seed}: by {wrt}\n{program(seed)}")
