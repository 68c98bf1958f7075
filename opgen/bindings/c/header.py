"""The header as its template needs it: every name chosen, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.bindings.c.interface import MESSAGE_SIZE, Enumerator, Function, Interface, Struct, message_parameters
from opgen.bindings.c.names import STRUCT_SIZE, OpNames, spellings
from opgen.bindings.c.text import block_comment, one_line, paragraphs, wrapped
from opgen.bindings.c.values import elements, plain_words
from opgen.bindings.formula import Formula
from opgen.dtypes import DLPACK_CODES
from opgen.spec.model.model import Attr, Module, OpSpec, Reduce, Require, ShapeLet, Sizes, Tensor
from opgen.spec.model.walk import subexpressions

RANK = 8
"""Number of dimensions that a shape can hold, unless an op needs more."""
_TEXT = 92


@dataclass(frozen=True)
class FieldView:
    """A field of a struct of attributes: its declaration, and the lines that explain it."""

    declaration: str
    doc: tuple[str, ...]


@dataclass(frozen=True)
class OpHeader:
    """An op's declarations; `functions` are those besides its attributes' makers, plain and with a message."""

    name: str
    names: OpNames
    doc: str
    fields: tuple[FieldView, ...]
    init: Function
    run: Function
    shape: Function
    workspace: Function
    with_workspace: Function

    @property
    def functions(self) -> tuple[Function, ...]:
        """Return all that are exported."""
        plain = (self.run, self.shape, self.workspace, self.with_workspace)
        return (*((self.init,) if self.fields else ()), *plain, *(self.told(f) for f in plain))

    def told(self, plain: Function) -> Function:
        """Return the same call with its message in the caller's memory."""
        names = {
            self.run.name: self.names.with_message,
            self.shape.name: self.names.shape_with_message,
            self.workspace.name: self.names.workspace_with_message,
            self.with_workspace.name: self.names.with_workspace_and_message,
        }
        return Function(plain.result, names[plain.name], (*plain.parameters, *message_parameters()))

    @property
    def attributes(self) -> Struct:
        """Return the struct of attributes."""
        return Struct(self.names.attrs, tuple(f.declaration for f in self.fields))


@dataclass(frozen=True)
class HeaderView:
    """`prefix` begins every name, `macro` is the same in capitals; `source` names the spec."""

    prefix: str
    macro: str
    source: str
    doc: str
    rank: int
    statuses: tuple[Enumerator, ...]
    codes: tuple[Enumerator, ...]
    structs: dict[str, Struct]
    functions: dict[str, Function]
    ops: tuple[OpHeader, ...]
    message_size: int = MESSAGE_SIZE

    @property
    def interface(self) -> Interface:
        """Return all that callers are compiled against."""
        numbers = (Enumerator("MAX_RANK", self.rank), Enumerator("MESSAGE_SIZE", self.message_size))
        attributes = [op.attributes for op in self.ops if op.fields]
        functions = (f for op in self.ops for f in op.functions)
        return Interface(
            constants=(*numbers, *self.statuses, *self.codes),
            structs=(*self.structs.values(), *attributes),
            functions=(*self.functions.values(), *functions),
        )


def header_view(module: Module, prefix: str, source: str) -> HeaderView:
    """Return the view of a module's header."""
    ranks = [o.rank for op in module.ops for o in (*op.outputs, *op.tensors)]
    return HeaderView(
        prefix=prefix,
        macro=prefix.upper(),
        source=one_line(source),
        doc="".join(f" * {line}".rstrip() + "\n" for line in paragraphs(module.doc or module.name, _TEXT)),
        rank=max([RANK, *ranks]),
        statuses=tuple(_statuses(prefix)),
        codes=tuple(Enumerator(name, value) for name, value in DLPACK_CODES.items()),
        structs=_structs(prefix),
        functions=_functions(prefix),
        ops=tuple(_op(op, prefix) for op in module.ops),
    )


# Parts of every library -----------------------------------------------------------------------------


