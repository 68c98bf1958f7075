"""The names inside the generated C of an op: of the fields that hold a call, of tables and of constants."""

from __future__ import annotations

import re

from opgen.bindings.c.expressions import CPrinter
from opgen.bindings.c.names import LOCALS, RESERVED, OpNames
from opgen.bindings.c.text import Names
from opgen.bindings.c.values import elements
from opgen.diagnostics import InternalError
from opgen.spec.call.checks import symbols
from opgen.spec.model.model import (
    Attr,
    AttrValue,
    EnumArgument,
    EnumIs,
    Module,
    OpSpec,
    Present,
    SizeOf,
    Tensor,
)


class LibraryScope:
    """Names of a module's C: `functions` of its shape functions, `helper` the prefix of internal names."""

    def __init__(self, module: Module, prefix: str) -> None:
        self.module = module
        self.prefix = prefix
        self.helper = f"{prefix}_k"
        self.names = Names()
        self.functions = {f.name: self.names.fresh(f"shape_{f.name}") for f in module.functions}

    def constant(self, owner: str, word: str) -> str:
        """Return the enumerator for a word of an enumeration that `owner` has."""
        return f"{owner}_is_{re.sub('[^A-Za-z0-9_]', '_', word)}"

    def enum_argument(self, op: OpScope | None, function: str, position: int, a: EnumArgument) -> str:
        """Return the value of an enumerated argument: a position among the words of the function's parameter."""
        parameter = self.module.function(function).parameters[position]
        owner = f"{self.functions[function]}_{parameter.name}"
        if a.name is None:
            return self.constant(owner, a.value or "")
        if op is None:
            return a.name
        values = op.op.attr(a.name).values
        if parameter.values[: len(values)] == values:
            return op.field(a.name)
        pairs = [f"{op.field(a.name)} == {op.constant(a.name, w)} ? {self.constant(owner, w)}" for w in values[:-1]]
        return f"({' : '.join([*pairs, self.constant(owner, values[-1])])})"


class OpScope:
    """Names of one op: the fields of its struct `call`, through the pointer `call`."""

    def __init__(self, library: LibraryScope, op: OpSpec) -> None:
        self.library = library
        self.op = op
        self.public = OpNames(op, library.prefix)
        self.static = library.names.fresh(op.function_name)
        fields = Names(("m",))
        self._fields = {a.name: fields.fresh(a.name) for a in op.attrs}
        self.lengths = {a.name: fields.fresh(f"{a.name}_len") for a in op.attrs if a.shape}
        self._fields |= {s: fields.fresh(s) for s in symbols(op) if s not in self._fields}
        self.types = {v.name: fields.fresh(v.name) for v in op.type_variables}
        self.sizes = {i.name: fields.fresh(f"{i.name}_values") for i in op.inputs if not isinstance(i, Tensor)}
        self.forms = {i.name: fields.fresh(f"{i.name}_form") for i in op.inputs if not isinstance(i, Tensor)}
        self.stretched = {
            (t.name, axis): fields.fresh(f"{t.name}_size_{axis}")
            for t in op.tensors
            for axis, d in enumerate(t.dims)
            if d.broadcast
        }
        local = Names((*self.public.inputs.values(), *RESERVED, *LOCALS))
        self.locals = {i.name: local.fresh(f"{i.name}_sizes") for i in op.inputs}
        self.outputs = {o.name: fields.fresh(f"{o.name}_shape") for o in op.outputs}

    def field_name(self, name: str) -> str:
        """Return the field of an attribute or symbol."""
        return self._fields[name]

    def field(self, name: str) -> str:
        return f"call->{self._fields[name]}"

    def constant(self, attr: str, word: str) -> str:
        return self.library.constant(f"{self.static}_{attr}", word)

    def axes(self, layout: str) -> str:
        """Return the table of a layout: for each word, the position of each logical dimension in the caller's order."""
        return f"{self.static}_{layout}_axes"

    def axis(self, layout: str | None, position: int) -> str:
        """Return the position of a logical dimension in the caller's order."""
        return str(position) if layout is None else f"{self.axes(layout)}[{self.field(layout)}][{position}]"

    def attribute(self, e: AttrValue) -> str:
        attr = self.op.attr(e.attr)
        if not e.element:
            return self.field(attr.name)
        width = elements(attr) // attr.shape[0]
        return f"{self.field(attr.name)}[{e.element[0] * width + (e.element[1] if len(e.element) > 1 else 0)}]"

    def is_word(self, e: EnumIs) -> str:
        return f"{self.field(e.name)} == {self.constant(e.name, e.value)}"

    def size_of(self, e: SizeOf) -> str:
        if (e.tensor, e.axis) not in self.stretched:
            raise InternalError(f"{e.tensor}[{e.axis}] is no broadcast dimension")
        return f"call->{self.stretched[e.tensor, e.axis]}"

    def present(self, e: Present) -> str:
        return f"call->{self.lengths[e.attr]} > 0"

    def printer(self) -> CPrinter:
        """Return a printer for expressions of this op, where `call` is the call."""
        symbols_here = {s: self.field(s) for s in self._fields}
        return CPrinter(
            self.library.helper,
            "m",
            symbols_here,
            self.library.functions,
            self.is_word,
            lambda f, i, a: self.library.enum_argument(self, f, i, a),
            self.attribute,
            self.size_of,
            self.present,
            lambda e: self.op.attr(e.attr).kind == "float",
        )

    def layout_attrs(self) -> list[Attr]:
        """Return the layouts that something is in the order of."""
        return [a for a in self.op.attrs if a.kind == "layout"]
