"""The glue as its template needs it: for each op the check of a call, and the way to its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from opgen.bindings.c import attributes
from opgen.bindings.c.expressions import CPrinter
from opgen.bindings.c.scope import LibraryScope, OpScope, symbols
from opgen.bindings.c.sizes import size_statements
from opgen.bindings.c.text import one_line, paragraphs, string
from opgen.bindings.formula import Formula
from opgen.diagnostics import InternalError
from opgen.lower import Lowered, Variant, lower, structural_attrs, variants
from opgen.spec.model import Expr, Function, FunctionCall, Module, OpSpec, Require, ShapeLet, Sizes, Tensor
from opgen.spec.walk import subexpressions

HOLE = "\001"
"""Stands for a number in the text of a requirement."""


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
class OpView:
    """An op in C.  `parameters` are, list by list, the values that kernels are given; `pick` the number of a
    variant.
    """

    op: OpSpec
    scope: OpScope
    tables: tuple[str, ...]
    fields: tuple[str, ...]
    defaults: tuple[str, ...]
    statements: tuple[str, ...]
    uses_math: bool
    uses_attrs: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_checks: tuple[str, ...]
    checked_inputs: tuple[tuple[str, str], ...]
    checked_outputs: tuple[tuple[str, str, str], ...]
    buffers: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]
    lists: tuple[int, ...]
    pick: str
    first: int

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
    """The view of a module's glue."""
    library = LibraryScope(module, prefix)
    ops: list[OpView] = []
    kernels: list[VariantView] = []
    for op in module.ops:
        found = _variants(module, op)
        ops.append(_op(library, op, found, len(kernels)))
        kernels += found
    used = _used_functions(module)
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


def _used_functions(module: Module) -> tuple[Function, ...]:
    wanted: set[str] = set()

    def visit(e: Expr) -> None:
        for n in subexpressions(e):
            if isinstance(n, FunctionCall) and n.function not in wanted:
                wanted.add(n.function)
                f = module.function(n.function)
                for inner in (*(value for _, value in f.lets), *f.results):
                    visit(inner)

    for op in module.ops:
        for check in op.checks:
            for e in (check.value,) if isinstance(check, ShapeLet) else (check.condition, *_values(check)):
                visit(e)
        for output in op.outputs:
            for d in output.dims:
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
    statements = list(_statements(scope, printer))
    text = "\n".join(statements)
    return OpView(
        op=op,
        scope=scope,
        tables=(*attributes.tables(scope), *_tables(scope)),
        fields=tuple(_fields(scope)),
        defaults=tuple(attributes.defaults(scope)),
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
        lists=tuple(v.parameters for v in found),
        pick=_pick(scope),
        first=first,
    )


def _typed(found: Sequence[VariantView], arguments: tuple[Expr, ...]) -> Iterator[tuple[Expr, bool]]:
    """A list's expressions, and whether each is a floating parameter."""
    kernel = next(v.lowered.kernel for v in found if v.lowered.arguments == arguments)
    for e, parameter in zip(arguments, kernel.parameters, strict=True):
        yield e, parameter.dtype.is_float


def _word(scope: OpScope, printer: CPrinter, e: Expr, is_float: bool) -> str:
    return f"{scope.library.helper}_float_word({printer.text(e)})" if is_float else printer.text(e)


def _pick(scope: OpScope) -> str:
    """The number of the variant of a call, counted as `opgen.lower.variants` does."""
    text = "0"
    for v in scope.op.type_variables:
        text = _digit(text, f"{_positions(scope, v.name)}[c->{scope.types[v.name]}]", len(v.allowed))
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
    for rank in sorted({o.rank for o in scope.op.outputs if o.layout is None}):
        yield f"static const int32_t {scope.static}_in_order_{rank}[] = {{{', '.join(map(str, range(rank))) or '0'}}};"


