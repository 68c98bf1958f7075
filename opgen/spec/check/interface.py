"""Interface of an op: its names, types, inputs, attributes and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from opgen.diagnostics import Span
from opgen.dtypes import ALIASES, DTYPES, lookup
from opgen.spec.check.attributes import build_attrs, layout_letters
from opgen.spec.model import model as m
from opgen.spec.resolve.dimensions import check_determined, input_dimension, output_dimension, symbols_of
from opgen.spec.resolve.names import check_argument, check_name, check_result
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.resolve.scope import Readable, Scope
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report


@dataclass
class Interface:
    """Declarations of an op besides its mathematics; `spans` has the span of every declared name."""

    type_variables: list[m.TypeVariable] = field(default_factory=list)
    inputs: list[m.Tensor | m.Sizes] = field(default_factory=list)
    attrs: list[m.Attr] = field(default_factory=list)
    outputs: list[m.Tensor] = field(default_factory=list)
    spans: dict[str, Span] = field(default_factory=dict)


_RESULTS = ("output", "outputs")


def declare(report: Report, items: Sequence[s.Item]) -> dict[str, Span]:
    """Return every declared name with its span; duplicates, and names reserved in a language, are noted."""
    spans: dict[str, Span] = {}
    arguments = set(_arguments(items))
    results = {i.name for i in items if isinstance(i, s.TensorDecl | s.SeveralDecl) and i.keyword in _RESULTS}
    packs = {n for i in items if isinstance(i, s.PackLet) for n in i.names}  # code has their elements' names only
    packs |= {i.target for i in items if isinstance(i, s.DefinitionDecl) and i.pack}
    for ident in _declared(items):
        if ident.name in spans:
            first = spans[ident.name]
            help = f"the first is at {first.source.name}:{first.line}:{first.column}"
            report.add("S011", f"'{ident.name}' is declared twice", ident.span, help)
        else:
            spans[ident.name] = ident.span
            if ident in arguments:
                check_argument(report, ident.name, ident.span)
            elif ident in results:
                check_result(report, ident.name, ident.span)
            elif ident not in packs:
                check_name(report, ident.name, ident.span)
    return spans


def _arguments(items: Iterable[s.Item]) -> Iterable[s.Ident]:
    """Yield the names that a caller writes: inputs, attributes and their aliases."""
    for item in items:
        if isinstance(item, s.SizesDecl | s.AttrDecl | s.StaticDecl) or (
            isinstance(item, s.TensorDecl | s.InheritedDecl | s.SeveralDecl) and item.keyword not in _RESULTS
        ):
            yield item.name
        if isinstance(item, s.AttrDecl) and item.alias is not None:
            yield item.alias


def _declared(items: Iterable[s.Item]) -> Iterable[s.Ident]:
    for item in items:
        if isinstance(item, s.TypeDecl | s.TensorDecl | s.SizesDecl | s.AttrDecl | s.SeveralDecl | s.StaticDecl) or (
            isinstance(item, s.InheritedDecl) and item.keyword == "input"
        ):
            yield item.name
        if isinstance(item, s.AttrDecl) and item.alias is not None:
            yield item.alias
        if isinstance(item, s.LetDecl | s.PackLet | s.OpCall):
            yield from item.names
        if isinstance(item, s.DefinitionDecl) and item.let:
            yield item.target
        if isinstance(item, s.ConstantDecl):
            yield item.name


class InterfaceBuilder:
    """Builder of one op's interface in its scope: types, attributes, inputs, and outputs last."""

    def __init__(self, scope: Scope, items: Sequence[s.Item]) -> None:
        self.scope = scope
        self.report = scope.report
        self.items = items
        self.built = Interface(spans=declare(scope.report, items))

    def build_inputs(self) -> None:
        """Build everything that the caller gives."""
        scope, built = self.scope, self.built
        for item in self.items:
            if isinstance(item, s.TypeDecl):
                self._type(item)
        built.attrs = build_attrs(self.report, [i for i in self.items if isinstance(i, s.AttrDecl)])
        for attr in built.attrs:
            if built.spans.get(attr.name) is not None:
                scope.attrs[attr.name] = attr
            if attr.kind == "enum":
                scope.enums[attr.name] = attr.values
        scope.poisoned |= {i.name.name for i in self.items if isinstance(i, s.AttrDecl)} - set(scope.attrs)
        lets = {n.name: n.span for i in self.items if isinstance(i, s.LetDecl) for n in i.names}
        scope.later.update(lets)
        symbols = self._symbols(lets)
        for item in self.items:
            if isinstance(item, s.TensorDecl) and item.keyword == "input":
                self._input(item)
            elif isinstance(item, s.SizesDecl):
                self._sizes(item, symbols)
        scope.symbols.update(symbols)
        scope.dims.update(symbols)
        broken = [i for i in self.items if isinstance(i, s.TensorDecl | s.SizesDecl) and i.name.name in scope.poisoned]
        if not broken:
            check_determined(self.report, built.inputs, symbols, lets)
            self._check_types_determined()

    def _type(self, item: s.TypeDecl) -> None:
        allowed = []
        for ident in item.allowed:
            dtype = lookup(ident.name)
            if dtype is None:
                self.report.unknown("type", ident.name, ident.span, [*DTYPES, *ALIASES])
            elif dtype in allowed:
                self.report.add("S011", f"the type {dtype} is listed twice", ident.span)
            else:
                allowed.append(dtype)
        if item.name.name not in self.scope.type_variables:
            variable = m.TypeVariable(item.name.name, tuple(allowed))
            self.scope.type_variables[item.name.name] = variable
            self.built.type_variables.append(variable)

    def _check_types_determined(self) -> None:
        """Note every type variable that no input has: no call would determine its type."""
        bound = {t.dtype for t in self.built.inputs if isinstance(t, m.Tensor)}
        for item in self.items:
            if isinstance(item, s.TypeDecl) and item.name.name not in bound:
                help = "give an input this type, or write the type itself, such as float32"
                self.report.add("S040", f"no input has the type '{item.name.name}'", item.name.span, help)

    def _dtype(self, ident: s.Ident) -> str | None:
        if ident.name in self.scope.type_variables:
            return ident.name
        dtype = lookup(ident.name)
        if dtype is None:
            self.report.unknown("type", ident.name, ident.span, [*self.scope.type_variables, *DTYPES, *ALIASES])
        return None if dtype is None else dtype.name

    def _symbols(self, lets: dict[str, Span]) -> dict[str, Span]:
        """Return the dimensions that inputs name: every name in them that is not a `let`."""
        symbols: dict[str, Span] = {}
        declared = self.built.spans
        dims = [d for i in self.items if isinstance(i, s.TensorDecl) and i.keyword == "input" for d in i.dims]
        dims += [d for i in self.items if isinstance(i, s.SizesDecl) for f in i.forms for d in f.dims]
        for dim in dims:
            for named in symbols_of(dim.size):
                name = named.name
                if name in lets or name in symbols:
                    continue
                if name in declared:
                    self.report.add("S011", f"the dimension '{name}' has the name of something else", named.span)
                    continue
                check_name(self.report, name, named.span)
                symbols[name] = named.span
        return symbols

    def _layout(self, layout: s.Ident | None, rank: int) -> str | None:
        if layout is None:
            return None
        letters = layout_letters(self.report, layout, self.scope.attrs)
        if letters is None:
            return None
        if len(letters) != rank:
            self.report.add("S032", f"'{layout.name}' orders {len(letters)} dimensions, here are {rank}", layout.span)
            return None
        return layout.name

    def _input(self, item: s.TensorDecl) -> None:
        name = item.name.name
        dims = [input_dimension(self.report, d) for d in item.dims]
        dtype = self._dtype(item.dtype)
        layout = self._layout(item.layout, len(item.dims))
        known = tuple(d for d in dims if d is not None)
        if len(known) < len(dims) or dtype is None:
            self.scope.poisoned.add(name)
            return
        tensor = m.Tensor(name, dtype, known, layout, _doc(item.doc), item.shape_only, item.span)
        self.built.inputs.append(tensor)
        self.scope.tensors.setdefault(name, Readable(name, dtype, tuple(d.size for d in known), item.shape_only))

    def _sizes(self, item: s.SizesDecl, symbols: dict[str, Span]) -> None:
        forms: list[tuple[m.Dimension, ...]] = []
        layouts: list[str | None] = []
        bindings: list[tuple[tuple[str, int], ...]] = []
        for form in item.forms:
            dims = [input_dimension(self.report, d) for d in form.dims]
            known = tuple(d for d in dims if d is not None)
            if len(known) < len(dims) or any(d.broadcast for d in known):
                self.scope.poisoned.add(item.name.name)
            if any(len(f) == len(known) for f in forms):
                self.report.add(
                    "S041", "two forms of sizes have the same length", form.span, "forms are told apart by length"
                )
            forms.append(known)
            layouts.append(self._layout(form.layout, len(form.dims)))
            for b in form.bindings:
                if b.name.name not in symbols:
                    self.report.unknown("dimension", b.name.name, b.name.span, symbols)
            bindings.append(tuple((b.name.name, int(b.value[:9])) for b in form.bindings))
        if item.name.name not in self.scope.poisoned:
            kept = tuple(bindings) if any(bindings) else ()
            sizes = m.Sizes(item.name.name, tuple(forms), tuple(layouts), _doc(item.doc), item.span, kept)
            self.built.inputs.append(sizes)

    def build_outputs(self) -> None:
        """Build the outputs, whose dimensions may use every `let`."""
        resolver = Resolver(self.scope)
        for item in self.items:
            if not isinstance(item, s.TensorDecl) or item.keyword != "output":
                continue
            name = item.name.name
            if item.shape_only:
                self.report.add("S013", "an output is not shape_only", item.span)
            dims = [output_dimension(resolver, d) for d in item.dims]
            dtype = self._dtype(item.dtype)
            layout = self._layout(item.layout, len(item.dims))
            known = tuple(d for d in dims if d is not None)
            if len(known) < len(dims) or dtype is None:
                self.scope.poisoned.add(name)
                continue
            self.built.outputs.append(m.Tensor(name, dtype, known, layout, _doc(item.doc), False, item.span))
            self.scope.tensors.setdefault(name, Readable(name, dtype, None, False, True))


def _doc(doc: s.Doc | None) -> str:
    return "" if doc is None else doc.value
