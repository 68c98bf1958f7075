"""Plain ops of calls: the op that a call makes of a generic op, or the op itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from opgen.diagnostics import InternalError, did_you_mean
from opgen.exact import Exact
from opgen.spec.call.arguments import CallError, CallTypeError, settle_attrs
from opgen.spec.call.environment import AttrStored
from opgen.spec.check.algorithms import with_algorithms
from opgen.spec.check.op import OpChecker
from opgen.spec.generic.attributes import plain_value
from opgen.spec.generic.equation import written_out
from opgen.spec.generic.expand import Expander
from opgen.spec.generic.form import Argument, Instance
from opgen.spec.generic.given import Call, call_of
from opgen.spec.generic.passing import AnyPassing
from opgen.spec.generic.prune import only_required, prune
from opgen.spec.model import model as m
from opgen.spec.model.visit import everything_in
from opgen.spec.resolve.scope import Scope
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.fragments import Fragments
from opgen.spec.syntax.report import Report
from opgen.spec.syntax.strings import plural

INSTANCES = 512
"""Greatest number of cached plain ops of a generic op (LRU): each takes some tens of kilobytes."""

_ROUNDS = 8
"""Greatest number of expansions of an op until all values that its structure depends on are known."""


def instance(
    module: m.Module,
    name: str,
    arguments: Sequence[Argument | None],
    attributes: Mapping[str, object],
    outputs: int | None = None,
) -> Instance:
    """Return the plain op for a call of an op of a module.

    `arguments` has one entry for each input, in order, None for an omitted optional one.  `outputs` is the number of
    results (default: all that are not optional).  Raises CallError or CallTypeError, naming the op and the argument,
    for an invalid call, and DiagnosticError if the spec is wrong.
    """
    generic = module.generic(name)
    if generic is None:
        return _plain(module, _op(module, name), arguments, attributes, outputs)
    return instance_of(generic, arguments, attributes, outputs)


def instance_of(
    generic: m.GenericOp,
    arguments: Sequence[Argument | None],
    attributes: Mapping[str, object],
    outputs: int | None = None,
) -> Instance:
    """Return the plain op for a call of a generic op; raise the errors of `instance`."""
    key = _key(arguments, attributes, outputs)
    kept = None if key is None else generic.instances.get(key)
    if isinstance(kept, Instance):
        generic.instances.move_to_end(key)
        return kept
    report = Report()
    made = make(report, written_out(call_of(generic, arguments, attributes, outputs)))
    report.raise_if_any()
    if made is None:
        raise InternalError(f"no instance of '{generic.name}', and no diagnostic")
    if key is not None:
        generic.instances[key] = made
        while len(generic.instances) > INSTANCES:
            generic.instances.popitem(last=False)
    return made


def passing_of(ops: m.Ops) -> Callable[[Scope, str], AnyPassing]:
    """Return the factory of checkers for calls of these ops inside another op."""
    return partial(AnyPassing, ops, instance_of)


def _key(arguments: Sequence[Argument | None], attributes: Mapping[str, object], outputs: int | None) -> object:
    """Return a key that distinguishes calls, also 0.0 from -0.0; None if an attribute is not a plain value."""
    given = tuple(sorted((n, type(v).__name__, Exact(_frozen(v))) for n, v in attributes.items()))
    key = (Exact(tuple(arguments)), given, outputs)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def make(report: Report, call: Call) -> Instance | None:
    """Make the plain op of a call, without the cache; mistakes of the spec go to the report."""
    found = expanded(report, call)
    return None if found is None else checked(report, call, *found)


def expanded(report: Report, call: Call) -> tuple[Expander, list[s.Item]] | None:
    """Expand a call until no new value is demanded; return the expander and the plain op's declarations."""
    known: frozenset[str] = frozenset()
    for _ in range(_ROUNDS):
        expander = Expander(report, call, known, instance_of)
        items = prune(expander.expand())
        if len(report):
            return None
        open_ = (expander.world.demanded & expander.world.left) | only_required(items) | expander.only
        if open_ <= known:
            return expander, items
        known |= open_
    raise InternalError(f"the structure of '{call.op.name}' does not settle")


def checked(report: Report, call: Call, expander: Expander, items: Sequence[s.Item]) -> Instance | None:
    """Resolve expanded declarations with the checker of plain ops."""
    world = expander.world
    decl = s.OpDecl(call.op.decl.span, call.op.decl.name, call.op.decl.doc, tuple(_blaming_arguments(items)))
    functions = {f.name: f for f in call.op.functions}
    op = OpChecker(report, decl, Fragments(()), functions, passing_of(call.op.ops)).check()
    op = None if op is None else with_algorithms(report, decl, op, Fragments(()), functions)
    if op is None:
        return None
    types = {v.name: expander.narrowed.types[v.name] for v in op.type_variables}
    stored = {a.name: world.attributes[a.name].value for a in op.attrs}
    return Instance(op, functions_of(op, functions), types, stored, _positions(op, call, world.tensors_of))