def _fields(scope: OpScope) -> Iterator[str]:
    for v in scope.types.values():
        yield f"{scope.library.helper}_type {v};"
    for attr in scope.op.attrs:
        if not (attr.compatibility and attr.kind == "bool"):
            yield from attributes.call_fields(scope, attr)
    for i in scope.op.inputs:
        if isinstance(i, Sizes):
            yield f"int64_t {scope.sizes[i.name]}[{max(1, *(len(form) for form in i.forms))}];"
            yield f"int32_t {scope.forms[i.name]};"
    for name in (*dict.fromkeys(scope.field_name(s) for s in symbols(scope.op)), *scope.stretched.values()):
        yield f"int64_t {name};"
    for name in scope.outputs.values():
        yield f"{scope.library.prefix}_shape {name};"


# The check of a call --------------------------------------------------------------------------------


def _statements(scope: OpScope, printer: CPrinter) -> Iterator[str]:
    op, helper = scope.op, scope.library.helper
    yield from attributes.checks(scope)
    for i in op.inputs:
        yield from _fail(f"{helper}_check_tensor(op, {string(i.name)}, {scope.public.inputs[i.name]})")
    yield from _types(scope)
    for t in op.tensors:
        name = scope.public.inputs[t.name]
        yield from _fail(f"{helper}_check_rank(op, {string(t.name)}, {name}, {t.rank})")
    for i in op.inputs:
        if isinstance(i, Sizes):
            yield from _vector(scope, i)
    sizes = [*size_statements(scope, False)], [*size_statements(scope, True)]
    together = "\n".join(line for group in sizes for line in group)
    for i in op.inputs:
        name = scope.public.inputs[i.name]
        if f"&{name}_sizes," in together:
            if isinstance(i, Tensor):
                source = f"{name}->shape, {i.rank}, false"
            else:
                source = f"c->{scope.sizes[i.name]}, {scope.static}_{i.name}_lengths[c->{scope.forms[i.name]}], true"
            yield f"const {helper}_sizes {name}_sizes = {{op, {string(i.name)}, {source}}};"
    yield from sizes[0]
    for check in op.checks:
        yield from _let(scope, printer, check) if isinstance(check, ShapeLet) else _require(scope, printer, check)
    yield from sizes[1]
    for output in op.outputs:
        yield from _result(scope, printer, output)


def _fail(call: str) -> list[str]:
    return [f"if (!{call}) {{", "    return false;", "}"]


def _types(scope: OpScope) -> Iterator[str]:
    helper = scope.library.helper
    for v in scope.op.type_variables:
        members = [t for t in scope.op.tensors if t.dtype == v.name]
        for t in members[:1]:
            name = scope.public.inputs[t.name]
            allowed = " | ".join(f"1u << {helper}_{d.name}" for d in v.allowed)
            words = _either([d.name for d in v.allowed])
            target = f"&c->{scope.types[v.name]}"
            yield from _fail(f"{helper}_check_type(op, {string(t.name)}, {name}, {allowed}, {string(words)}, {target})")
        for t in members[1:]:
            name = scope.public.inputs[t.name]
            arguments = f"{string(t.name)}, {name}, c->{scope.types[v.name]}, {string(members[0].name)}"
            yield from _fail(f"{helper}_check_same_type(op, {arguments})")
    for t in scope.op.tensors:
        if scope.op.type_variable(t.dtype) is None:
            name = scope.public.inputs[t.name]
            yield "{"
            yield f"    {helper}_type found;"
            call = f"{helper}_check_type(op, {string(t.name)}, {name}, 1u << {helper}_{t.dtype}, {string(t.dtype)}, &found)"
            yield from (f"    {line}" for line in _fail(call))
            yield "}"


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _vector(scope: OpScope, v: Sizes) -> Iterator[str]:
    words = f"{' or '.join(str(len(form)) for form in v.forms)} integers"
    arguments = f"{string(v.name)}, {scope.public.inputs[v.name]}, {scope.static}_{v.name}_lengths, {len(v.forms)}"
    targets = f"{string(words)}, c->{scope.sizes[v.name]}, &c->{scope.forms[v.name]}"
    yield from _fail(f"{scope.library.helper}_check_sizes(op, {arguments}, {targets})")


