"""Random ops: inputs, attributes, named tensors and results, and sizes for one call."""

from __future__ import annotations

import random

from tests.verification.random_programs.program import FLOATS, Program
from tests.verification.random_programs.write import SPACE, Dim, Index, Scope, Tensor, Writer, mentions

SMALL = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 24)
MIDDLE = (16, 31, 32, 33, 40, 48, 64)
LARGE = (64, 96, 100, 128, 130, 256)
BITS = 5
"""Every so many-th seed has casts of bits, drawn apart, so that the programs of other seeds stay what they were."""
ELEMENTS = 30_000
"""Most elements of a tensor."""


def generate(seed: int) -> Program:
    """The program of a seed: always the same one."""
    return _Generator(random.Random(seed), seed).program()


class _Generator:
    def __init__(self, rng: random.Random, seed: int) -> None:
        self.rng = rng
        self.seed = seed
        self.lines: list[str] = []
        kind = "int" if rng.random() < 0.1 else "float"
        self.names = [Dim(name, self._size()) for name in ("n", "m", "k")[: rng.choice([1, 2, 2, 3, 3])]]
        self.writer = Writer(rng, kind, list(self.names))
        if seed % BITS == 2:
            self.writer.bits = random.Random(seed)
        self.attrs: dict[str, int | float | bool | str] = {}
        self.last = Scope(())
        """The indices of the last output."""

    def _size(self) -> int:
        draw = self.rng.random()
        if draw < 0.02:
            return 0
        return self.rng.choice(SMALL if draw < 0.7 else MIDDLE if draw < 0.95 else LARGE)

    def program(self) -> Program:
        inputs = self._inputs()
        self._attrs()
        self._integers()
        definitions = [self._let(n) for n in range(self.rng.choice([0, 0, 1, 1, 2, 3]))]
        outputs = [self._output(n, definitions) for n in range(self.rng.choice([1, 1, 1, 1, 2]))]
        definitions += outputs
        self._use_all(inputs, definitions)
        lines = [*self.lines, *(f"  {left} = {right}{where}" for left, right, where in definitions)]
        dtype = (
            self.rng.choice(("float32", "float32", *FLOATS))
            if self.writer.kind == "float"
            else self.rng.choice(("int32", "int64"))
        )
        allowed = "half, bfloat16, float32, float64" if self.writer.kind == "float" else "int32, int64"
        text = "\n".join(["op Random {", f"  type T in {{{allowed}}}", *lines, "}"]) + "\n"
        shapes = {t.name: self._shape(t) for t in inputs}
        types = {t.name: dtype if t.dtype == "T" else _full(t.dtype) for t in inputs}
        return Program(self.seed, text, shapes, types, self.attrs, {"T": dtype})

    # Interface ----------------------------------------------------------------------------------------

    def _inputs(self) -> list[Tensor]:
        """Each dimension stands alone in one of the inputs; the others are drawn."""
        rng, count = self.rng, self.rng.choice([1, 2, 2, 3, 3, 4])
        found = [
            Tensor(f"x{n}", "T", self._dims(rng.choice([0, 1, 2, 2, 2, 3, 3, 4] if n else [1, 2, 2, 3])))
            for n in range(count)
        ]
        plain = {d.text for t in found for d in t.dims if not d.factors and not d.broadcast}
        missing = [d for d in self.names if d.text not in plain]
        if missing:
            found.append(Tensor(f"x{count}", "T", tuple(missing)))
        if rng.random() < 0.15:
            found.append(Tensor("flags", "bool", self._dims(rng.choice([1, 2]), False)))
        if rng.random() < 0.15:
            dtype = rng.choice(["int32", "int32", "float32", "float64", "half", "bfloat16"])
            found.append(Tensor("other", dtype, self._dims(rng.choice([0, 1, 2]), False)))
        for t in found:
            self.lines.append(f"  input {t.name}: {t.dtype}[{', '.join(map(_declared, t.dims))}]")
        self.writer.tensors += found
        return found

    def _dims(self, rank: int, special: bool = True) -> tuple[Dim, ...]:
        dims: list[Dim] = []
        elements = 1
        for _ in range(rank):
            d = self.rng.choice(self.names)
            draw = self.rng.random()
            if special and draw < 0.06:
                d = Dim(d.text, d.size, broadcast=True)
            elif special and draw < 0.12 and len(self.names) > 1:
                a, b = self.rng.sample(self.names, 2)
                d = Dim(f"{a.text} * {b.text}", a.size * b.size, (a, b))
            elif special and draw < 0.15:
                d = Dim("4", 4)
            if elements * max(1, d.size) > ELEMENTS:
                break
            elements *= max(1, d.size)
            dims.append(d)
        return tuple(dims)

    def _shape(self, tensor: Tensor) -> tuple[int, ...]:
        return tuple(1 if d.broadcast and self.rng.random() < 0.5 else d.size for d in tensor.dims)

    def _attrs(self) -> None:
        rng = self.rng
        drawn: dict[str, tuple[str, str, int | float | bool | str]] = {
            "a": ("int", "int >= 0 = 1", rng.randrange(4)),
            "s": ("float", "float = 0.5", rng.choice([0.5, 2.0, -1.25, 0.1])),
            "flag": ("bool", "bool = false", rng.random() < 0.5),
            "mode": ("enum", "enum {A, B} = A", rng.choice("AB")),
        }
        for name, (kind, declared, value) in drawn.items():
            if rng.random() < 0.18:
                self.writer.attrs[name] = kind
                self.lines.append(f"  attr {name}: {declared}")
                self.attrs[name] = value

    def _integers(self) -> None:
        """Named integers, which are dimensions of what is made."""
        if self.rng.random() < 0.2:
            d = self.rng.choice(self.names)
            text, size = self.rng.choice(
                [
                    (f"ceildiv({d.text}, 2)", -(-d.size // 2)),
                    (f"{d.text} + 1", d.size + 1),
                    (f"max({d.text} - 1, 0)", max(d.size - 1, 0)),
                ]
            )
            self.lines.append(f"  let h = {text}")
            self.writer.dims.append(Dim("h", size))

    # Definitions --------------------------------------------------------------------------------------

    def _made_dims(self) -> list[Dim]:
        dims: list[Dim] = []
        for _ in range(self.rng.choice([0, 1, 1, 2, 2, 2, 3])):
            d = self.rng.choice(self.writer.dims)
            if Scope(tuple(Index("", x) for x in (*dims, d))).places <= min(ELEMENTS, SPACE):
                dims.append(d)
        return dims

    def _value(self, indices: tuple[Index, ...]) -> str:
        return self.writer.element(Scope(indices), self.rng.choice([1, 2, 2, 3, 3]))

    def _let(self, number: int) -> tuple[str, str, str]:
        dims, name = self._made_dims(), f"t{number}"
        indices = tuple(Index(self.writer.fresh("i"), d) for d in dims)
        value = self._value(indices)
        missing = [i for i in indices if not mentions(value, i.name)]
        for i in missing:
            value = f"({value} + {self.writer.uses(Scope(indices), i)})"
        ranges = [f"{i.name} < {i.dim.text}" for i in indices if not i.told or self.rng.random() < 0.4]
        self.writer.tensors.append(Tensor(name, "T", tuple(dims)))
        if self.rng.random() < 0.4:  # likely to be read
            self.writer.tensors.append(Tensor(name, "T", tuple(dims)))
        left = f"let {name}[{', '.join(i.name for i in indices)}]"
        return left, value, f" where {', '.join(ranges)}" if ranges else ""

    def _output(self, number: int, lets: list[tuple[str, str, str]]) -> tuple[str, str, str]:
        dims, name = self._made_dims(), f"y{number}"
        declared = [d.text for d in dims]
        indices = [Index(self.writer.fresh("i"), d) for d in dims]
        subscripts = [i.name for i in indices]
        if (
            len(dims) > 1
            and dims[0].text != dims[1].text
            and self.rng.random() < 0.12
            and all(d in self.names for d in dims[:2])
        ):
            declared[:2] = [f"{dims[0].text} * {dims[1].text}"]
            subscripts[:2] = [f"{subscripts[0]} * {dims[1].text} + {subscripts[1]}"]
        flags = self.rng.random() < 0.03
        self.last = Scope(tuple(indices))
        value = self.writer.condition(self.last, 2) if flags else self._value(tuple(indices))
        dtype = "bool" if flags else "float32" if self.rng.random() < 0.04 else "T"
        value = f"float32({value})" if dtype == "float32" else value
        self.lines.append(f"  output {name}: {dtype}[{', '.join(declared)}]")
        return f"{name}[{', '.join(subscripts)}]", value, ""

    def _use_all(self, inputs: list[Tensor], definitions: list[tuple[str, str, str]]) -> None:
        """What nothing depends on is an error: used in the last definition, of an element's type, if need be."""
        left, value, where = definitions[-1]
        lets = [d for d in definitions if d[0].startswith("let")]
        live = value + "".join(d[1] for d in definitions if d[0].startswith("y"))
        for name, right, _ in reversed([(d[0].split()[1].split("[")[0], d[1], "") for d in lets]):
            live += right if mentions(live, name) else ""
        extra: list[str] = []
        for t in inputs:
            if not mentions(live, t.name) and t.dtype == "bool":
                extra.append(f"(if {self.writer.read(self.last, t)} then 1 else 0)")
            elif not mentions(live, t.name):
                extra.append(
                    f"T({self.writer.whole(self.last, t)})" if t.dtype != "T" else self.writer.whole(self.last, t)
                )
        for name, kind in self.writer.attrs.items():
            if not mentions(live, name):
                texts = {
                    "int": f"T({name})",
                    "float": f"T({name})",
                    "bool": f"(if {name} then 1 else 2)",
                    "enum": f"(if {name} == B then 1 else 2)",
                }
                extra.append(texts[kind])
        if not extra:
            return
        last = next(line for line in self.lines if line.startswith(f"  output {left.split('[')[0]}:"))
        total = " + ".join(extra)
        if ": bool[" in last:
            value = f"({value} or T(0) + {total} > 0)"
        elif ": float32[" in last:
            value = f"({value} + float32(T(0) + {total}))"
        else:
            value = f"({value} + {total})"
        definitions[-1] = left, value, where


def _declared(d: Dim) -> str:
    return f"{d.text} | 1" if d.broadcast else d.text


def _full(dtype: str) -> str:
    return {"half": "float16"}.get(dtype, dtype)
