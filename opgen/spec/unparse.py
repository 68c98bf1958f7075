"""A model as the spec that a person would have written: fragments expanded, ranges of all indices written.

The printer of specs lays out the result.  `opgen check` accepts it, unless it contains `size(x, axis)`: then it is the
gradient of an op with a broadcast dimension.  A derived gradient becomes an op with mathematics of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opgen.spec.check.signature import default_signature
from opgen.spec.model import model as m
from opgen.spec.model.unparse_expression import NOWHERE, Expressions, fraction, ident, named
from opgen.spec.model.visit import called_functions, everything_in
from opgen.spec.resolve.updates import layers, word_of
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.pretty import render
from opgen.spec.syntax.print_expression import expression
from opgen.spec.syntax.printer import format_file, print_item
from opgen.spec.syntax.trivia import Trivia


def write_op(module: m.Module, op: m.OpSpec) -> str:
    """Return the text of an op, after the shape functions that it calls."""
    groups = _groups(op)
    items = tuple(item for group in groups for item in group)
    file = s.File(
        NOWHERE.source, None, (*_functions(module, op), s.OpDecl(NOWHERE, ident(op.name), _doc(op.doc), items))
    )
    return format_file(file, _Gaps(after_gap=tuple(group[0] for group in groups if group)))


def write_algorithm(op: m.OpSpec, algorithm: m.Algorithm) -> str:
    """Return the text of an algorithm, as part of its op."""
    return print_item(_algorithm(op, algorithm))


@dataclass
class _Gaps(Trivia):
    """Trivia with blank lines before some declarations."""

    after_gap: tuple[s.Item, ...] = ()

    def blank_before(self, tree: s.Node) -> bool:
        return any(tree is item for item in self.after_gap)


def _groups(op: m.OpSpec) -> list[list[s.Item]]:
    """Return the declarations of an op, in groups."""
    signature: list[s.Item] = []
    if op.signatures:
        signature += map(_signature, op.signatures)
    elif op.signature != default_signature(op.inputs, op.attrs):
        signature.append(s.SignatureDecl(NOWHERE, tuple(s.Taken(NOWHERE, ident(n)) for n in op.signature)))
    inputs = [_tensor(op, "input", i) if isinstance(i, m.Tensor) else _sizes(op, i) for i in op.inputs]
    groups: list[list[s.Item]] = [
        signature,
        [*_types(op.type_variables)],
        [*inputs, *(_attr(op, a) for a in op.attrs), *(_tensor(op, "output", o) for o in op.outputs)],
        [_check(op, c) for c in op.checks],
        [*_mathematics(op, op.definitions)],
    ]
    groups += [[_algorithm(op, a)] for a in op.algorithms]
    groups.append([_specialization(v) for v in op.specializations])
    groups += [[s.ExampleDecl(NOWHERE, s.Text(NOWHERE, e.title), _entries(e.values))] for e in op.examples]
    return groups


def _algorithm(op: m.OpSpec, algorithm: m.Algorithm) -> s.AlgorithmDecl:
    items: list[s.Item] = [*_types(algorithm.type_variables)]
    if algorithm.condition is not None:
        items.append(s.WhenDecl(NOWHERE, _expressions(op).of(algorithm.condition)))
    items += _mathematics(op, algorithm.definitions)
    return s.AlgorithmDecl(NOWHERE, ident(algorithm.name), algorithm.optional, _doc(algorithm.doc), tuple(items))


# Signatures -----------------------------------------------------------------------------------------


def _signature(signature: m.Signature) -> s.SignatureDecl:
    function = ident(signature.function) if signature.function else None
    return s.SignatureDecl(NOWHERE, tuple(map(_taken, signature.arguments)), s.Text(NOWHERE, signature.label), function)


def _taken(argument: m.SignatureArgument) -> s.Taken:
    other = next((c for c in argument.called if c != argument.name), None)
    form: s.Elements | s.InPlace | None = None
    if isinstance(argument.form, m.Elements):
        fill = s.Constant(NOWHERE, str(argument.form.fill))
        form = s.Elements(NOWHERE, tuple(map(ident, argument.form.letters)), fill)
    elif argument.form is not None:
        form = s.InPlace(NOWHERE, ident(argument.form.word), ident(argument.form.payload))
    return s.Taken(
        NOWHERE,
        ident(argument.name),
        None if other is None else ident(other),
        other is not None and argument.name in argument.called,
        form,
        None if argument.default is None else _value(argument.default),
    )


# The interface --------------------------------------------------------------------------------------


def _doc(text: str) -> s.Doc | None:
    return s.Doc(NOWHERE, text) if text else None


def _types(variables: Iterable[m.TypeVariable]) -> Iterator[s.TypeDecl]:
    for v in variables:
        yield s.TypeDecl(NOWHERE, ident(v.name), tuple(ident(t.name) for t in v.allowed))


def _dims(op: m.OpSpec, dims: Iterable[m.Dimension]) -> tuple[s.Dim, ...]:
    written = _expressions(op)
    return tuple(s.Dim(NOWHERE, written.of(d.size), "1" if d.broadcast else None) for d in dims)


def _tensor(op: m.OpSpec, keyword: str, tensor: m.Tensor) -> s.TensorDecl:
    layout = None if tensor.layout is None else ident(tensor.layout)
    return s.TensorDecl(
        NOWHERE,
        "input" if keyword == "input" else "output",
        ident(tensor.name),
        ident(tensor.dtype),
        _dims(op, tensor.dims),
        layout,
        tensor.shape_only,
        _doc(tensor.doc),
    )


def _sizes(op: m.OpSpec, sizes: m.Sizes) -> s.SizesDecl:
    bindings = sizes.bindings or ((),) * len(sizes.forms)
    forms = tuple(
        s.Form(
            NOWHERE,
            _dims(op, dims),
            None if layout is None else ident(layout),
            tuple(s.Binding(NOWHERE, ident(name), str(value)) for name, value in bound),
        )
        for dims, layout, bound in zip(sizes.forms, sizes.layouts, bindings, strict=True)
    )
    return s.SizesDecl(NOWHERE, ident(sizes.name), forms, _doc(sizes.doc))


def _attr(op: m.OpSpec, attr: m.Attr) -> s.AttrDecl:
    payload = {} if attr.payload is None else {attr.payload[0]: ident(attr.payload[1])}
    words = tuple(s.Word(NOWHERE, ident(v), payload.get(v)) for v in attr.values)
    kind = s.AttrType(NOWHERE, ident("int64" if attr.wide else attr.kind), tuple(map(str, attr.shape)), words)
    return s.AttrDecl(
        NOWHERE,
        ident(attr.name),
        kind,
        None if attr.minimum is None else s.Constant(NOWHERE, str(attr.minimum)),
        None if attr.maximum is None else s.Constant(NOWHERE, str(attr.maximum)),
        None if attr.layout is None else ident(attr.layout),
        None if not attr.has_default or attr.default is None else _value(attr.default),
        attr.compatibility,
        None if attr.deprecated is None else s.Text(NOWHERE, attr.deprecated),
        None if attr.alias is None else ident(attr.alias),
        _doc(attr.doc),
        attr.counter,
    )


def _value(value: m.ExampleValue) -> s.Value:
    """Return a literal in a default or an example."""
    if isinstance(value, tuple):
        return s.ListValue(NOWHERE, tuple(map(_value, value)))
    if isinstance(value, str):
        return named(value)
    if isinstance(value, bool):
        return named(str(value).lower())
    if isinstance(value, float) and not math.isfinite(value):
        return named(repr(value))
    return s.Constant(NOWHERE, repr(value))


def _entries(values: Iterable[tuple[str, m.ExampleValue]]) -> tuple[s.Entry, ...]:
    return tuple(s.Entry(NOWHERE, ident(name), _value(value)) for name, value in values)


def _specialization(given: m.Specialization) -> s.SpecializeDecl:
    return s.SpecializeDecl(NOWHERE, _entries(given.values))


# Integers and requirements --------------------------------------------------------------------------


def _functions(module: m.Module, op: m.OpSpec) -> Iterator[s.FunctionDecl]:
    """Yield the functions that an op calls, directly or indirectly, each before its callers."""
    return map(_function, called_functions(module.functions, op))


def _function(function: m.Function) -> s.FunctionDecl:
    written = Expressions({})
    parameters = (s.ParameterDecl(NOWHERE, ident(p.name), tuple(map(ident, p.values))) for p in function.parameters)
    lets = (s.LetDecl(NOWHERE, (ident(name),), written.of(value)) for name, value in function.lets)
    return s.FunctionDecl(
        NOWHERE,
        ident(function.name),
        tuple(parameters),
        tuple(map(ident, function.result_names)),
        _doc(function.doc),
        tuple(lets),
        s.ReturnDecl(NOWHERE, written.all(function.results)),
    )


def _check(op: m.OpSpec, check: m.ShapeLet | m.Require) -> s.Item:
    written = _expressions(op)
    if isinstance(check, m.ShapeLet):
        return s.LetDecl(NOWHERE, tuple(map(ident, check.names)), written.of(check.value))
    pieces = (_escaped(p) if isinstance(p, str) else "{" + _inline(written.of(p)) + "}" for p in check.expected)
    message = s.Text(NOWHERE, "".join(pieces))
    return s.RequireDecl(NOWHERE, written.of(check.condition), ident(check.argument), message)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _inline(tree: s.Expression) -> str:
    return " ".join(render(expression(tree), 10**6).split())


# Mathematics ----------------------------------------------------------------------------------------


def _expressions(op: m.OpSpec) -> Expressions:
    return Expressions({a.name: a for a in op.attrs})


def _mathematics(op: m.OpSpec, definitions: Iterable[m.Definition]) -> Iterator[s.Item]:
    """Yield the constants that definitions read, then the definitions."""
    given = tuple(definitions)
    read = {n.constant: None for d in given for n in everything_in(d.value) if isinstance(n, m.Element)}
    for table in read:
        yield s.ConstantDecl(NOWHERE, ident(table.name), tuple(map(str, table.shape)), _table(table, ()))
    written = _expressions(op)
    for d in given:
        where = () if d.is_output else written.ranges(d.indices)
        start, updates = layers(d.value)
        yield s.DefinitionDecl(
            NOWHERE, not d.is_output, ident(d.tensor), written.all(d.subscripts), written.of(start), where
        )
        for u in updates:
            yield s.DefinitionDecl(
                NOWHERE,
                False,
                ident(d.tensor),
                written.all(u.at),
                written.of(u.body),
                written.ranges(u.indices),
                word_of(u.kind),
                None if u.condition is None else written.of(u.condition),
            )


def _table(table: m.Constant, position: tuple[int, ...]) -> s.Table:
    axis = len(position)
    rows = [(*position, i) for i in range(table.shape[axis])]
    if axis + 1 == len(table.shape):
        return s.Table(NOWHERE, tuple(fraction(table.at(p)) for p in rows))
    return s.Table(NOWHERE, tuple(_table(table, p) for p in rows))
