"""Random expressions of the spec language, as text.

Every compound is put in brackets, so that where it stands does not matter.  What is written is valid by its making: a
read is inside by the range of its index, or says what it yields outside, or stands in a reduction.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

FUNCTIONS = ("exp", "log", "sqrt", "tanh", "erf", "sin", "cos", "floor", "ceil", "round", "abs")
REDUCTIONS = ("sum", "sum", "sum", "sum", "max", "min", "prod")
BIT_CASTS = 0.25
"""Of the reads of a program that has any."""
_OF_FLOATS = (
    "T(bit_cast(float32, bit_cast(int32, float32({}))))",
    "T(bit_cast(float64, bit_cast(int64, float64({}))))",
    "T(bit_cast(float32, bit_cast(int32, float32({})) + 1))",
    "(if bit_cast(int32, float32({})) < 0 then T(1) else T(2))",
)
_OF_INTEGERS = (
    "T(bit_cast(int32, float32({})))",
    "T(bit_cast(int64, float64({})))",
    "T(bit_cast(int32, bit_cast(float32, int32({}))))",
)
SPACE = 40_000
"""Most places of an index space."""


@dataclass(frozen=True)
class Dim:
    """A dimension: its text, its size, and its factors if it is a product; `broadcast`: it may be 1."""

    text: str
    size: int
    factors: tuple[Dim, ...] = ()
    broadcast: bool = False


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: str
    dims: tuple[Dim, ...]


@dataclass
class Index:
    """An index over a dimension; `bare`: it subscripts the dimension alone, so that its range can be told; `other`: it
    subscripts another dimension alone, too.
    """

    name: str
    dim: Dim
    bare: bool = False
    other: bool = False

    @property
    def told(self) -> bool:
        return self.bare and not self.other


@dataclass(frozen=True)
class Scope:
    indices: tuple[Index, ...]
    reducing: bool = False

    @property
    def places(self) -> int:
        count = 1
        for i in self.indices:
            count *= max(1, i.dim.size)
        return count


@dataclass
class Writer:
    """Writes the definitions of one op.  `kind` is float or int: what `T` may stand for."""

    rng: random.Random
    kind: str
    dims: list[Dim]
    tensors: list[Tensor] = field(default_factory=list)
    attrs: dict[str, str] = field(default_factory=dict)
    """The type of each attribute."""
    letters: int = 0
    bits: random.Random | None = None
    """What draws casts of bits, if there are any."""

    def fresh(self, prefix: str) -> str:
        self.letters += 1
        return f"{prefix}{self.letters}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    # Elements -----------------------------------------------------------------------------------------

    def element(self, scope: Scope, depth: int) -> str:
        """An expression of type T."""
        if depth <= 0 or self.chance(0.1):
            return self.leaf(scope)
        makers = [
            (26, self.sum_of),
            (26, self.operation),
            (12, self.choice),
            (14 if self.kind == "float" else 3, self.function),
            (3, self.negated),
            (5, self.cast),
            (10, self.window),
        ]
        (maker,) = self.rng.choices([m for _, m in makers], [w for w, _ in makers])
        return maker(scope, depth)

    def leaf(self, scope: Scope) -> str:
        if self.chance(0.82):
            found = self.read(scope, self.rng.choice(self.elements()))
            cast = self.bits is not None and self.bits.random() < BIT_CASTS
            return self.of_bits(found) if cast else found
        return self.rng.choice([self.number, self.of_index, self.of_attr])(scope)

    def of_bits(self, text: str) -> str:
        """What casts of bits make of an element."""
        assert self.bits is not None
        return self.bits.choice(_OF_FLOATS if self.kind == "float" else _OF_INTEGERS).format(text)

    def elements(self) -> list[Tensor]:
        return [t for t in self.tensors if t.dtype == "T"]

    def number(self, scope: Scope) -> str:
        return self.rng.choice(["2", "3", "1", "0"] + (["0.5", "1.25", "0.1"] if self.kind == "float" else []))

    def of_index(self, scope: Scope) -> str:
        if not scope.indices:
            return f"T({self.rng.choice(self.dims).text})"
        return f"T({self.integer(scope)})"

    def of_attr(self, scope: Scope) -> str:
        names = [n for n, kind in self.attrs.items() if kind == "float" or kind == "int"]
        if not names:
            return self.number(scope)
        name = self.rng.choice(names)
        return f"T({name})" if self.attrs[name] == "int" or self.kind == "int" else name

    def operation(self, scope: Scope, depth: int) -> str:
        a, b = self.element(scope, depth - 1), self.element(scope, depth - 1)
        if self.kind == "float" and self.chance(0.18):
            a = a if "[" in a else f"T({a})"
            return self.rng.choice([f"({a} / (abs({b}) + 1))", f"({a} / {b})", f"pow(abs({a}) + 0.5, tanh({b}))"])
        if self.chance(0.25):
            return f"{self.rng.choice(['max', 'min'])}({a}, {b})"
        return f"({a} {self.rng.choice(['+', '-', '*', '*'])} {b})"

    def negated(self, scope: Scope, depth: int) -> str:
        return f"(-{self.element(scope, depth - 1)})"

    def function(self, scope: Scope, depth: int) -> str:
        a = self.element(scope, depth - 1)
        if self.kind == "int":
            return f"abs({a})"
        a = a if "[" in a else f"T({a})"
        name = self.rng.choice(FUNCTIONS)
        if name in ("log", "sqrt") and self.chance(0.7):
            return f"{name}(abs({a}) + 0.25)"
        return f"exp(min({a}, 3))" if name == "exp" else f"{name}({a})"

    def cast(self, scope: Scope, depth: int) -> str:
        others = [t for t in self.tensors if t.dtype not in ("T", "bool")]
        if others and self.chance(0.6):
            return f"T({self.read(scope, self.rng.choice(others))})"
        a = self.element(scope, depth - 1)
        return f"T({self.rng.choice(['int32', 'float32', 'half', 'bfloat16', 'float64', 'T'])}({a}))"

    def choice(self, scope: Scope, depth: int) -> str:
        c = self.condition(scope, depth - 1)
        return f"(if {c} then {self.element(scope, depth - 1)} else {self.element(scope, depth - 1)})"

    # Conditions ---------------------------------------------------------------------------------------

    def condition(self, scope: Scope, depth: int) -> str:
        kinds = ["value", "index", "attr", "both"]
        match self.rng.choice(kinds):
            case "value":
                flags = [t for t in self.tensors if t.dtype == "bool"]
                if flags and self.chance(0.5):
                    return self.read(scope, self.rng.choice(flags))
                sign = self.rng.choice(["<", "<=", ">", ">=", ">"])
                return f"({self.element(scope, min(depth, 1))} {sign} {self.leaf(scope)})"
            case "attr":
                return self.flag() or self.of_places(scope)
            case "both" if depth > 0:
                a, b = self.condition(scope, depth - 1), self.condition(scope, depth - 1)
                return self.rng.choice([f"({a} and {b})", f"({a} or {b})", f"(not {a})"])
            case _:
                return self.of_places(scope)

    def flag(self) -> str | None:
        names = [n for n, kind in self.attrs.items() if kind in ("bool", "enum")]
        if not names:
            return None
        name = self.rng.choice(names)
        return name if self.attrs[name] == "bool" else f"({name} == {self.rng.choice(['A', 'B'])})"

    def of_places(self, scope: Scope) -> str:
        """A condition on indices, sizes and attributes."""
        a = self.integer(scope)
        if self.chance(0.3):
            return f"({a} % {self.rng.choice([2, 3])} == 0)"
        return f"({a} {self.rng.choice(['<', '<=', '>', '==', '!='])} {self.integer(scope)})"

    # Integers -----------------------------------------------------------------------------------------

    def integer(self, scope: Scope) -> str:
        """An expression of indices."""
        parts = [i.name for i in scope.indices] * 3 + [d.text for d in self.dims]
        parts += [n for n, kind in self.attrs.items() if kind == "int"]
        a = self.rng.choice(parts)
        match self.rng.randrange(6):
            case 0:
                return f"({a} + {self.rng.choice([*parts, '1', '2'])})"
            case 1:
                return f"({a} - {self.rng.choice([*parts, '1'])})"
            case 2:
                return f"({a} {self.rng.choice(['//', '%'])} {self.rng.choice([2, 3, 4])})"
        return a

    def subscript(self, scope: Scope, dim: Dim) -> tuple[str, bool]:
        """A subscript, and whether it is surely inside."""
        alike = [i for i in scope.indices if i.dim.text == dim.text]
        if dim.factors and self.chance(0.7):
            digits = [[i for i in scope.indices if i.dim.text == f.text] for f in dim.factors]
            if all(digits):
                high, low = (self.rng.choice(d) for d in digits)
                return f"{high.name} * {dim.factors[1].text} + {low.name}", high is not low
        if alike and self.chance(0.8):
            index = self.rng.choice(alike[-2:] if self.chance(0.7) else alike)
            index.bare = True
            return index.name, True
        if dim.broadcast and alike and self.chance(0.95):
            return alike[-1].name, True
        if not scope.indices:
            return self.rng.choice(["0", "0", "1", f"{dim.text} - 1"]), False
        index = self.rng.choice(scope.indices)
        forms = [index.name, self.integer(scope), f"{index.name} + {self.rng.randrange(3)}", f"{index.name} - 1",
                 f"{index.name} * 2", f"{index.name} // 2", f"{dim.text} - 1 - {index.name}", "0"]  # fmt: skip
        if len(scope.indices) > 1:
            other = self.rng.choice(scope.indices)
            forms += [
                f"{index.name} + {other.name}",
                f"{index.name} + {other.name} - 1",
                f"2 * {index.name} + {other.name}",
            ]
        form = self.rng.choice(forms)
        for i in scope.indices:
            i.other = i.other or form == i.name
        return form, False

    def read(self, scope: Scope, tensor: Tensor) -> str:
        found = [self.subscript(scope, d) for d in tensor.dims]
        text = f"{tensor.name}[{', '.join(s for s, _ in found)}]"
        if all(inside for _, inside in found):
            return text
        if scope.reducing and self.chance(0.5):
            return text
        zero = "false" if tensor.dtype == "bool" else "0"
        if tensor.dtype == "T" and self.chance(0.3):
            makers = [self.number, self.of_index, self.of_attr, *([self.leaf] if self.chance(0.1) else [])]
            zero = f"({self.rng.choice(makers)(scope)})"
        return f"({text} else {zero})"

    def whole(self, scope: Scope, tensor: Tensor) -> str:
        """A read of a tensor, summed over the dimensions that no index in scope runs along."""
        subscripts, ranges = [], []
        for d in tensor.dims:
            alike = [i.name for i in scope.indices if i.dim.text == d.text]
            if alike:
                subscripts.append(self.rng.choice(alike))
                continue
            subscripts.append(self.fresh("r"))
            ranges.append(f"{subscripts[-1]} < {d.text}")
        text = f"{tensor.name}[{', '.join(subscripts)}]"
        return f"sum[{', '.join(ranges)}]({text})" if ranges else text

    # Reductions ---------------------------------------------------------------------------------------

    def sum_of(self, scope: Scope, depth: int) -> str:
        """A reduction over one index or two."""
        indices: list[Index] = []
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            room = SPACE // Scope((*scope.indices, *indices)).places
            dims = [d for d in [*self.dims, Dim("2", 2), Dim("3", 3)] if d.size <= room and d.size < 10_000]
            if dims:
                indices.append(Index(self.fresh("r"), self.rng.choice(dims)))
        if not indices:
            return self.leaf(scope)
        inner = Scope((*scope.indices, *indices), True)
        if self.chance(0.5):
            body = f"{self.leaf(inner)} * {self.leaf(inner)}"
            if self.chance(0.2):
                body += f" * {self.leaf(inner)}"
        else:
            body = self.element(inner, depth - 1)
        return self.reduction(self.rng.choice(REDUCTIONS), indices, inner, body)

    def reduction(self, kind: str, indices: list[Index], inner: Scope, body: str) -> str:
        for i in indices:
            if not mentions(body, i.name):
                body = f"({body}) * {self.uses(inner, i)}" if kind == "sum" else f"({body}) + {self.uses(inner, i)}"
        ranges = [i.name if i.told and self.chance(0.5) else f"{i.name} < {i.dim.text}" for i in indices]
        condition = f" if {self.of_places(inner)}" if self.chance(0.12) else ""
        return f"{kind}[{', '.join(ranges)}{condition}]({body})"

    def uses(self, scope: Scope, index: Index) -> str:
        """Something that depends on an index."""
        before = [(i.bare, i.other) for i in scope.indices]
        for tensor in self.rng.sample(self.elements(), len(self.elements())):
            read = self.read(scope, tensor)
            if mentions(read, index.name):
                return read
            for i, (bare, other) in zip(scope.indices, before, strict=True):
                i.bare, i.other = bare, other
        return f"T({index.name} + 1)"

    def window(self, scope: Scope, depth: int) -> str:
        """A few taps along one of the indices."""
        reads = [
            t for t in self.elements() if t.dims and any(i.dim.text == d.text for i in scope.indices for d in t.dims)
        ]
        if not reads or scope.places * 3 > SPACE:
            return self.leaf(scope)
        tensor, taps = self.rng.choice(reads), self.rng.choice([2, 3])
        tap = Index(self.fresh("r"), Dim(str(taps), taps))
        inner = Scope((*scope.indices, tap), True)
        subscripts, shifted = [], False
        for d in tensor.dims:
            alike = [i for i in scope.indices if i.dim.text == d.text]
            if alike and not shifted:
                i = self.rng.choice(alike)
                step = self.rng.choice(["", "", "2 * "])
                subscripts.append(f"{step}{i.name} + {tap.name}" + self.rng.choice(["", " - 1"]))
                shifted = True
            else:
                subscripts.append(self.subscript(inner, d)[0])
        body = f"{tensor.name}[{', '.join(subscripts)}]"
        if self.chance(0.6):
            body += f" * {self.leaf(inner)}"
        return self.reduction(self.rng.choice(REDUCTIONS[3:]), [tap], inner, body)


def mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None
