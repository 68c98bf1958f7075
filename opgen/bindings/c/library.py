"""The glue as its template needs it: for each op the check of a call, and the way to its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from opgen.bindings.c import attributes
from opgen.bindings.c.check import check_statements, shown_values
from opgen.bindings.c.expressions import CPrinter
from opgen.bindings.c.limits import LimitsView, limits_view
from opgen.bindings.c.names import OpNames
from opgen.bindings.c.scope import LibraryScope, OpScope
from opgen.bindings.c.text import one_line, paragraphs, string
from opgen.diagnostics import UserError
from opgen.lower import Lowered, Variant, lower, structural_attrs, variants
from opgen.lower.element_words import words_of
from opgen.lower.elements import ElementCheck, element_checks
from opgen.lower.limits import limits_of, origin, uncomputed
from opgen.spec.call.checks import symbols
from opgen.spec.model.model import Expr, Function, FunctionCall, Module, OpSpec, ShapeLet, Sizes
from opgen.spec.model.walk import subexpressions
from opgen.spec.resolve.names import why_no_prefix
from opgen.spec.resolve.words import C_API


@dataclass(frozen=True)
class VariantView:
    """A lowering of an op, and which of the op's lists of parameters its kernel takes."""

    variant: Variant
    lowered: Lowered
    parameters: int


@dataclass(frozen=True)
class FunctionView:
    """A shape function in C."""

    doc: tuple[str, ...]
    constants: tuple[str, ...]
    declaration: str
    statements: tuple[str, ...]
    unused: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class Word:
    """A parameter of a kernel in C; `argument` and `expected` are for the message where `value` cannot be computed."""

    value: str
    computed: bool
    argument: str
    expected: str


@dataclass(frozen=True)
class ElementsView:
    """A check of an op in C: its text about elements, and the size of the dimension that they subscript."""

    row: str
    size: str


@dataclass(frozen=True)
class OpView:
    """An op in C.  `parameters` are, list by list, the values that kernels are given; `pick` the number of a
    variant.
    """

    op: OpSpec
    scope: OpScope
    tables: tuple[str, ...]
    fields: tuple[str, ...]
    defaults: tuple[str, ...]
    ends: tuple[str, ...]
    statements: tuple[str, ...]
    uses_math: bool
    uses_attrs: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_checks: tuple[str, ...]
    checked_inputs: tuple[tuple[str, str], ...]
    checked_outputs: tuple[tuple[str, str, str], ...]
    buffers: tuple[str, ...]
    parameters: tuple[tuple[Word, ...], ...]
    limits: LimitsView
    lists: tuple[int, ...]
    pick: str
    first: int
    elements: tuple[ElementsView, ...] = ()

    @property
    def longest(self) -> int:
        return max((len(p) for p in self.parameters), default=0)


@dataclass(frozen=True)
class LibraryView:
    """All of a module: `kernels` are the variants of all ops, in the order of their numbers."""

    prefix: str
    source: str
    functions: tuple[FunctionView, ...]
    ops: tuple[OpView, ...]
    kernels: tuple[VariantView, ...]

    @property
    def macro(self) -> str:
        return self.prefix.upper()


def library_view(module: Module, prefix: str, source: str) -> LibraryView:
    """Return the view of a module's glue."""
    check_prefix(prefix)
    check_lists(module)
    refuse_clashes(module, prefix)
    library = LibraryScope(module, prefix)
    ops: list[OpView] = []
    kernels: list[VariantView] = []
    for op in module.ops:
        found = _variants(module, op)
        ops.append(_op(library, op, found, len(kernels)))
        kernels += found
    used = _used_functions(module, [e for k in kernels for e in k.lowered.arguments])
    return LibraryView(
        prefix=prefix,
        source=one_line(source),
        functions=tuple(_function(library, f) for f in used),
        ops=tuple(ops),
        kernels=tuple(kernels),
    )


def _variants(module: Module, op: OpSpec) -> list[VariantView]:
    lists: dict[tuple[Expr, ...], int] = {}
    found = []
    for variant in variants(op):
        lowered = lower(module, op, variant)
        number = lists.setdefault(lowered.arguments, len(lists))
        found.append(VariantView(variant, lowered, number))
    return found


# Shape functions ------------------------------------------------------------------------------------


