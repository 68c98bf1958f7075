"""Limits on the numbers of a call under which a lowered kernel is correct, and messages for numbers beyond them.

Every language's calls check this before a kernel runs: the words are made here, the numbers are put in by the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opgen.loop.analysis.claims import reach_of
from opgen.loop.analysis.reach import Claim, Reach
from opgen.lower.lowering import Lowered
from opgen.spec.model.model import (
    AttrValue,
    Expr,
    FunctionCall,
    Number,
    Operation,
    OpSpec,
    Present,
    ShapeLet,
    SizeOf,
    Sizes,
    Symbol,
    Tensor,
    Whole,
)
from opgen.spec.model.visit import attrs_in, symbols_in


@dataclass(frozen=True)
class Limits:
    """The claims of a kernel.  Each parameter has a reader's name for it, and the argument that it comes from."""

    op: str
    reach: Reach
    labels: tuple[str, ...]
    arguments: tuple[str, ...]
    attributes: frozenset[str]

    def blamed(self, claim: Claim) -> str:
        """Return the argument to blame: the attribute if one plays a part, else the first such input, else the op."""
        found = [self.arguments[p] for p in claim.parameters]
        return next((a for a in found if a in self.attributes), found[0] if found else self.op)

    def given(self, claim: Claim, values: Sequence[int]) -> str:
        """Return the given numbers in the words of a message."""
        return ", ".join(f"{self.labels[p]} = {values[p]}" for p in claim.parameters) or "none"


def limits_of(op: OpSpec, lowered: Lowered) -> Limits:
    """Return the limits of a kernel of an op (or of an algorithm of it)."""
    labels = tuple(label(op, e) for e in lowered.arguments)
    names = [p.name for p in lowered.kernel.parameters]
    return Limits(
        op.name,
        reach_of(lowered.kernel, dict(zip(names, labels, strict=True))),
        labels,
        tuple(origin(op, e) for e in lowered.arguments),
        frozenset(a.name for a in op.attrs),
    )


def expected(claim: Claim) -> str:
    """Return the text that completes "expected ..." for a claim that does not hold."""
    return f"numbers for which {claim.text}"


def uncomputed(op: OpSpec, e: Expr) -> str:
    """Return the text that completes "expected ..." if the value of a parameter cannot be computed."""
    return f"numbers for which {label(op, e)} can be computed"


def label(op: OpSpec, e: Expr) -> str:
    """Return the spec's name for a parameter's value: `strides.H`, `size(x, 0)`."""
    match e:
        case Symbol():
            return e.name
        case AttrValue():
            layout = op.attr(e.attr).layout
            if layout is None or not e.element:
                return e.attr + "".join(f"[{i}]" for i in e.element)
            letter = op.attr(layout).values[0][e.element[0]]
            return f"{e.attr}.{letter}" + "".join(f"[{i}]" for i in e.element[1:])
        case SizeOf():
            return f"size({e.tensor}, {e.axis})"
        case Present():
            return f"present({e.attr})"
        case FunctionCall() | Whole():
            return e.function
        case Operation(op="pow"):
            return f"pow({label(op, e.left)}, {label(op, e.right)})"
        case Number():
            return str(e.value)
    return "a number"


def origin(op: OpSpec, e: Expr) -> str:
    """Return the argument that a value comes from: an attribute that it depends on, else an input, else the op."""
    if isinstance(e, SizeOf):
        return e.tensor
    lets = {n: c.value for c in op.checks if isinstance(c, ShapeLet) for n in c.names}
    pending: list[Expr] = [e]
    seen: set[str] = set()
    while pending:
        part = pending.pop()
        if attrs := [a.name for a in op.attrs if a.name in attrs_in(part) and a.kind not in ("enum", "layout")]:
            return attrs[0]
        for name in sorted(symbols_in(part) - seen):
            seen.add(name)
            pending += [lets[name]] if name in lets else []
    return next((i.name for i in op.inputs if _names(i) & seen), op.inputs[0].name if op.inputs else op.name)


def _names(given: Tensor | Sizes) -> set[str]:
    """Return the symbols in an input's dimensions."""
    forms = (given.dims,) if isinstance(given, Tensor) else given.forms
    return {f for dims in forms for d in dims for f in d.factors if isinstance(f, str)}