def _statuses(prefix: str) -> Iterator[Enumerator]:
    yield Enumerator("OK", 0)
    yield Enumerator("INVALID_ARGUMENT", 1, "An argument is wrong; the message says which.")
    yield Enumerator(
        "OUT_OF_MEMORY", 2, "A result or a temporary buffer is too large for this machine; outputs are undefined."
    )
    yield Enumerator(
        "UNIMPLEMENTED", 3, "The library was built without kernels for this call (see `opgen build --ops`)."
    )
    yield Enumerator("INTERNAL", 4, "A mistake in the library itself.")
    yield Enumerator("WRONG_ABI", 5, f"The library is not of this header's layout; see {prefix}_check_abi().")


def _structs(prefix: str) -> dict[str, Struct]:
    fields = {
        "dtype": ("uint8_t code;", "uint8_t bits;", "uint16_t lanes;"),
        "device": ("int32_t device_type;", "int32_t device_id;"),
        "tensor": (
            "void *data;",
            f"{prefix}_device device;",
            "int32_t ndim;",
            f"{prefix}_dtype dtype;",
            "int64_t *shape;",
            "int64_t *strides;",
            "uint64_t byte_offset;",
        ),
        "shape": (f"{prefix}_dtype dtype;", "int32_t ndim;", f"int64_t dims[{prefix.upper()}_MAX_RANK];"),
    }
    return {name: Struct(f"{prefix}_{name}", declared) for name, declared in fields.items()}


def _functions(prefix: str) -> dict[str, Function]:
    status, message = f"{prefix}_status", message_parameters()
    found = {
        "abi_version": ("uint64_t", ()),
        "require_abi": (status, ("uint64_t version", *message)),
        "last_error": ("const char *", ()),
        "set_num_threads": (status, ("int32_t count",)),
        "set_num_threads_with_message": (status, ("int32_t count", *message)),
        "get_num_threads": ("int32_t", ()),
        "cpu_level": ("const char *", ()),
    }
    return {name: Function(result, f"{prefix}_{name}", given) for name, (result, given) in found.items()}


# Ops ------------------------------------------------------------------------------------------------


def _op(op: OpSpec, prefix: str) -> OpHeader:
    names = OpNames(op, prefix)
    status, attrs = f"{prefix}_status", f"const {names.attrs} *attrs"
    inputs = tuple(f"const {prefix}_tensor *{n}" for n in names.inputs.values())
    outputs = tuple(f"const {prefix}_tensor *{n}" for n in names.outputs.values())
    shapes = tuple(f"{prefix}_shape *{n}" for n in names.outputs.values())
    workspace = ("void *workspace", "size_t workspace_size")
    return OpHeader(
        name=op.name,
        names=names,
        doc=block_comment(_documentation(op, names)),
        fields=tuple(_fields(op, names)),
        init=Function("void", names.attrs_init, (f"{names.attrs} *attrs", f"size_t {STRUCT_SIZE}")),
        run=Function(status, names.function, (*inputs, attrs, *outputs)),
        shape=Function(status, names.shape, (*inputs, attrs, *shapes)),
        workspace=Function(status, names.workspace, (*inputs, attrs, "size_t *size")),
        with_workspace=Function(status, names.with_workspace, (*inputs, attrs, *outputs, *workspace)),
    )


# Attributes -----------------------------------------------------------------------------------------


def _fields(op: OpSpec, names: OpNames) -> Iterator[FieldView]:
    """Yield fields of 8 bytes each, so that a struct that ends earlier has another size; booleans are integers."""
    if op.attrs:
        yield FieldView(f"size_t {STRUCT_SIZE};", (f"sizeof ({names.attrs}): see {names.attrs_default}.",))
    for attr in op.attrs:
        for name in spellings(attr):
            doc = _attribute_doc(op, attr) if name == attr.name else f"Another name for `{attr.name}`: not beside it."
            yield FieldView(f"{_TYPES[_kind(attr)]}{names.fields[name]};", tuple(wrapped(doc, _TEXT, hanging="")))
            if name in names.lengths:
                yield FieldView(f"int64_t {names.lengths[name]};", ())


