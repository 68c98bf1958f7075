"""Random programs for the passes: loops, conditions, names, local buffers, integer and index arithmetic."""

from __future__ import annotations

import random

from opgen.dtypes import DTYPES, INT64
from opgen.loop import build as b
from opgen.loop.nodes import (
    Alloc,
    Binary,
    Buffer,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Parameter,
    Select,
    Stmt,
    Store,
    Type,
    Var,
)

SIZE = 8
"""Elements of every buffer; indices are taken modulo it, so that every access is in bounds."""


class Programs:
    """Programs of a seed, reproducible."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._count = 0
        self._dtype = self._rng.choice([d for d in DTYPES.values() if d.is_int and not d.is_bits])

    def kernel(self) -> Kernel:
        """A kernel of two sizes over data of an integer type."""
        body = b.block(self._stmt(["n", "m"], ["x"], 3) for _ in range(2))
        return Kernel(
            "program",
            (Buffer("x", self._dtype, (Const(SIZE),)),),
            (Buffer("y", self._dtype, (Const(SIZE),)),),
            (Parameter("n", INT64, 0, 5), Parameter("m", INT64, 1, 4)),
            b.block((self._clear(), body)),
            (Compare("le", Var("m"), b.add(Var("n"), 4)),),
        )

    def _clear(self) -> Stmt:
        return For("clear", Const(0), Const(SIZE), Store("y", (Var("clear"),), Const(0, Type(self._dtype))))

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    # Statements -------------------------------------------------------------------------------------

    def _stmt(self, names: list[str], buffers: list[str], depth: int) -> Stmt:
        kinds = ["store", "store"] if depth == 0 else ["for", "for", "if", "let", "alloc", "block", "store"]
        match self._rng.choice(kinds):
            case "for":
                return self._loop(names, buffers, depth)
            case "if":
                otherwise = self._stmt(names, buffers, depth - 1) if self._rng.random() < 0.4 else None
                return If(self._condition(names), self._stmt(names, buffers, depth - 1), otherwise)
            case "let":
                name = self._name("v")
                return Let(Var(name), self._index(names, 2), self._stmt([*names, name], buffers, depth - 1))
            case "alloc":
                return self._alloc(names, buffers, depth)
            case "block":
                return b.block(self._stmt(names, buffers, depth - 1) for _ in range(2))
        target = self._rng.choice(["y", *buffers[1:]])
        return Store(target, (self._place(names),), self._value(names, buffers, 2))

    def _loop(self, names: list[str], buffers: list[str], depth: int) -> Stmt:
        name = self._name("i")
        start = Const(self._rng.randint(0, 2)) if self._rng.random() < 0.7 else self._index(names, 1)
        count = self._rng.choice([Const(self._rng.randint(0, 3)), Var("n"), Var("m")])
        body = self._stmt([*names, name], buffers, depth - 1)
        return For(name, start, b.add(start, count), body)

    def _alloc(self, names: list[str], buffers: list[str], depth: int) -> Stmt:
        """A local buffer, filled first so that no load of it is undefined."""
        name, counter = self._name("t"), self._name("f")
        fill = For(counter, Const(0), Const(SIZE), Store(name, (Var(counter),), Const(1, Type(self._dtype))))
        body = b.block((fill, self._stmt(names, [*buffers, name], depth - 1)))
        return Alloc((Buffer(name, self._dtype, (Const(SIZE),), "stack"),), body)

    # Expressions ------------------------------------------------------------------------------------

    def _index(self, names: list[str], depth: int) -> Expr:
        """An integer of moderate size."""
        rng = self._rng
        if depth == 0 or rng.random() < 0.2:
            return rng.choice([Var(rng.choice(names)), Const(rng.randint(-4, 4))])
        left, right = self._index(names, depth - 1), self._index(names, depth - 1)
        match rng.choice(["add", "sub", "mul", "min", "max", "floordiv", "mod", "select"]):
            case "mul":
                return Binary("mul", left, Const(rng.randint(-3, 3)))
            case "floordiv":
                return Binary("floordiv", left, Const(rng.choice([1, 2, 3, 4, -2])))
            case "mod":
                return Binary("mod", left, Const(rng.choice([1, 2, 3, 5, -3])))
            case "select":
                return Select(self._condition(names), left, right)
            case "add":
                return Binary("add", left, right)
            case "sub":
                return Binary("sub", left, right)
            case "min":
                return Binary("min", left, right)
        return Binary("max", left, right)

    def _condition(self, names: list[str]) -> Expr:
        rng = self._rng
        test: Expr = Compare(
            rng.choice(("lt", "le", "gt", "ge", "eq", "ne")), self._index(names, 1), self._index(names, 1)
        )
        if rng.random() < 0.3:
            test = Binary(rng.choice(("and", "or")), test, self._condition(names))
        return b.negate(test) if rng.random() < 0.2 else test

    def _place(self, names: list[str]) -> Expr:
        return Binary("mod", self._index(names, 2), Const(SIZE))

    def _value(self, names: list[str], buffers: list[str], depth: int) -> Expr:
        rng = self._rng
        if depth == 0 or rng.random() < 0.3:
            if rng.random() < 0.6:
                return Load(rng.choice(buffers), (self._place(names),), self._dtype)
            return Cast(Type(self._dtype), self._index(names, 1))
        op = rng.choice(("add", "sub", "mul", "min", "max", "xor"))
        return Binary(op, self._value(names, buffers, depth - 1), self._value(names, buffers, depth - 1))
