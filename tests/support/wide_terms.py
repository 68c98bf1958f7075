"""Random integer terms whose values leave 64 bits, and ops that read at them."""

from __future__ import annotations

import random

LARGE = [0, 1, -1, 2, -2, 3, 5, 7, 65536, 2**31 - 1, -(2**31), 2**31, 2**32 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63)]
WIDE = ">= -9223372036854775808 <= 9223372036854775807"
Term = tuple[str, str]
"""An expression as a spec has it, and as Python has it."""


def term(rng: random.Random, depth: int) -> Term:
    if depth == 0 or rng.random() < 0.2:
        leaf = rng.choice(["i", "i", "a", "b", "n", str(rng.choice([0, 1, 2, 3, 2**31, 2**62, 2**63 - 1]))])
        return leaf, leaf
    left, right = term(rng, depth - 1), term(rng, depth - 1)
    op = rng.choice(["+", "-", "*", "*", "//", "%", "min", "max", "if"])
    if op in ("min", "max"):
        spec, python = (f"{op}({x}, {y})" for x, y in zip(left, right, strict=True))
    elif op == "if":
        condition = f"{rng.choice('iab')} {rng.choice(['<', '>=', '==', '!='])}"
        spec = f"(if {condition} {left[0]} then {right[0]} else {left[0]})"
        python = f"({right[1]} if {condition} {left[1]} else {left[1]})"
    else:
        spec, python = (f"({x} {op} {y})" for x, y in zip(left, right, strict=True))
    return spec, python


def op_text(name: str, subscript: str) -> str:
    """An op that reads a row at a subscript, 7 outside."""
    attrs = "\n".join(f"  attr {a}: int {WIDE} = 1" for a in "ab")
    value = f"(x[{subscript}] else 7) + float32(0 * a + 0 * b)"
    return f"op {name} {{\n  input x: float32[n]\n{attrs}\n  output y: float32[n]\n  y[i] = {value}\n}}\n"
