"""Gradient ops: their own interface, and everything inherited from the forward op.

A gradient inherits types, attributes, named integers and requirements.  Unless it declares a set of types, it inherits
only the floating ones.  Its inputs are inputs of the forward op, tensors like its outputs, and vectors of sizes like
its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from opgen.diagnostics import Span
from opgen.dtypes import lookup
from opgen.spec.check.attributes import layout_letters
from opgen.spec.check.interface import declare
from opgen.spec.check.signature import default_signature, signature_of, signatures_of
from opgen.spec.check.values import example_of
from opgen.spec.model import model as m
from opgen.spec.resolve.dimensions import check_determined, input_dimension, symbols_of
from opgen.spec.resolve.measure import fits
from opgen.spec.resolve.names import check_function_name, check_name, snake_case
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report

_OWN = (
    s.SignatureDecl, s.TypeDecl, s.InheritedDecl, s.SizesDecl, s.ExampleDecl, s.GradientDecl, s.AlgorithmDecl,
    s.ConstantDecl,
)  # fmt: skip


def gradient_of(decl: s.OpDecl) -> s.GradientDecl | None:
    """Return an op's gradient declaration, or None if it is not a gradient."""
    return next((i for i in decl.items if isinstance(i, s.GradientDecl)), None)


def check_inheritance(report: Report, decl: s.OpDecl | s.FragmentDecl) -> None:
    """Note inherited inputs and outputs in an op or fragment without a forward op."""
    for item in decl.items:
        if isinstance(item, s.AlgorithmDecl) and isinstance(decl, s.FragmentDecl):
            report.add("S063", "a fragment has no algorithms: write this in the op", item.span)
        if isinstance(item, s.GradientDecl):
            report.add("S060", "a fragment is no gradient: write this in the op", item.span)
        if isinstance(item, s.InheritedDecl):
            message = f"'{item.name.name}' has no type: only the gradient of an op inherits it"
            report.add("S060", message, item.name.span, f"write {item.keyword} {item.name.name}: T[...]")
        for form in item.forms if isinstance(item, s.SizesDecl) else ():
            if form.like is not None:
                message = f"only the gradient of an op has sizes like '{form.like.name}'"
                report.add("S060", message, form.like.span, "write the dimensions in brackets")