def _let(scope: OpScope, printer: CPrinter, let: ShapeLet) -> Iterator[str]:
    formula = Formula(scope.op)
    yield f"/* {one_line(formula.let(let))} */"
    for i, name in enumerate(let.names):
        value = let.value
        if isinstance(value, FunctionCall) and len(let.names) > 1:
            value = FunctionCall(value.function, value.arguments, i)
        yield f"{scope.field(name)} = {printer.text(value)};"
        yield from _computed(scope, printer.text(value), name)


def _computed(scope: OpScope, text: str, name: str) -> Iterator[str]:
    if "(m, " in text:
        blame = f"{string(_blamed(scope))}, {_first_given(scope)}"
        yield "if (m->failed) {"
        yield f"    return {scope.library.helper}_check_computed(m, op, {string(name)}, {blame});"
        yield "}"


def _blamed(scope: OpScope) -> str:
    return scope.op.inputs[0].name if scope.op.inputs else scope.op.name


def _first_given(scope: OpScope) -> str:
    return _given(scope, scope.op.inputs[0].name) if scope.op.inputs else '"none"'


def _given(scope: OpScope, argument: str) -> str:
    """What the caller gave for an input or an attribute."""
    helper = scope.library.helper
    for i in scope.op.inputs:
        if i.name == argument:
            name = scope.public.inputs[argument]
            if isinstance(i, Tensor):
                return f"{helper}_given_shape({name})"
            return f"{helper}_given_sizes(c->{scope.sizes[argument]}, (int32_t){name}->shape[0])"
    return attributes.given(scope, scope.op.attr(argument))


def _require(scope: OpScope, printer: CPrinter, check: Require) -> Iterator[str]:
    helper = scope.library.helper
    condition = printer.text(check.condition)
    argument, given = string(check.argument), _given(scope, check.argument)
    values = [printer.text(v) for v in _values(check)]
    pieces = [p.replace(HOLE, " ") if isinstance(p, str) else HOLE for p in check.expected]
    expected = string("".join(pieces))
    if "(m, " not in condition:
        yield f"if (!({condition})) {{"
    else:
        yield f"const bool holds_{scope.op.checks.index(check)} = {condition};"
        yield "if (m->failed) {"
        yield f"    return {helper}_check_decided(m, op, {argument}, {given});"
        yield "}"
        yield f"if (!holds_{scope.op.checks.index(check)}) {{"
    if values:
        yield f"    const int64_t numbers[] = {{{', '.join(values)}}};"
        yield f"    return {helper}_wrong_with(op, {argument}, {expected}, numbers, {len(values)}, {given});"
    else:
        yield f"    return {helper}_wrong(op, {argument}, {expected}, {given});"
    yield "}"


def _values(check: Require) -> tuple[Expr, ...]:
    return tuple(p for p in check.expected if not isinstance(p, str))


def _result(scope: OpScope, printer: CPrinter, t: Tensor) -> Iterator[str]:
    helper = scope.library.helper
    sizes = [printer.text(d.size) for d in t.dims]
    name = f"{scope.outputs[t.name]}_sizes"
    yield f"const int64_t {name}[] = {{{', '.join(sizes) or '0'}}};"
    yield from _computed(scope, " ".join(sizes), t.name)
    axes = f"{scope.static}_in_order_{t.rank}"
    if t.layout is not None:
        axes = f"{scope.axes(t.layout)}[{scope.field(t.layout)}]"
    dtype = f"c->{scope.types[t.dtype]}" if scope.op.type_variable(t.dtype) is not None else f"{helper}_{t.dtype}"
    place = f"{name}, {t.rank}, {axes}, {dtype}, &c->{scope.outputs[t.name]}"
    blame = f"{string(_blamed(scope))}, {_first_given(scope)}"
    yield from _fail(f"{helper}_check_result(op, {string(t.name)}, {blame}, {place})")


def check_sizes(module: Module) -> None:
    """Lists have room for 64 numbers."""
    for op in module.ops:
        for attr in op.attrs:
            if prod(attr.shape) > 64:
                raise InternalError(f"op {op.name}: attribute {attr.name} has more than 64 elements")
