"""Sample forms for checking a generic op: ranks 0 to 3, with and without optional inputs, one or several tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from opgen.dtypes import DTYPES, lookup
from opgen.spec.generic.attributes import ANY, is_list
from opgen.spec.generic.equation import KIND
from opgen.spec.generic.form import Argument
from opgen.spec.generic.sizes import known_sizes
from opgen.spec.generic.trees import everything_in
from opgen.spec.generic.values import binary, integer, known_integer
from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural

RANKS = (0, 1, 2, 3)
"""Ranks of the packs that nothing else determines."""


@dataclass(frozen=True)
class Sample:
    """A call that may fit an op; `optional` includes the optional inputs except those in `without`."""

    op: m.GenericOp
    rank: int
    optional: bool = True
    several: int = 1
    listed: int = 0
    types: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, object] = field(default_factory=dict)
    without: frozenset[str] = frozenset()

    @property
    def outputs(self) -> int:
        """Return the number of results."""
        found = 0
        for output in self.op.outputs:
            if isinstance(output, s.SeveralDecl):
                found += self.several
            elif self.optional or not output.optional:
                found += 1
        return found

    @property
    def arguments(self) -> list[Argument | None]:
        """Return the arguments, in order."""
        found: list[Argument | None] = []
        stretched = 0
        for decl in self.op.inputs:
            if isinstance(decl, s.SizesDecl):
                found.append(Argument("int32", 1, ()))
            elif isinstance(decl, s.SeveralDecl):
                found += [Argument(self._dtype(decl.dtype), self._rank(decl.dims, 0))] * self.several
            elif decl.optional and (not self.optional or decl.name.name in self.without):
                found.append(None)
            elif isinstance(decl, s.StaticDecl):
                values = LISTS[self.listed](self.rank)
                scalar = values[0] if values else 0
                found.append(Argument("int64", 0 if decl.scalar else 1, scalar if decl.scalar else values))
            else:
                rank = self._rank(decl.dims, stretched)
                sizes = known_sizes(self.op, len(found), (1,) * rank)
                found.append(Argument(self._dtype(decl.dtype), rank, sizes=sizes))
                stretched += any(d.broadcast is not None for d in decl.dims)
        return found

    def given(self) -> dict[str, object]:
        """Return the attributes without a default, and those that this sample varies."""
        found: dict[str, object] = {}
        for attr in self.op.attrs:
            name = attr.name.name
            if attr.default is None or name in self.attributes:
                found[name] = self.attributes.get(name, self.value(attr))
        return found

    def __str__(self) -> str:
        shown = []
        arguments = self.arguments
        for at, decl in enumerate(self.op.inputs):
            argument = arguments[at]
            if isinstance(decl, s.SeveralDecl):
                shown.append(f"{decl.name.name} are {plural(self.several, 'tensor')}")
            elif argument is None:
                shown.append(f"{decl.name.name} is absent")
            elif isinstance(decl, s.StaticDecl):
                value = argument.value
                shown.append(f"{decl.name.name} is {list(value) if isinstance(value, tuple) else value}")
            else:
                shown.append(f"{decl.name.name} has rank {argument.shape_rank}")
        shown += [f"{n} is {str(v).lower() if isinstance(v, bool) else v}" for n, v in self.given().items()]
        return f"when {', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else f"when {''.join(shown)}"

    # Values -----------------------------------------------------------------------------------------

    def _dtype(self, ident: s.Ident) -> str:
        if ident.name in self.types:
            return self.types[ident.name]
        for item in self.op.decl.items:
            if isinstance(item, s.TypeDecl) and item.name.name == ident.name and item.allowed:
                return canonical(item.allowed[0].name)
        return canonical(ident.name)

    def _rank(self, dims: Sequence[s.Dim], fewer: int) -> int:
        """Return the rank of a tensor; every second one is one lower in stretching packs."""
        found = 0
        for dim in dims:
            if not isinstance(dim.size, s.Expansion):
                found += 1
                continue
            count = self._length(dim.size.pattern)
            found += max(0, count - fewer % 2) if dim.broadcast is not None else count
        return found

    def _length(self, pattern: s.Expression) -> int:
        match pattern:
            case s.Listed():
                return sum(self._length(i.pattern) if isinstance(i, s.Expansion) else 1 for i in pattern.items)
            case s.Choice():
                return self._length(pattern.if_true if self._holds(pattern.condition) else pattern.if_false)
        rules = [r for i in self.op.decl.items if isinstance(i, s.RankDecl) for r in i.rules]
        for node in everything_in(pattern):
            for rule in rules:
                if isinstance(node, s.Named) and rule.pack.name == node.name:
                    return 0 if rule.most is None else min(self.rank, int(rule.most))
        return self.rank

    def _holds(self, condition: s.Expression) -> bool:
        """Return False if a condition compares an attribute with another value than this sample's."""
        match condition:
            case s.Binary(_, "==", s.Named(_, name), right) if name in self.attributes:
                return known_integer(right) in (None, self.attributes[name])
        return True

    def value(self, attr: s.AttrDecl) -> object:
        """Return an allowed value of an attribute."""
        kind = attr.type.kind.name
        least = 0 if attr.minimum is None else int(float(attr.minimum.text))
        one: object = {"bool": False, "float": float(least)}.get(kind, max(least, 0))
        if attr.type.words:
            one = attr.type.words[0].name.name
        if kind == KIND:
            return ",".join("i" * self.several) + "->"
        if not attr.type.shape:
            return one
        if is_list(attr) and attr.type.shape[0] == ANY:
            return _items(attr, LISTS[self.listed](self.rank))
        count = 1
        for length in attr.type.shape:
            count *= int(length) if isinstance(length, str) else self._counted(length)
        return [one] * count

    def _counted(self, tree: s.Expression) -> int:
        """Return a length, with this sample's rank for packs."""
        if isinstance(tree, s.Binary):
            left, right = self._counted(tree.left), self._counted(tree.right)
            found = known_integer(binary(tree.op, integer(left, tree.span), integer(right, tree.span), tree.span))
            return 0 if found is None else found
        if isinstance(tree, s.Call) and tree.arguments:
            for decl in self.op.inputs:
                named = tree.arguments[0]
                if isinstance(decl, s.TensorDecl) and isinstance(named, s.Named) and named.name == decl.name.name:
                    return self._rank(decl.dims, 0)
            return self._length(tree.arguments[0])
        return known_integer(tree) or 0


