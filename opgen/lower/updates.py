"""Updates of a tensor: loops over all of them, in order, after the loops that compute its first values.

for i:
    for j:
        y[at(i), j] = y[at(i), j] + values[i, j]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from opgen.dtypes import DType
from opgen.loop import build as b
from opgen.loop import nodes as loop
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import For, Load, Stmt, Store
from opgen.loop.walk import free_vars
from opgen.lower.mathematics import Mathematics, parted
from opgen.lower.scalars import Scalars
from opgen.lower.scope import Names, Scope, TensorAccess
from opgen.spec.model.model import Definition, Read, Scatter
from opgen.spec.model.walk import conjuncts, reads_values
from opgen.spec.resolve.updates import layers

_STEP: dict[str, loop.BinaryOp] = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def rounded_once(
    definitions: Sequence[Definition], dtype: Callable[[str], DType], fresh: Callable[[str], str]
) -> tuple[Definition, ...]:
    """Return the definitions; an output with updates is computed in a tensor of the compute type, then rounded once."""
    found: list[Definition] = []
    for d in definitions:
        held = dtype(d.dtype)
        if not d.is_output or not isinstance(d.value, Scatter) or held == held.compute_type:
            found.append(d)
            continue
        own = replace(d, tensor=fresh(f"{d.tensor}_updated"), is_output=False)
        found += [own, replace(d, value=Read(own.tensor, d.subscripts, span=d.span))]
    return tuple(found)


def update_nests(
    definition: Definition,
    access: TensorAccess,
    mathematics: Callable[[], Mathematics],
    scalars: Scalars,
    names: Names,
    context: Context,
) -> list[Stmt]:
    """Return a nest for each update of a definition, in order."""
    _, updates = layers(definition.value)
    return [_nest(u, access, mathematics(), scalars, names, context) for u in updates]


def _nest(
    e: Scatter, access: TensorAccess, mathematics: Mathematics, scalars: Scalars, names: Names, context: Context
) -> Stmt:
    variables: dict[str, loop.Var] = {}
    extents: dict[str, loop.Expr] = {}
    for r in e.indices:
        extents[r.name] = scalars.lower(r.extent, variables)
        variables[r.name] = b.var(names.fresh(r.name))
        context = context.with_loop(variables[r.name].name, b.index(0), extents[r.name])
    scope = Scope(variables, context, [])
    on_values = [c for c in conjuncts(e.condition) if reads_values(c)]
    known = [mathematics.condition(c, scope) for c in conjuncts(e.condition) if c not in on_values]
    if any(c == b.FALSE for c in known):
        return b.EMPTY
    scope.conditions = [c for given in known for c in parted(given) if not context.proves(c)]
    scope.context = context.with_condition(b.all_of(known))
    scope.late += [mathematics.condition(c, scope) for c in on_values]
    place = mathematics.place(e.at, access, scope)
    dtype = access.buffer.dtype
    body = mathematics.definition(e.body, dtype.compute_type, scope)
    if e.kind != "set":
        body = loop.Binary(_STEP[e.kind], Load(access.buffer.name, place, dtype), body)
    store = b.when(b.all_of(dict.fromkeys(scope.late)), Store(access.buffer.name, place, body))
    scope.allocs += mathematics.shared()
    return _loops(scope.wrap([store]), variables, extents, scope.conditions)


def _loops(
    nest: Stmt, variables: Mapping[str, loop.Var], extents: Mapping[str, loop.Expr], conditions: Iterable[loop.Expr]
) -> Stmt:
    """Return the loops around an update, each condition at the outermost at which it is decided."""
    pending = list(dict.fromkeys(conditions))
    for name in reversed(list(variables)):
        here = [c for c in pending if variables[name].name in free_vars(c)]
        pending = [c for c in pending if c not in here]
        nest = For(variables[name].name, b.index(0), extents[name], b.when(b.all_of(here), nest))
    return b.when(b.all_of(pending), nest)
