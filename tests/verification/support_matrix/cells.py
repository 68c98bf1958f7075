"""Cells of ONNX's operators, from their specs alone: types, ranks 0 to 5, attributes, what is absent, in pairs.

A row of a covering array says of what form a call is; sizes are drawn until the spec takes them.  Rows for which none
are found are kept: whether they have a meaning is for the standard to say.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opgen.diagnostics import DiagnosticError
from opgen.dtypes import DTYPES, lookup
from opgen.graph.ir.bound import bind
from opgen.graph.ir.nodes import op_of
from opgen.spec.call.arguments import CallError
from opgen.spec.generic import Argument, Instance, instance
from opgen.spec.generic.attributes import ANY, is_list
from opgen.spec.generic.samples import LISTS, Sample, canonical
from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s
from tests.verification.support_matrix.covering import covering

RANKS = (0, 1, 2, 3, 4, 5)
SIZES = {"few": (2, 3, 4, 1), "ones": (1, 1, 2, 3), "empty": (0, 2, 3, 1)}
"""What dimensions are drawn from."""
LARGE = 5
"""The rank from which on dimensions are 1 and 2."""
TRIES = 60
"""How often sizes are drawn for a form."""
VALUES = ("signed", "positive", "few")
"""Of what kind elements are; see `tests.verification.support_matrix.nodes`."""
MOST = 160
"""Rows for one op at most."""
EQUATIONS = (
    *("->", "ij->ji", "i->", "ii", "ii->i", "...i->...", "...ij->...ji"),
    *("ij,jk->ik", "ij,jk", "i,i->i", "...i,...i", "...ij,...jk->...ik", "i,j,k->kji"),
)
FLOAT_LISTS = (1.0, 2.0, 0.5, 1.5)


@dataclass(frozen=True)
class Given:
    """An input of a cell; `value` of one that is known before the call runs."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    value: tuple[int | float, ...] | None = None