LISTS = (
    lambda rank: (0,),
    lambda rank: tuple(range(rank)),
    lambda rank: (1,) * rank,
    lambda rank: (1,) * (2 * rank),
    lambda rank: (2,) * rank,
    lambda rank: (2, -1),
    lambda rank: (),
)
"""Values of static inputs and of lists of any length, for a rank."""


def _items(attr: s.AttrDecl, numbers: Sequence[int]) -> list[object]:
    """Return a list for an attribute: numbers within its bounds, or as many of its words."""
    words = [w.name.name for w in attr.type.words]
    if words:
        return [words[n % len(words)] for n in numbers]
    if attr.type.kind.name == "bool":
        return [n > 0 for n in numbers]
    least = min(numbers, default=0) if attr.minimum is None else float(attr.minimum.text)
    most = max(numbers, default=0) if attr.maximum is None else float(attr.maximum.text)
    return [type(n)(min(max(n, least), most)) for n in numbers]


def canonical(name: str) -> str:
    """Return the canonical name of a type."""
    dtype = lookup(name)
    return name if dtype is None else dtype.name


def samples(op: m.GenericOp) -> Iterator[Sample]:
    """Yield the first calls to try; some of them do not fit an op."""
    several = any(isinstance(t, s.SeveralDecl) for t in (*op.inputs, *op.outputs))
    optional = any(getattr(t, "optional", False) for t in (*op.inputs, *op.outputs))
    listed = any(isinstance(i, s.StaticDecl) for i in op.inputs) or any(
        a.default is None and is_list(a) and a.type.shape[0] == ANY for a in op.attrs
    )
    for rank in RANKS:
        for there in (True, False) if optional else (True,):
            for count in (1, 2) if several else (1,):
                for at in range(len(LISTS)) if listed and (there or not _all_optional(op)) else (0,):
                    yield Sample(op, rank, there, count, at)


def some_left_out(op: m.GenericOp) -> Iterator[Sample]:
    """Yield calls that omit one or two optional inputs, for ops that refuse calls with all of them."""
    names = [i.name.name for i in op.inputs if isinstance(i, s.TensorDecl | s.StaticDecl) and i.optional]
    for few in (*combinations(names, 1), *combinations(names, 2)):
        for rank in RANKS[1:3]:
            yield Sample(op, rank, without=frozenset(few))


def _all_optional(op: m.GenericOp) -> bool:
    return all(i.optional for i in op.inputs if isinstance(i, s.StaticDecl))


def variations(sample: Sample, demanded: set[str]) -> Iterator[Sample]:
    """Yield the call with other values that its structure depends on: lists, alone and together, and attributes."""
    lists = [a for a in sample.op.attrs if is_list(a) and a.type.shape[0] == ANY]
    if len(lists) > 1:  # they may need equal lengths
        for make in LISTS:
            together = {a.name.name: _items(a, make(sample.rank)) for a in lists}
            yield replace(sample, attributes={**sample.attributes, **together})
    for attr in sample.op.attrs:
        name = attr.name.name
        others: list[object] = []
        if attr in lists:
            others = [_items(attr, make(sample.rank)) for make in LISTS]
        elif isinstance(attr.default, s.ListValue) and not attr.default.items:
            others = [sample.value(attr)]
        elif name not in demanded or attr.type.shape:
            pass
        elif attr.type.words:
            others = [w.name.name for w in attr.type.words]
        elif attr.type.kind.name == "bool":
            others = [True, False]
        elif attr.type.kind.name in ("int", "int64"):
            others = [0, 1, -1]
        for value in others:
            yield replace(sample, attributes={**sample.attributes, name: value})


def types(sample: Sample, asked: set[str]) -> Iterator[Sample]:
    """Yield the call with one type of each kind for the type variables whose types were tested."""
    for item in sample.op.decl.items:
        if isinstance(item, s.TypeDecl) and item.name.name in asked:
            kinds = {DTYPES[n].kind: n for n in reversed([canonical(i.name) for i in item.allowed]) if n in DTYPES}
            for dtype in kinds.values():
                yield replace(sample, types={**sample.types, item.name.name: dtype})