_TYPES = {
    "words": "const char *",
    "integers": "const int64_t *",
    "numbers": "const double *",
    "int": "int64_t ",
    "bool": "int64_t ",
    "float": "double ",
}


def _kind(attr: Attr) -> str:
    if attr.shape:
        return "numbers" if attr.kind == "float" else "integers"
    return "words" if attr.kind in ("enum", "layout") else attr.kind


def _attribute_doc(op: OpSpec, attr: Attr) -> str:
    default = ""
    if attr.has_default and attr.default is not None:
        shown = list(attr.default) if isinstance(attr.default, tuple) else attr.default
        default = f" Default: {str(shown).lower() if isinstance(shown, bool) else shown}."
    deprecated = "" if attr.deprecated is None else f" Deprecated: {attr.deprecated}"
    return f"{_values(op, attr)} {attr.doc}{default}{deprecated}"


def _values(op: OpSpec, attr: Attr) -> str:
    if attr.kind in ("enum", "layout"):
        words = ", ".join(f'"{w}"' for w in plain_words(attr))
        instead = "" if attr.payload is None else f", or NULL and a list in `{attr.payload[1]}`"
        return f"One of {words}{instead}."
    bounds = [f"at least {attr.minimum}"] if attr.minimum is not None else []
    bounds += [f"at most {attr.maximum}"] if attr.maximum is not None else []
    bound = f", {' and '.join(bounds)}" if bounds else ""
    if attr.shape:
        kind = "numbers" if attr.kind == "float" else "integers"
        return f"{elements(attr)} {kind}{bound}{', or none' if attr.optional else ''}."
    return {"int": f"An integer{bound}.", "float": f"A number{bound}.", "bool": "0: false; any other number: true."}[
        attr.kind
    ]


# Documentation --------------------------------------------------------------------------------------


def _documentation(op: OpSpec, names: OpNames) -> Iterator[str]:
    formula = Formula(op)
    yield from paragraphs(op.doc or op.name, _TEXT)
    yield ""
    for given in op.inputs:
        yield from wrapped(f"@param {names.inputs[given.name]} {_input(formula, given)}", _TEXT)
    yield f"@param attrs The attributes; NULL: all at their defaults (see {names.attrs})."
    for output in op.outputs:
        text = f"{_tensor(formula, output)} {output.doc} Memory of the caller's, apart from the inputs'."
        yield from wrapped(f"@param {names.outputs[output.name]} {text}", _TEXT)
    for v in op.type_variables:
        yield from wrapped(f"Type {v.name}: {', '.join(t.name for t in v.allowed)}.", _TEXT)
    yield ""
    yield "Formula:"
    yield from _formulas(op, formula)
    requirements = [c for c in op.checks if isinstance(c, Require)]
    if requirements:
        yield ""
        yield "Required:"
    for check in requirements:
        text = "".join(p if isinstance(p, str) else f"{{{formula.text(p)}}}" for p in check.expected)
        yield from wrapped(f"`{check.argument}`: expected {text}.", _TEXT, "    ")


def _input(formula: Formula, given: Tensor | Sizes) -> str:
    if isinstance(given, Tensor):
        return f"{_tensor(formula, given)} {given.doc}" + (" Only its shape counts." if given.shape_only else "")
    forms = (f"[{', '.join(formula.dimension(d) for d in form)}]" for form in given.forms)
    return f"A vector of int32 or int64 whose values are {' or '.join(forms)}. {given.doc}"


def _tensor(formula: Formula, t: Tensor) -> str:
    return formula.tensor(t) + (f" in the order of `{t.layout}`." if t.layout is not None else ".")


def _formulas(op: OpSpec, formula: Formula) -> Iterator[str]:
    for check in op.checks:
        if isinstance(check, ShapeLet):
            yield from wrapped(formula.let(check), _TEXT, "    ")
    for d in op.definitions:
        ranges = [r for e in subexpressions(d.value) if isinstance(e, Reduce) for r in e.indices]
        bounds = f" for {formula.ranges(tuple(dict.fromkeys(ranges)))}" if ranges else ""
        yield from wrapped(f"{formula.definition(d)}{bounds}", _TEXT, "    ")