def _blaming_arguments(items: Sequence[s.Item]) -> Iterator[s.Item]:
    """Redirect requirements that blame a missing argument to the last remaining one."""
    arguments = [
        i.name.name
        for i in items
        if isinstance(i, s.AttrDecl) or (isinstance(i, s.TensorDecl) and i.keyword == "input")
    ]
    for item in items:
        if isinstance(item, s.RequireDecl) and item.argument.name not in arguments and arguments:
            item = dataclasses.replace(item, argument=s.Ident(item.argument.span, arguments[-1]))
        yield item


def _positions(op: m.OpSpec, call: Call, several: Mapping[str, tuple[str, ...]]) -> tuple[int, ...]:
    """Return the position in the call of the argument for each input of a plain op."""
    at = {
        name: position
        for given, tensors in call.inputs.items()
        for name, position in zip(several.get(given, (given,)), tensors.positions, strict=True)
    }
    return tuple(at[i.name] for i in op.inputs)


def functions_of(op: m.OpSpec, known: Mapping[str, m.Function]) -> tuple[m.Function, ...]:
    """Return the shape functions that an op calls, directly or indirectly, in the order of their module."""
    waiting = [e for c in op.checks for e in ((c.value,) if isinstance(c, m.ShapeLet) else (c.condition, *_spoken(c)))]
    waiting += [d.size for t in (*op.tensors, *op.outputs) for d in t.dims]
    for definition in (*op.definitions, *(d for a in op.algorithms for d in a.definitions)):
        waiting += [definition.value, *definition.subscripts, *definition.dims, *(r.extent for r in definition.indices)]
    found: set[str] = set()
    while waiting:
        for node in everything_in(waiting.pop()):
            if isinstance(node, m.FunctionCall) and node.function not in found:
                found.add(node.function)
                function = known[node.function]
                waiting += [*(v for _, v in function.lets), *function.results]
    return tuple(f for name, f in known.items() if name in found)


def _spoken(check: m.Require) -> tuple[m.Expr, ...]:
    return tuple(p for p in check.expected if not isinstance(p, str))


# Ops that leave nothing open ------------------------------------------------------------------------


def _op(module: m.Module, name: str) -> m.OpSpec:
    found = module.plain(name)
    if found is None:
        near = did_you_mean(name, [*(o.name for o in module.ops), *(g.name for g in module.generics)])
        raise CallTypeError(name, name, "an op of the module" + (f" ({near})" if near else ""), repr(name))
    return found


def _plain(
    module: m.Module,
    op: m.OpSpec,
    arguments: Sequence[Argument | None],
    attributes: Mapping[str, object],
    outputs: int | None,
) -> Instance:
    """Check the argument types of a plain op; the values of `sizes` inputs count as attributes."""
    if outputs is not None and outputs > len(op.outputs):
        raise CallTypeError(op.name, op.name, f"at most {plural(len(op.outputs), 'result')}", str(outputs))
    if len(arguments) < len(op.inputs):
        arguments = [*arguments, *[None] * (len(op.inputs) - len(arguments))]
    if len(arguments) != len(op.inputs):
        given = plural(len(arguments), "argument")
        raise CallTypeError(op.name, op.inputs[0].name, plural(len(op.inputs), "tensor"), given)
    types: dict[str, str] = {}
    stored: dict[str, AttrStored] = {}
    for entry, argument in zip(op.inputs, arguments, strict=True):
        if argument is None:
            raise CallTypeError(op.name, entry.name, "a tensor", "nothing")
        if isinstance(entry, m.Sizes):
            value = argument.value
            if value is None:
                raise CallError(
                    op.name, entry.name, "values that are known before the call runs", "a tensor that is computed"
                )
            stored[entry.name] = value if isinstance(value, tuple) else (value,)
            continue
        if argument.shape_rank != entry.rank:
            raise CallError(op.name, entry.name, f"a tensor of rank {entry.rank}", f"rank {argument.shape_rank}")
        _bind(op, entry, argument, types)
    settled, _ = settle_attrs(op, {n: plain_value(v) for n, v in attributes.items()})
    functions = {f.name: f for f in module.functions}
    positions = tuple(at for at, entry in enumerate(op.inputs) if isinstance(entry, m.Tensor))
    return Instance(op, functions_of(op, functions), types, {**settled, **stored}, positions)


def _bind(op: m.OpSpec, entry: m.Tensor, argument: Argument, types: dict[str, str]) -> None:
    variable = op.type_variable(entry.dtype)
    allowed = [entry.dtype] if variable is None else [t.name for t in variable.allowed]
    if variable is not None and entry.dtype in types:
        allowed = [types[entry.dtype]]
    if argument.dtype not in allowed:
        expected = f"a tensor of type {' or '.join(allowed)}"
        raise CallTypeError(op.name, entry.name, expected, f"type {argument.dtype}")
    if variable is not None:
        types[entry.dtype] = argument.dtype
