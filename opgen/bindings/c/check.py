"""The body of the function that checks a call of an op: attributes, types, sizes, then lets and requirements in the
spec's order, then the results' shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opgen.bindings.c import attributes
from opgen.bindings.c.expressions import CPrinter
from opgen.bindings.c.scope import OpScope
from opgen.bindings.c.sizes import SizePrinter
from opgen.bindings.c.text import one_line, string
from opgen.bindings.formula import Formula
from opgen.spec.call import checks as c
from opgen.spec.model.model import Expr, FunctionCall, Require, ShapeLet, Sizes, Tensor
from opgen.spec.resolve.dimensions import size_name

HOLE = "\001"
"""Placeholder of a number in the text of a requirement."""


def check_statements(scope: OpScope, printer: CPrinter) -> Iterator[str]:
    op, helper = scope.op, scope.library.helper
    yield from attributes.checks(scope)
    for i in op.inputs:
        yield from _fail(f"{helper}_check_tensor(op, {string(i.name)}, {scope.public.inputs[i.name]})")
    yield from _types(scope)
    checks, sizes = c.checks(op), SizePrinter(scope)
    compared = "\n".join(line for check in checks if isinstance(check, c.Solve) for line in sizes.cases(check))
    for number, check in enumerate(checks, start=-len(op.inputs) - 1):  # the op's own are counted from 0
        match check:
            case c.Rank():
                name = check.tensor.name
                rank = f"op, {string(name)}, {scope.public.inputs[name]}, {check.tensor.rank}"
                yield from _fail(f"{helper}_check_rank({rank})")
            case c.Length():
                yield from _vector(scope, check.vector)
            case c.Compare():
                yield from sizes.cases(check)
            case c.Solve():
                yield from _named_sizes(scope, compared)
                yield from sizes.cases(check)
            case ShapeLet():
                yield from _let(scope, printer, check)
            case Require():
                yield from _require(scope, printer, check, number)
            case c.Whole():
                yield from _whole(scope, printer, check.tensor)
    for output in op.outputs:
        yield from _result(scope, printer, output)


def _named_sizes(scope: OpScope, compared: str) -> Iterator[str]:
    """Yield the sizes of the inputs that are compared, as checks take them."""
    helper = scope.library.helper
    for i in scope.op.inputs:
        name = scope.public.inputs[i.name]
        local = scope.locals[i.name]
        if f"&{local}," in compared or (isinstance(i, Tensor) and i.follows):
            if isinstance(i, Tensor):
                source = f"{name}->shape, {i.rank}, false"
            else:
                source = (
                    f"call->{scope.sizes[i.name]}, {scope.static}_{i.name}_lengths[call->{scope.forms[i.name]}], true"
                )
            yield f"const {helper}_sizes {local} = {{op, {string(i.name)}, {source}}};"


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
            target = f"&call->{scope.types[v.name]}"
            yield from _fail(f"{helper}_check_type(op, {string(t.name)}, {name}, {allowed}, {string(words)}, {target})")
        for t in members[1:]:
            name = scope.public.inputs[t.name]
            arguments = f"{string(t.name)}, {name}, call->{scope.types[v.name]}, {string(members[0].name)}"
            yield from _fail(f"{helper}_check_same_type(op, {arguments})")
    for t in scope.op.tensors:
        if scope.op.type_variable(t.dtype) is None:
            name = scope.public.inputs[t.name]
            yield "{"
            yield f"    {helper}_type found;"
            rule = f"1u << {helper}_{t.dtype}, {string(t.dtype)}, &found"
            yield from (f"    {line}" for line in _fail(f"{helper}_check_type(op, {string(t.name)}, {name}, {rule})"))
            yield "}"


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _vector(scope: OpScope, v: Sizes) -> Iterator[str]:
    words = f"{' or '.join(str(len(form)) for form in v.forms)} integers"
    arguments = f"{string(v.name)}, {scope.public.inputs[v.name]}, {scope.static}_{v.name}_lengths, {len(v.forms)}"
    targets = f"{string(words)}, call->{scope.sizes[v.name]}, &call->{scope.forms[v.name]}"
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
    """Return the caller's value of an input or an attribute."""
    helper = scope.library.helper
    for i in scope.op.inputs:
        if i.name == argument:
            name = scope.public.inputs[argument]
            if isinstance(i, Tensor):
                return f"{helper}_given_shape({name})"
            return f"{helper}_given_sizes(call->{scope.sizes[argument]}, (int32_t){name}->shape[0])"
    return attributes.given(scope, scope.op.attr(argument))


def _require(scope: OpScope, printer: CPrinter, check: Require, number: int) -> Iterator[str]:
    """Refuse a call that breaks a requirement; `number` distinguishes it from an equal one of another use of an op."""
    helper = scope.library.helper
    condition = printer.text(check.condition)
    argument, given = string(check.argument), _given(scope, check.argument)
    values = [printer.text(v) for v in shown_values(check)]
    pieces = [p.replace(HOLE, " ") if isinstance(p, str) else HOLE for p in check.expected]
    expected = string("".join(pieces))
    if "(m, " not in condition:
        yield f"if (!({condition})) {{"
    else:
        yield f"const bool holds_{number} = {condition};"
        yield "if (m->failed) {"
        yield f"    return {helper}_check_decided(m, op, {argument}, {given});"
        yield "}"
        yield f"if (!holds_{number}) {{"
    if values:
        yield f"    const int64_t numbers[] = {{{', '.join(values)}}};"
        yield f"    return {helper}_wrong_with(op, {argument}, {expected}, numbers, {len(values)}, {given});"
    else:
        yield f"    return {helper}_wrong(op, {argument}, {expected}, {given});"
    yield "}"


def shown_values(check: Require) -> tuple[Expr, ...]:
    return tuple(p for p in check.expected if not isinstance(p, str))


def _whole(scope: OpScope, printer: CPrinter, t: Tensor) -> Iterator[str]:
    """Check a tensor whose shape follows from the rest."""
    local = scope.locals[t.name]
    sizes = [printer.text(d.size) for d in t.dims]
    yield f"const int64_t {local}_expected[] = {{{', '.join(sizes) or '0'}}};"
    yield from _computed(scope, " ".join(sizes), t.name)
    names = ", ".join(string(size_name(d)) for d in t.dims) or "NULL"
    yield f"static const char *const {local}_names[] = {{{names}}};"
    yield from _fail(
        f"{scope.library.helper}_check_whole(&{local}, {local}_expected, {local}_names, {_axes(scope, t)})"
    )


def _axes(scope: OpScope, t: Tensor) -> str:
    if t.layout is None:
        return f"{scope.static}_in_order_{t.rank}"
    return f"{scope.axes(t.layout)}[{scope.field(t.layout)}]"


def _result(scope: OpScope, printer: CPrinter, t: Tensor) -> Iterator[str]:
    helper = scope.library.helper
    sizes = [printer.text(d.size) for d in t.dims]
    name = f"{scope.outputs[t.name]}_sizes"
    yield f"const int64_t {name}[] = {{{', '.join(sizes) or '0'}}};"
    yield from _computed(scope, " ".join(sizes), t.name)
    axes = _axes(scope, t)
    dtype = f"call->{scope.types[t.dtype]}" if scope.op.type_variable(t.dtype) is not None else f"{helper}_{t.dtype}"
    place = f"{name}, {t.rank}, {axes}, {dtype}, &call->{scope.outputs[t.name]}"
    blame = f"{string(_blamed(scope))}, {_first_given(scope)}"
    yield from _fail(f"{helper}_check_result(op, {string(t.name)}, {blame}, {place})")
