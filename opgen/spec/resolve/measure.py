"""Size limits of an op: its declarations, counted before it is built, and the expressions of the built op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from opgen.diagnostics import Span
from opgen.spec.model import model as m
from opgen.spec.model.visit import everything_in, structural_attrs
from opgen.spec.model.walk import operands
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import (
    ATTRIBUTES,
    ELEMENTS,
    EXAMPLES,
    FORMS,
    NODES,
    RANK,
    SIGNATURES,
    SPECIALIZATIONS,
    STEPS,
    TENSORS,
    VARIANTS,
    WORDS,
)
from opgen.spec.syntax.report import Report


def fits(report: Report, decl: s.OpDecl, items: Sequence[s.Item]) -> bool:
    """Note declarations beyond the limits; return True if there are none.  `items` have their fragments expanded."""
    before = len(report)
    where = decl.name.span
    tensors = [i for i in items if isinstance(i, s.TensorDecl | s.SizesDecl | s.InheritedDecl)]
    attrs = [i for i in items if isinstance(i, s.AttrDecl)]
    report.at_most(len(tensors), TENSORS, "inputs and outputs", where)
    report.at_most(len(attrs), ATTRIBUTES, "attributes", where)
    report.at_most(sum(isinstance(i, s.SignatureDecl) for i in items), SIGNATURES, "signatures", where)
    report.at_most(sum(isinstance(i, s.ExampleDecl) for i in items), EXAMPLES, "examples", where)
    report.at_most(sum(isinstance(i, s.SpecializeDecl) for i in items), SPECIALIZATIONS, "specializations", where)
    for tensor in tensors:
        if isinstance(tensor, s.SizesDecl):
            report.at_most(len(tensor.forms), FORMS, "forms of sizes", tensor.name.span)
        for dims in [f.dims for f in tensor.forms] if isinstance(tensor, s.SizesDecl) else [_dims(tensor)]:
            report.at_most(len(dims), RANK, "dimensions", tensor.name.span)
    for attr in attrs:
        report.at_most(len(attr.type.words), WORDS, "words", attr.name.span)
        elements = prod([int(size[:9]) for size in attr.type.shape[:2] if isinstance(size, str)])
        report.at_most(elements, ELEMENTS, "elements of a list", attr.type.span)
    return len(report) == before


def _dims(tensor: s.TensorDecl | s.InheritedDecl) -> tuple[s.Dim, ...]:
    return tensor.dims if isinstance(tensor, s.TensorDecl) else ()


class Measure:
    """Counter of a module's expressions, op by op: `steps` of shapes, `nodes` of mathematics.

    A call of a shape function counts as the number of expressions it evaluates, given by `costs`.
    """

    def __init__(self, report: Report, costs: Mapping[str, int]) -> None:
        self._report = report
        self._costs = costs
        self.steps = 0
        self.nodes = 0

    def add(self, op: m.OpSpec, span: Span) -> None:
        """Add an op.  Raises DiagnosticError if the module then exceeds a limit."""
        shapes = [e for check in op.checks for e in in_check(check)]
        shapes += [d.size for t in (*op.tensors, *op.outputs) for d in t.dims]
        self.steps += size(shapes, self._costs) * (1 + len(op.examples))
        definitions = (*op.definitions, *(d for a in op.algorithms for d in a.definitions))
        self.nodes += size((e for d in definitions for e in in_definition(d)), self._costs)
        variants = prod(len(v.allowed) for v in op.type_variables)
        variants *= prod(len(a.values) for a in structural_attrs(op))
        report = self._report
        report.stop_beyond(variants, VARIANTS, f"kernels for the types, layouts and words of '{op.name}'", span)
        report.stop_beyond(self.steps, STEPS, "steps to work out shapes", span)
        report.stop_beyond(self.nodes, NODES, "expressions in the mathematics", span)


def weight(op: m.OpSpec) -> int:
    """Return an op's scheduling weight: its expressions, its constants' numbers, and a loop nest per definition."""
    expressions = [e for d in op.definitions for e in in_definition(d)]
    numbers = sum(len(n.constant.values) for e in expressions for n in everything_in(e) if isinstance(n, m.Element))
    return size(expressions, {}) + numbers + _NEST * len(op.definitions)


_NEST = 8
"""Weight of a definition's loop nest, in expressions."""


def in_check(check: m.ShapeLet | m.Require) -> tuple[m.Expr, ...]:
    """Return the expressions of a `let` or a requirement; a `let` of several names counts one call per name."""
    if isinstance(check, m.ShapeLet):
        return (check.value,) * len(check.names)
    return (check.condition, *(p for p in check.expected if not isinstance(p, str)))


def in_definition(definition: m.Definition) -> tuple[m.Expr, ...]:
    """Return the expressions of a definition."""
    return (definition.value, *definition.subscripts, *definition.dims, *(r.extent for r in definition.indices))


def size(expressions: Iterable[m.Expr], costs: Mapping[str, int]) -> int:
    """Return the number of expressions if shared ones count at each use; the time is linear in distinct ones.

    `costs` are the costs of calls of shape functions.
    """
    known: dict[int, int] = {}
    total = 0
    for root in expressions:
        stack = [root]
        while stack:
            e = stack[-1]
            inside = _inside(e)
            waiting = [i for i in inside if id(i) not in known]
            if waiting and id(e) not in known:
                stack += waiting
                continue
            stack.pop()
            own = costs.get(e.function, 0) if isinstance(e, m.FunctionCall) else 1
            known.setdefault(id(e), own + sum(known[id(i)] for i in inside))
        total += known[id(root)]
    return total


def _inside(e: m.Expr) -> tuple[m.Expr, ...]:
    return (*operands(e), *(r.extent for r in e.indices)) if isinstance(e, m.Reduce) else operands(e)