class GradientChecker:
    """Checker of a gradient op; `check` returns its model, or None with its mistakes noted."""

    def __init__(self, report: Report, decl: s.OpDecl, gradient: s.GradientDecl, forward: m.OpSpec) -> None:
        self.report = report
        self._before = len(report)
        self.decl = decl
        self.gradient = gradient
        self.forward = forward
        self.layouts = {a.name: a for a in forward.attrs}
        self.symbols = {f for i in forward.inputs for d in _dims(i) for f in d.factors if isinstance(f, str)}
        self.cotangents: dict[str, str] = {}
        self.stand_ins: dict[str, str] = {}

    def check(self) -> m.OpSpec | None:
        if not fits(self.report, self.decl, self.decl.items):
            return None
        check_name(self.report, self.decl.name.name, self.decl.name.span)
        check_function_name(self.report, self.decl.name.name, self.decl.name.span)
        self._only_own()
        self._no_clashes()
        wrt = self._wrt()
        types = self._types()
        inputs = tuple(self._inputs())
        outputs = tuple(self._outputs(wrt, inputs))
        self._complete(wrt)
        if len(self.report) > self._before:
            return None
        lets = [n for c in self.forward.checks if isinstance(c, m.ShapeLet) for n in c.names]
        check_determined(self.report, inputs, dict.fromkeys(sorted(self.symbols), self.gradient.span), lets)
        self._types_determined(types, inputs)
        spec = self._spec(types, inputs, outputs)
        return spec if len(self.report) == self._before else None

    def _spec(
        self, types: tuple[m.TypeVariable, ...], inputs: tuple[m.Tensor | m.Sizes, ...], outputs: tuple[m.Tensor, ...]
    ) -> m.OpSpec:
        gradient = self.gradient
        order = tuple(self.cotangents[o.name] for o in self.forward.outputs)
        return m.OpSpec(
            name=self.decl.name.name,
            function_name=snake_case(self.decl.name.name),
            signature=self._signature(inputs),
            type_variables=types,
            inputs=inputs,
            attrs=self._attrs(inputs),
            outputs=outputs,
            checks=tuple(self._checks({i.name for i in inputs}, inputs[0].name)),
            definitions=(),
            gradient=m.Gradient(gradient.op.name, gradient.wrt.name, gradient.span, order),
            examples=tuple(example_of(self.report, i) for i in self.decl.items if isinstance(i, s.ExampleDecl)),
            specializations=self.forward.specializations,
            doc="" if self.decl.doc is None else self.decl.doc.value,
            span=self.decl.span,
            signatures=signatures_of(self.report, self.decl.items, inputs, self._attrs(inputs)),
        )

    def _signature(self, inputs: tuple[m.Tensor | m.Sizes, ...]) -> tuple[str, ...]:
        """Return the written signature; else the gradient's inputs, then the forward op's arguments that follow."""
        if any(isinstance(i, s.SignatureDecl) for i in self.decl.items):
            return signature_of(self.report, self.decl.items, inputs, self.forward.attrs)
        given = {i.name for i in self.forward.inputs}
        rest = tuple(n for n in self.forward.signature if n not in given)
        told = [a.name for a in self._attrs(inputs) if not a.counter and self.forward.attr(a.name).counter]
        rest = (*told, *(n for n in rest if n not in told))
        return (*(i.name for i in inputs), *(rest or default_signature((), self.forward.attrs)))

    def _attrs(self, inputs: tuple[m.Tensor | m.Sizes, ...]) -> tuple[m.Attr, ...]:
        """Return the forward op's attributes; a counted size must be given unless all inputs are inherited."""
        taken = {(i.name, i.shape_only) for i in inputs if isinstance(i, m.Tensor)}
        same = all((t.name, t.shape_only) in taken for t in self.forward.tensors)
        return tuple(replace(a, counter=a.counter if same else "") for a in self.forward.attrs)

    # Allowed declarations -------------------------------------------------------------------------

    def _only_own(self) -> None:
        for item in self.decl.items:
            if isinstance(item, s.DefinitionDecl):
                self.report.add("S060", "a gradient has no definitions: they are derived", item.target.span)
            elif isinstance(item, s.TensorDecl):
                like = " like ..." if item.keyword == "output" else ""
                message = f"the type and dimensions of '{item.name.name}' follow from '{self.forward.name}'"
                self.report.add("S060", message, item.dtype.span, f"write {item.keyword} {item.name.name}{like}")
            elif not isinstance(item, _OWN):
                what = "attributes" if isinstance(item, s.AttrDecl | s.UseDecl) else "named integers and requirements"
                message = f"a gradient has the {what} of its op"
                self.report.add("S060", message, item.span, "leave this out")
        for extra in [i for i in self.decl.items if isinstance(i, s.GradientDecl)][1:]:
            self.report.add("S060", "an op is one gradient", extra.span)

    def _no_clashes(self) -> None:
        """Note names that are declared twice or inherited."""
        forward = self.forward
        taken = {a.name for a in forward.attrs} | {a.alias for a in forward.attrs} | self.symbols
        taken |= {n for c in forward.checks if isinstance(c, m.ShapeLet) for n in c.names}
        types = {v.name for v in forward.type_variables}
        for name, span in declare(self.report, self.decl.items).items():
            if name in taken and name not in types:
                self.report.add("S011", f"'{name}' is the name of something inherited from '{forward.name}'", span)

    def _wrt(self) -> m.Tensor | None:
        name = self.gradient.wrt.name
        found = next((t for t in self.forward.tensors if t.name == name), None)
        if found is None:
            names = [t.name for t in self.forward.tensors]
            self.report.unknown(f"input of {self.forward.name}", name, self.gradient.wrt.span, names)
        elif found.shape_only:
            message = f"'{name}' is shape_only: nothing depends on its elements"
            self.report.add("S060", message, self.gradient.wrt.span)
        return found

    # Types ----------------------------------------------------------------------------------------

    def _types(self) -> tuple[m.TypeVariable, ...]:
        decls = {i.name.name: i for i in self.decl.items if isinstance(i, s.TypeDecl)}
        known = [v.name for v in self.forward.type_variables]
        for name, decl in decls.items():
            if name not in known:
                self.report.unknown(f"type of {self.forward.name}", name, decl.name.span, known)
        return tuple(self._type(v, decls.get(v.name)) for v in self.forward.type_variables)

    def _types_determined(self, types: tuple[m.TypeVariable, ...], inputs: tuple[m.Tensor | m.Sizes, ...]) -> None:
        """Note every type variable that no input has: no call would determine its type."""
        bound = {i.dtype for i in inputs if isinstance(i, m.Tensor)}
        for variable in types:
            if variable.name not in bound:
                first = next(t.name for t in self.forward.tensors if t.dtype == variable.name)
                help = f"write input {first} shape_only"
                self.report.add("S040", f"no input has the type '{variable.name}'", self.gradient.span, help)

    def _type(self, variable: m.TypeVariable, decl: s.TypeDecl | None) -> m.TypeVariable:
        if decl is None:
            floats = tuple(t for t in variable.allowed if t.is_float)
            return replace(variable, allowed=floats or variable.allowed)
        allowed = []
        for ident in decl.allowed:
            dtype = lookup(ident.name)
            if dtype is None or dtype not in variable.allowed:
                known = [t.name for t in variable.allowed]
                self.report.unknown(f"{variable.name} of {self.forward.name}", ident.name, ident.span, known)
            elif dtype in allowed:
                self.report.add("S011", f"the type {dtype} is listed twice", ident.span)
            else:
                allowed.append(dtype)
        return m.TypeVariable(variable.name, tuple(allowed))

    # Inputs and outputs ---------------------------------------------------------------------------

    def _inputs(self) -> Iterator[m.Tensor | m.Sizes]:
        for item in self.decl.items:
            found: m.Tensor | m.Sizes | None = None
            if isinstance(item, s.SizesDecl):
                found = self._sizes(item)
            elif isinstance(item, s.InheritedDecl) and item.keyword == "input":
                found = self._own_input(item) if item.like is None else self._cotangent(item, item.like)
            if found is not None:
                yield found

    def _own_input(self, item: s.InheritedDecl) -> m.Tensor | m.Sizes | None:
        """Return an input of the forward op."""
        known = {i.name: i for i in self.forward.inputs}
        found = known.get(item.name.name)
        if found is None:
            help = f"write input {item.name.name} like ... if it is the gradient with respect to an output"
            message = f"'{self.forward.name}' has no input '{item.name.name}'"
            self.report.add("S060", message, item.name.span, help)
            return None
        doc = found.doc if item.doc is None else item.doc.value
        if isinstance(found, m.Sizes):
            return replace(found, doc=doc, span=item.span)
        return replace(found, doc=doc, span=item.span, shape_only=found.shape_only or item.shape_only)

    def _cotangent(self, item: s.InheritedDecl, like: s.Ident) -> m.Tensor | None:
        """Return the input that holds the gradient with respect to an output of the forward op."""
        found = next((o for o in self.forward.outputs if o.name == like.name), None)
        if found is None:
            names = [o.name for o in self.forward.outputs]
            self.report.unknown(f"output of {self.forward.name}", like.name, like.span, names)
            return None
        if item.shape_only:
            self.report.add("S060", f"the gradient depends on the values of '{item.name.name}'", item.span)
        if like.name in self.cotangents:
            message = f"'{self.cotangents[like.name]}' is like '{like.name}' already"
            self.report.add("S060", message, like.span)
        if item.name.name in {i.name for i in self.forward.inputs}:
            message = f"'{item.name.name}' is the name of an input of '{self.forward.name}'"
            self.report.add("S011", message, item.name.span)
        self.cotangents[like.name] = item.name.name
        return replace(found, name=item.name.name, doc=_text(item.doc), span=item.span, follows=True)

    def _outputs(self, wrt: m.Tensor | None, inputs: Sequence[m.Tensor | m.Sizes]) -> Iterator[m.Tensor]:
        decls = [i for i in self.decl.items if isinstance(i, s.InheritedDecl) and i.keyword == "output"]
        for item in decls:
            if item.shape_only:
                self.report.add("S013", "an output is not shape_only", item.span)
            if wrt is None:
                continue
            if item.like is None or item.like.name != wrt.name:
                span = item.span if item.like is None else item.like.span
                message = f"the output of a gradient with respect to '{wrt.name}' is like '{wrt.name}'"
                self.report.add("S060", message, span, f"write output {item.name.name} like {wrt.name}")
                continue
            given = any(isinstance(i, m.Tensor) and i.name == wrt.name for i in inputs)
            if any(d.broadcast for d in wrt.dims) and not given:
                message = f"a dimension of '{wrt.name}' may be 1 or more: only '{wrt.name}' itself tells which"
                self.report.add("S041", message, item.span, f"write input {wrt.name} shape_only")
            yield replace(
                wrt, name=item.name.name, dims=result_dims(wrt), doc=_text(item.doc), shape_only=False, span=item.span,
                follows=False,
            )  # fmt: skip

    def _complete(self, wrt: m.Tensor | None) -> None:
        """Note missing declarations, unless there are other mistakes."""
        if wrt is None or len(self.report) > self._before:
            return
        for output in self.forward.outputs:
            if output.name not in self.cotangents:
                message = f"no input holds the gradient with respect to '{output.name}'"
                self.report.add("S060", message, self.gradient.span, f"write input ... like {output.name}")
        declared = [i for i in self.decl.items if isinstance(i, s.InheritedDecl) and i.keyword == "output"]
        if len(declared) != 1:
            message = f"a gradient with respect to '{wrt.name}' has one output"
            self.report.add("S060", message, self.gradient.span, f"write output ... like {wrt.name}")

    # Sizes ----------------------------------------------------------------------------------------

    def _sizes(self, item: s.SizesDecl) -> m.Sizes | None:
        forms: list[tuple[m.Dimension, ...]] = []
        layouts: list[str | None] = []
        bindings: list[tuple[tuple[str, int], ...]] = []
        for form in item.forms:
            found = self._form(form) if form.like is None else self._like(item, form.like)
            if found is None:
                return None
            if any(len(f) == len(found[0]) for f in forms):
                message, help = "two forms of sizes have the same length", "forms are told apart by length"
                self.report.add("S041", message, form.span, help)
            forms.append(found[0])
            layouts.append(found[1])
            bindings.append(tuple((b.name.name, int(b.value[:9])) for b in form.bindings))
            for b in form.bindings:
                if b.name.name not in self.symbols:
                    self.report.unknown("dimension", b.name.name, b.name.span, self.symbols)
        kept = tuple(bindings) if any(bindings) else ()
        return m.Sizes(item.name.name, tuple(forms), tuple(layouts), _text(item.doc), item.span, kept)

    def _like(self, item: s.SizesDecl, like: s.Ident) -> tuple[tuple[m.Dimension, ...], str | None] | None:
        found = next((t for t in self.forward.tensors if t.name == like.name), None)
        if found is None:
            names = [t.name for t in self.forward.tensors]
            self.report.unknown(f"input of {self.forward.name}", like.name, like.span, names)
            return None
        if any(d.broadcast for d in found.dims):
            message = f"a dimension of '{found.name}' may be 1 or more, which sizes do not tell"
            self.report.add("S041", message, like.span, f"write input {found.name} shape_only")
            return None
        self.stand_ins[found.name] = item.name.name
        return found.dims, found.layout

    def _form(self, form: s.Form) -> tuple[tuple[m.Dimension, ...], str | None] | None:
        dims = [input_dimension(self.report, d) for d in form.dims]
        for tree in form.dims:
            for named in symbols_of(tree.size):
                if named.name not in self.symbols:
                    self.report.unknown(f"dimension of {self.forward.name}", named.name, named.span, self.symbols)
        known = tuple(d for d in dims if d is not None)
        if len(known) < len(dims):
            return None
        for tree, dim in zip(form.dims, known, strict=True):
            if dim.broadcast:
                self.report.add("S041", "sizes do not broadcast", tree.span)
        if form.layout is None:
            return known, None
        letters = layout_letters(self.report, form.layout, self.layouts)
        if letters is not None and len(letters) != len(known):
            message = f"'{form.layout.name}' orders {len(letters)} dimensions, here are {len(known)}"
            self.report.add("S032", message, form.layout.span)
        return known, form.layout.name

    # Requirements ---------------------------------------------------------------------------------

    def _checks(self, inputs: set[str], first: str) -> Iterator[m.ShapeLet | m.Require]:
        """Yield the forward op's requirements; one that blames an absent input blames its substitute instead."""
        attrs = {a.name for a in self.forward.attrs}
        for check in self.forward.checks:
            if isinstance(check, m.Require) and check.argument not in inputs | attrs:
                check = replace(check, argument=self.stand_ins.get(check.argument, first))
            yield check