def _used_functions(module: Module, arguments: Sequence[Expr]) -> tuple[Function, ...]:
    wanted: set[str] = set()

    def visit(e: Expr) -> None:
        for n in subexpressions(e):
            if isinstance(n, FunctionCall) and n.function not in wanted:
                wanted.add(n.function)
                f = module.function(n.function)
                for inner in (*(value for _, value in f.lets), *f.results):
                    visit(inner)

    for e in arguments:
        visit(e)
    for op in module.ops:
        for check in op.checks:
            for e in (check.value,) if isinstance(check, ShapeLet) else (check.condition, *shown_values(check)):
                visit(e)
        for tensor in (*op.outputs, *(t for t in op.tensors if t.follows)):
            for d in tensor.dims:
                visit(d.size)
    return tuple(f for f in module.functions if f.name in wanted)


def _function(library: LibraryScope, f: Function) -> FunctionView:
    name = library.functions[f.name]
    local = {p.name: f"{p.name}_" if p.name in ("m", "result") else p.name for p in f.parameters}
    local |= {n: f"{n}_" if n in ("m", "result") else n for n, _ in f.lets}
    printer = CPrinter(
        library.helper,
        "m",
        local,
        library.functions,
        lambda e: f"{local[e.name]} == {library.constant(f'{name}_{e.name}', e.value)}",
        lambda function, i, a: library.enum_argument(None, function, i, a),
    )
    enumerated = [p for p in f.parameters if p.values]
    constants = [", ".join(library.constant(f"{name}_{p.name}", w) for w in p.values) for p in enumerated]
    parameters = [f"{'int32_t' if p.values else 'int64_t'} {local[p.name]}" for p in f.parameters]
    *others, last = [printer.text(r, 1 if len(f.results) > 1 else 0) for r in f.results]
    return FunctionView(
        doc=tuple(paragraphs(f.doc or f"The shape function {f.name}.", 92)),
        constants=tuple(f"enum {{ {names} }};" for names in constants),
        declaration=f"static int64_t {name}({', '.join([f'{library.helper}_math *m', 'int32_t result', *parameters])})",
        statements=tuple(f"const int64_t {local[n]} = {printer.text(value)};" for n, value in f.lets),
        unused=("m", "result", *local.values()),
        result="".join(f"result == {i} ? {text} : " for i, text in enumerate(others)) + last,
    )


# Ops ------------------------------------------------------------------------------------------------


def _op(library: LibraryScope, op: OpSpec, found: Sequence[VariantView], first: int) -> OpView:
    scope = OpScope(library, op)
    printer = scope.printer()
    lists = list(dict.fromkeys(v.lowered.arguments for v in found))
    statements = list(check_statements(scope, printer))
    text = "\n".join(statements)
    return OpView(
        op=op,
        scope=scope,
        tables=(*attributes.tables(scope), *_tables(scope)),
        fields=tuple(_fields(scope)),
        defaults=tuple(attributes.defaults(scope)),
        ends=tuple(attributes.ends(scope)),
        statements=tuple(statements),
        uses_math=f"{library.helper}_math" in text or "(m, " in text or "m->" in text,
        uses_attrs="attrs->" in text,
        inputs=tuple(scope.public.inputs.values()),
        outputs=tuple(scope.public.outputs.values()),
        input_checks=tuple(scope.public.inputs[t.name] for t in op.tensors if not t.shape_only),
        checked_inputs=tuple((t.name, scope.public.inputs[t.name]) for t in op.tensors if not t.shape_only),
        checked_outputs=tuple((o.name, scope.public.outputs[o.name], scope.outputs[o.name]) for o in op.outputs),
        buffers=tuple(scope.public.inputs[b.name] for b in found[0].lowered.kernel.inputs),
        parameters=tuple(
            tuple(_word(scope, printer, e, f) for e, f in _typed(found, arguments)) for arguments in lists
        ),
        limits=limits_view(
            library.helper,
            scope.static,
            [limits_of(op, v.lowered) for v in found],
            [[p.dtype.is_float for p in v.lowered.kernel.parameters] for v in found],
        ),
        lists=tuple(v.parameters for v in found),
        elements=tuple(_elements(op, printer, check) for check in element_checks(op)),
        pick=_pick(scope),
        first=first,
    )


def _elements(op: OpSpec, printer: CPrinter, check: ElementCheck) -> ElementsView:
    words = words_of(op, check)
    subject = string(words.subject) if words.subject else "NULL"
    wraps = "true" if words.wraps else "false"
    row = f"{{{string(words.argument)}, {string(words.tensor)}, {words.axis}, {wraps}, {subject}}}"
    return ElementsView(row, printer.text(check.size))


