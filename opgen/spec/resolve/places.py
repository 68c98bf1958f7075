"""argmax and argmin: the index of the first term that is the greatest or least, or NaN.

    y[i] = argmax[j](x[i, j])

is rewritten as two reductions, so that no later package has to handle it:

    let y_max[i] = max[j](x[i, j])
    y[i] = int64(min[j if x[i, j] == y_max[i] or x[i, j] != x[i, j]](uint64(j)))

The result is -1 if all terms are absent, because `min` is then 2**64 - 1.
"""

from __future__ import annotations

from collections.abc import Iterable

from opgen.dtypes import INT64, UINT64
from opgen.spec.model import model as m
from opgen.spec.model.walk import index_names, reads_values, subexpressions
from opgen.spec.resolve.scope import Scope
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report

PLACES: dict[str, m.ReductionKind] = {"argmax": "max", "argmin": "min"}


def may_be_place(report: Report, tree: s.Reduction, inside: bool, terms: m.Reduce) -> bool:
    """True if argmax or argmin is allowed here; mistakes are noted.  `inside`: in a reduction or an update."""
    if inside:
        help = "name it before: let at[...] = " + tree.kind + "[...](...)"
        report.add("S013", f"'{tree.kind}' stands in no reduction and no update", tree.span, help)
    elif len(terms.indices) != 1:
        report.add("S021", f"'{tree.kind}' gives 1 index, found {len(terms.indices)}", tree.span)
    elif any(_is_costly(e) for part in (terms.body, terms.condition) if part is not None for e in subexpressions(part)):
        message = f"'{tree.kind}' takes no reductions, and no reads at indices that are values"
        report.add("S013", message, tree.body.span, "name what it takes before: let v[..., j] = ...")
    else:
        return True
    return False


def _is_costly(e: m.Expr) -> bool:
    """True if an expression must not be computed twice, or for terms that are skipped."""
    return isinstance(e, m.Reduce) or (isinstance(e, m.Read) and any(map(reads_values, e.indices)))


def place_of(terms: m.Reduce, best: m.Read, may_be_nan: bool) -> m.Expr:
    """Return the index of the first term that is `best` or NaN, or -1 if there are none."""
    holds: m.Expr = m.Operation("==", terms.body, best)
    if may_be_nan:
        holds = m.Operation("or", holds, m.Operation("!=", terms.body, terms.body))
    if terms.condition is not None:
        holds = m.Operation("and", terms.condition, holds)
    (index,) = terms.indices
    first = m.Reduce("min", terms.indices, m.Convert(UINT64.name, m.Index(index.name)), terms.span, holds)
    return m.Convert(INT64.name, first, terms.span)


def used_in(terms: m.Reduce, names: Iterable[str]) -> list[str]:
    """Return those of `names` that the terms depend on."""
    found = index_names(terms)
    return [n for n in names if n in found]


def fresh_name(scope: Scope, stem: str, taken: Iterable[str]) -> str:
    """Return a name that is neither used in the op nor in `taken`."""
    known = {*scope.known(), *scope.later, *scope.later_tensors, *taken}
    name, n = stem, 1
    while name in known:
        name, n = f"{stem}_{n}", n + 1
    return name