def result_dims(wrt: m.Tensor) -> tuple[m.Dimension, ...]:
    """Return the dimensions of a gradient like `wrt`; a stretching one has the size that the caller gave."""
    return tuple(
        replace(d, size=m.SizeOf(wrt.name, i), factors=(), broadcast=False) if d.broadcast else d
        for i, d in enumerate(wrt.dims)
    )


def _dims(given: m.Tensor | m.Sizes) -> Iterator[m.Dimension]:
    if isinstance(given, m.Tensor):
        yield from given.dims
    else:
        for form in given.forms:
            yield from form


def _text(doc: s.Doc | None) -> str:
    return "" if doc is None else doc.value


def in_order(decls: Mapping[str, s.OpDecl]) -> Iterator[tuple[s.OpDecl, Span | None]]:
    """Yield ops before their gradients; an op in a cycle of gradients comes with its declaration's span."""
    done: set[str] = set()
    for start in decls.values():
        chain: list[s.OpDecl] = []
        decl: s.OpDecl | None = start
        while decl is not None and decl.name.name not in done and decl not in chain:
            chain.append(decl)
            gradient = gradient_of(decl)
            decl = None if gradient is None else decls.get(gradient.op.name)
        circle = chain.index(decl) if decl is not None and decl in chain else len(chain)
        for position, member in reversed(list(enumerate(chain))):
            gradient = gradient_of(member)
            done.add(member.name.name)
            yield member, gradient.span if gradient is not None and position >= circle else None