def _typed(found: Sequence[VariantView], arguments: tuple[Expr, ...]) -> Iterator[tuple[Expr, bool]]:
    """Yield a list's expressions, and whether each is a floating parameter."""
    kernel = next(v.lowered.kernel for v in found if v.lowered.arguments == arguments)
    for e, parameter in zip(arguments, kernel.parameters, strict=True):
        yield e, parameter.dtype.is_float


def _word(scope: OpScope, printer: CPrinter, e: Expr, is_float: bool) -> Word:
    text = printer.text(e)
    value = f"{scope.library.helper}_float_word({text})" if is_float else text
    return Word(value, "(m, " in text, origin(scope.op, e), uncomputed(scope.op, e))


def _pick(scope: OpScope) -> str:
    """Return the number of the variant of a call, counted as `opgen.lower.variants` does."""
    text = "0"
    for v in scope.op.type_variables:
        text = _digit(text, f"{_positions(scope, v.name)}[call->{scope.types[v.name]}]", len(v.allowed))
    for attr in structural_attrs(scope.op):
        text = _digit(text, scope.field(attr.name), len(attr.values))
    return text


def _digit(text: str, digit: str, base: int) -> str:
    return digit if text == "0" else f"({text}) * {base} + {digit}"


def _positions(scope: OpScope, variable: str) -> str:
    return f"{scope.static}_{variable}_positions"


def _tables(scope: OpScope) -> Iterator[str]:
    helper = scope.library.helper
    for v in scope.op.type_variables:
        entries = ", ".join(f"[{helper}_{t.name}] = {i}" for i, t in enumerate(v.allowed))
        yield f"static const int32_t {_positions(scope, v.name)}[{helper}_unknown + 1] = {{{entries}}};"
    for i in scope.op.inputs:
        if isinstance(i, Sizes):
            lengths = ", ".join(str(len(form)) for form in i.forms)
            yield f"static const int32_t {scope.static}_{i.name}_lengths[] = {{{lengths}}};"
    for rank in sorted({t.rank for t in (*scope.op.outputs, *scope.op.tensors) if t.layout is None}):
        yield f"static const int32_t {scope.static}_in_order_{rank}[] = {{{', '.join(map(str, range(rank))) or '0'}}};"


def _fields(scope: OpScope) -> Iterator[str]:
    for v in scope.types.values():
        yield f"{scope.library.helper}_type {v};"
    for attr in scope.op.attrs:
        yield from attributes.call_fields(scope, attr)
    for i in scope.op.inputs:
        if isinstance(i, Sizes):
            yield f"int64_t {scope.sizes[i.name]}[{max(1, *(len(form) for form in i.forms))}];"
            yield f"int32_t {scope.forms[i.name]};"
    for name in (*dict.fromkeys(scope.field_name(s) for s in symbols(scope.op)), *scope.stretched.values()):
        yield f"int64_t {name};"
    for name in scope.outputs.values():
        yield f"{scope.library.prefix}_shape {name};"


def check_prefix(prefix: str) -> None:
    """Raises UserError if names of C and C++ cannot begin with the prefix, or the namespace cannot be called so."""
    reason = why_no_prefix(prefix)
    if reason is not None:
        raise UserError(f"'{prefix}' is {reason}; what names shall begin with is said by --prefix")


def check_lists(module: Module) -> None:
    """Raise UserError for a list that is too long for the library."""
    for op in module.ops:
        for attr in op.attrs:
            if prod(attr.shape) > 64:
                raise UserError(f"op {op.name}: attribute {attr.name} has more than 64 elements, the most in a library")


def refuse_clashes(module: Module, prefix: str) -> None:
    """Raises UserError if two names of the C interface are the same."""
    owners = {f"{prefix}_{name}": "the library" for name in C_API}
    for op in module.ops:
        n = OpNames(op, prefix)
        for name in n.functions:
            if name in owners or name.startswith(f"{prefix}_k_"):
                raise UserError(f"op {op.name}: the C name {name} is that of {owners.get(name, 'the library')} already")
            owners[name] = f"op {op.name}"
        for name in (*n.fields, *n.inputs, *n.outputs):
            if name.startswith((f"{prefix}_", f"{prefix.upper()}_")):
                raise UserError(f"op {op.name}: '{name}' begins as the library's own names do, with {prefix}_")