@dataclass(frozen=True)
class Cell:
    """One call of an operator, as the version `opset` of ONNX has it; `values` says of what kind elements are."""

    op: str
    operator: str
    opset: int
    inputs: tuple[Given | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    values: str = "signed"
    number: int = 0

    def __str__(self) -> str:
        shown = [
            "absent"
            if g is None
            else f"{g.name} {g.dtype}{list(g.shape)}" + ("" if g.value is None else f" = {list(g.value)}")
            for g in self.inputs
        ]
        shown += [f"{name}={value}" for name, value in self.attributes.items()]
        return f"{self.op} ({self.operator}-{self.opset}, {self.values}): {', '.join(shown)} -> {self.outputs}"


def cells(module: m.Module, version: m.Version, newest: int, seed: int, most: int = MOST) -> Iterator[Cell]:
    """The cells of the op of a version, in a fixed order for a seed."""
    choose = random.Random(f"{seed} {version.op}")
    opset = newest if version.last is None else min(version.last, newest)
    generic = next((g for g in module.generics if g.name == version.op), None)
    maker = _Plain(module, module.op(version.op)) if generic is None else _Generic(module, generic)
    for number, row in enumerate(covering(maker.factors(), choose, most)):
        values = str(row.pop("values"))
        sizes = SIZES[str(row.pop("sizes"))]
        inputs, attributes, outputs = maker.call(row, sizes, choose)
        yield Cell(version.op, version.name, opset, inputs, attributes, outputs, values, number)


Made = tuple[tuple[Given | None, ...], dict[str, Any], int]


class _Generic:
    """Calls of an op that leaves its form open."""

    def __init__(self, module: m.Module, op: m.GenericOp) -> None:
        self.module, self.op = module, op

    def factors(self) -> dict[str, Sequence[object]]:
        """What is varied, and its values."""
        found: dict[str, Sequence[object]] = {"rank": RANKS, "sizes": tuple(SIZES), "values": VALUES}
        for item in self.op.decl.items:
            if isinstance(item, s.TypeDecl) and any(_has(i, item.name.name) for i in self.op.inputs):
                found[f"type {item.name.name}"] = tuple(canonical(i.name) for i in item.allowed)
        for decl in self.op.inputs:
            if isinstance(decl, s.SeveralDecl):
                found["several"] = (1, 2, 3)
            elif isinstance(decl, s.TensorDecl | s.StaticDecl) and decl.optional:
                found[f"with {decl.name.name}"] = (True, False)
            if isinstance(decl, s.StaticDecl):
                found[f"list {decl.name.name}"] = tuple(range(len(LISTS) + 3))
        if any(isinstance(o, s.TensorDecl) and o.optional for o in self.op.outputs):
            found["outputs"] = ("all", "needed")
        for attr in self.op.attrs:
            if not attr.counter and not attr.compatibility:
                found[f"attr {attr.name.name}"] = _choices(attr)
        return found

    def call(self, row: Mapping[str, object], sizes: Sequence[int], choose: random.Random) -> Made:
        """The inputs, attributes and number of outputs of a call of this form, of sizes that fit if any are found."""
        sample = self._sample(row)
        given = self._attributes(sample, row)
        sample = replace(sample, attributes=given)
        needed = sum(1 for o in self.op.outputs if isinstance(o, s.SeveralDecl) or not o.optional)
        outputs = max(1, needed) if row.get("outputs") == "needed" else max(1, sample.outputs)
        arguments = self._arguments(sample, row, choose)
        names = [i.name.name for i in self.op.inputs]
        names += names[-1:] * (len(arguments) - len(names))
        attributes = {**sample.given(), **given}
        shapes = _shapes(self.module, self.op.name, arguments, attributes, outputs, sizes, choose)
        inputs: list[Given | None] = []
        for name, argument, shape in zip(names, arguments, shapes, strict=True):
            value = None if argument is None else argument.value
            if value is not None and not isinstance(value, tuple):
                value = (value,)
            inputs.append(None if argument is None else Given(name, argument.dtype, shape, value))
        return tuple(inputs), attributes, outputs

    def _sample(self, row: Mapping[str, object]) -> Sample:
        without = frozenset(n.removeprefix("with ") for n, v in row.items() if n.startswith("with ") and not v)
        types = {n.removeprefix("type "): str(v) for n, v in row.items() if n.startswith("type ")}
        several = int(str(row.get("several", 1)))
        return Sample(self.op, self._free(int(str(row["rank"]))), several=several, types=types, without=without)

    def _free(self, rank: int) -> int:
        """How many dimensions a pack has for the first tensor to be of a rank, or to be of its least."""
        for free in range(rank + 1):
            found = next((a for a in Sample(self.op, free).arguments if a is not None and a.value is None), None)
            if found is None or found.shape_rank >= rank:
                return free
        return rank

    def _attributes(self, sample: Sample, row: Mapping[str, object]) -> dict[str, Any]:
        """The attributes that a row gives; lists have the length that the form asks for."""
        found: dict[str, Any] = {}
        for attr in self.op.attrs:
            value = row.get(f"attr {attr.name.name}")
            if value is None:
                continue
            if attr.type.shape and isinstance(value, tuple):
                if is_list(attr) and attr.type.shape[0] == ANY:
                    found[attr.name.name] = list(LISTS[int(value[0])](sample.rank))
                    continue
                asked = replace(sample, attributes=found).value(attr)
                length = len(asked) if isinstance(asked, list | tuple) else 1
                found[attr.name.name] = [value[k % len(value)] for k in range(length)]
            else:
                found[attr.name.name] = value
        return found

    def _arguments(self, sample: Sample, row: Mapping[str, object], choose: random.Random) -> list[Argument | None]:
        found = sample.arguments
        first = next((at for at, a in enumerate(found) if a is not None and a.value is None), None)
        if first is not None and sample.rank == 0:  # beyond what the form of the least rank has, as a mistake
            least = found[first]
            rank = min(int(str(row["rank"])), 0 if least is None else least.shape_rank)
            found[first] = None if least is None else replace(least, shape_rank=rank)
        for at, decl in enumerate(self.op.inputs):
            argument = found[at]
            if not isinstance(decl, s.StaticDecl) or argument is None:
                if argument is not None and argument.sizes:
                    known = choose.choice((1, 1, 2, 3))
                    found[at] = replace(argument, sizes=tuple(None if k is None else known for k in argument.sizes))
                continue
            which = int(str(row[f"list {decl.name.name}"]))
            dtype = canonical(decl.dtype.name)
            numbers: tuple[int | float, ...] = _list(which, sample.rank)
            if DTYPES[dtype].is_float:
                numbers = tuple(FLOAT_LISTS[(k + which) % len(FLOAT_LISTS)] for k in range(len(numbers)))
            value: Any = (numbers[0] if numbers else which) if decl.scalar else numbers
            found[at] = replace(argument, dtype=dtype, value=value)
        return self._lowered(sample, found)

    def _lowered(self, sample: Sample, arguments: list[Argument | None]) -> list[Argument | None]:
        """Where a size says how many dimensions a pack of an argument has, arguments behind it of a rank that fits."""
        counted = next((at for at, a in enumerate(arguments) if a is not None and any(a.sizes)), None)
        known = 0 if counted is None else max(k or 0 for k in getattr(arguments[counted], "sizes", ()))
        if counted is None or not known or self._fits(sample, arguments):
            return arguments
        lower = [
            a
            if a is None or at <= counted or a.value is not None or a.shape_rank < known
            else replace(a, shape_rank=a.shape_rank - known)
            for at, a in enumerate(arguments)
        ]
        return lower if self._fits(sample, lower) else arguments

    def _fits(self, sample: Sample, arguments: list[Argument | None]) -> bool:
        try:
            instance(self.module, self.op.name, arguments, {**sample.given(), **sample.attributes}, sample.outputs)
        except (CallError, DiagnosticError):
            return False
        return True


class _Plain:
    """Calls of an op of fixed ranks."""

    def __init__(self, module: m.Module, op: m.OpSpec) -> None:
        self.module, self.op = module, op

    def factors(self) -> dict[str, Sequence[object]]:
        """What is varied, and its values."""
        found: dict[str, Sequence[object]] = {"rank": RANKS, "sizes": tuple(SIZES), "values": VALUES}
        for variable in self.op.type_variables:
            found[f"type {variable.name}"] = tuple(t.name for t in variable.allowed)
        for attr in self.op.attrs:
            values: Sequence[object] = attr.values
            if attr.kind == "bool":
                values = (True, False)
            elif not attr.values:
                values = _numbers(attr.kind, attr.minimum, attr.maximum)
            if attr.shape:
                values = [[value] * attr.shape[0] for value in values]
            if attr.has_default and attr.kind != "bool":
                values = (None, *values)
            found[f"attr {attr.name}"] = values
        return found

    def call(self, row: Mapping[str, object], sizes: Sequence[int], choose: random.Random) -> Made:
        """As `_Generic.call`; ranks other than the op's are given to its first input, one time in three."""
        types = {n.removeprefix("type "): str(v) for n, v in row.items() if n.startswith("type ")}
        arguments: list[Argument | None] = []
        for tensor in self.op.tensors:
            rank = int(str(row["rank"])) if not arguments and choose.random() < 0.3 else tensor.rank
            dtype = lookup(types.get(tensor.dtype, tensor.dtype))
            arguments.append(Argument("float32" if dtype is None else dtype.name, rank))
        attributes = {n.removeprefix("attr "): v for n, v in row.items() if n.startswith("attr ") and v is not None}
        shapes = _shapes(self.module, self.op.name, arguments, attributes, None, sizes, choose)
        inputs = tuple(
            None if a is None else Given(t.name, a.dtype, shape)
            for t, a, shape in zip(self.op.tensors, arguments, shapes, strict=True)
        )
        return inputs, attributes, len(self.op.outputs)


def _has(decl: s.TensorDecl | s.SeveralDecl | s.StaticDecl | s.SizesDecl, variable: str) -> bool:
    return isinstance(decl, s.TensorDecl | s.SeveralDecl) and decl.dtype.name == variable


def _choices(attr: s.AttrDecl) -> Sequence[object]:
    """The values of an attribute that are tried; None leaves it out, a tuple is repeated to the length of a list."""
    kind = attr.type.kind.name
    if kind == "equation":
        return EQUATIONS
    default: Sequence[object] = () if attr.default is None else (None,)
    if kind == "type" or attr.type.words:
        words = tuple(w.name.name for w in attr.type.words)
        return (*default, *(canonical(w) for w in words)) if kind == "type" else (*default, *words)
    if kind == "bool":
        return (True, False)
    if attr.type.shape and is_list(attr) and attr.type.shape[0] == ANY:
        return (*default, *((k,) for k in range(len(LISTS))))
    low = None if attr.minimum is None else float(attr.minimum.text)
    high = None if attr.maximum is None else float(attr.maximum.text)
    numbers = _numbers(kind, low, high)
    if attr.type.shape:
        return (*default, (numbers[0],), tuple(numbers[:2]), tuple(numbers[1:3]))
    return (*default, *numbers)


def _numbers(kind: str, low: float | None, high: float | None) -> Sequence[int | float]:
    """A few numbers within bounds."""
    tried: Sequence[int | float] = (1.0, 0.5, -1.5, 0.0) if kind == "float" else (1, 2, 3, 0, -1, -2)
    fitting = [v for v in tried if (low is None or v >= low) and (high is None or v <= high)]
    least = low or 0.0
    return fitting or [least if kind == "float" else int(least)]


def _list(which: int, rank: int) -> tuple[int, ...]:
    """A value of a static input."""
    if which < len(LISTS):
        return tuple(LISTS[which](rank))
    return ((-1,), tuple(range(rank))[::-1], (2, 3, 1, 2, 1)[:rank])[which - len(LISTS)]


def _shapes(
    module: m.Module,
    name: str,
    arguments: Sequence[Argument | None],
    attributes: Mapping[str, Any],
    outputs: int | None,
    sizes: Sequence[int],
    choose: random.Random,
) -> list[tuple[int, ...]]:
    """Shapes of all arguments that the op takes; any, if none are found."""
    shapes = [_any(a, sizes, choose) for a in arguments]
    try:
        made = instance(module, name, arguments, attributes, outputs)
    except (CallError, DiagnosticError):
        return shapes
    op = op_of(m.Module("cell", (made.op,), made.functions), made.op)
    for attempt in range(TRIES):
        drawn = _drawn(made, arguments, sizes if attempt < TRIES // 2 else (1, 2, 3, 4, 6), choose)
        kinds = [(DTYPES[made.types.get(t.dtype, t.dtype)], drawn[p]) for t, p in _tensors(made)]
        found = [drawn.get(at, shape) for at, shape in enumerate(shapes)]
        try:
            bind(op, tuple(made.types.items()), tuple(made.attributes.items()), kinds)
        except CallError:
            continue
        return found
    return found


def _tensors(made: Instance) -> list[tuple[m.Tensor, int]]:
    """The tensors of a plain op, and which argument each is."""
    positions = made.inputs or tuple(range(len(made.op.tensors)))
    return list(zip(made.op.tensors, positions, strict=True))


def _drawn(
    made: Instance, arguments: Sequence[Argument | None], sizes: Sequence[int], choose: random.Random
) -> dict[int, tuple[int, ...]]:
    """A shape for each argument that is a tensor, by symbols."""
    rank = max((t.rank for t in made.op.tensors), default=0)
    if rank >= LARGE:
        sizes = (1, 2, 2)
    symbols: dict[str | int, int] = {}
    for tensor, at in _tensors(made):
        known = getattr(arguments[at], "sizes", ())
        for dim, size in zip(tensor.dims, known, strict=False):
            if size is not None and len(dim.factors) == 1:
                symbols[dim.factors[0]] = size
    found: dict[int, tuple[int, ...]] = {}
    for tensor, at in _tensors(made):
        shape = []
        for dim in tensor.dims:
            size = 1
            for factor in dim.factors:
                size *= factor if isinstance(factor, int) else symbols.setdefault(factor, choose.choice(sizes))
            shape.append(1 if dim.broadcast and choose.random() < 0.3 else size)
        found[at] = tuple(shape)
    return found


def _any(argument: Argument | None, sizes: Sequence[int], choose: random.Random) -> tuple[int, ...]:
    if argument is None:
        return ()
    if isinstance(argument.value, tuple):
        return (len(argument.value),)
    return tuple(choose.choice(sizes) for _ in range(argument.shape_rank)) if argument.value is None else ()
