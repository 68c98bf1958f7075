"""Names of kernel parameters: the form of `strides.H` in a listing and in emitted code."""

from __future__ import annotations

import itertools

from opgen.diagnostics import InternalError
from opgen.spec.model.model import (
    AttrValue,
    Expr,
    FunctionCall,
    Operation,
    OpSpec,
    Present,
    ShapeLet,
    SizeOf,
    Symbol,
    Tensor,
    Whole,
)
from opgen.spec.model.walk import subexpressions


def parameter_name(op: OpSpec, e: Expr) -> str:
    """`in_height`, `strides_H`, `paddings_W_0`, `rate_1`, `x_size_0`: unique within an op, a C identifier."""
    match e:
        case Symbol():
            return e.name
        case AttrValue():
            return "_".join((e.attr, *_elements(op, e)))
        case SizeOf():
            return f"{e.tensor}_size_{e.axis}"
        case Present():
            return f"{e.attr}_present"
        case FunctionCall():
            arguments = (parameter_name(op, a) for a in e.arguments if isinstance(a, Symbol | AttrValue))
            return "_".join((e.function, str(e.result), *arguments))
        case Operation(op="pow") | Whole():
            leaves = [n for n in subexpressions(e) if isinstance(n, Symbol | AttrValue | SizeOf | FunctionCall)]
            what = e.function if isinstance(e, Whole) else "power"
            return "_".join((what, *(parameter_name(op, n) for n in leaves)))
    raise InternalError(f"no kernel parameter stands for {e!r}")


def _elements(op: OpSpec, e: AttrValue) -> tuple[str, ...]:
    layout = op.attr(e.attr).layout
    if layout is None or not e.element:
        return tuple(str(i) for i in e.element)
    letters = op.attr(layout).values[0]
    return (letters[e.element[0]], *(str(i) for i in e.element[1:]))


def reserved_names(op: OpSpec) -> frozenset[str]:
    """Return every name that a tensor or a parameter of the op may take; loops and accumulators take others."""
    tensors = (*op.tensors, *op.outputs)
    names = {t.name for t in tensors}
    forms = [t.dims for t in tensors] + [f for i in op.inputs if not isinstance(i, Tensor) for f in i.forms]
    names |= {f for dims in forms for d in dims for f in d.factors if isinstance(f, str)}
    names |= {n for check in op.checks if isinstance(check, ShapeLet) for n in check.names}
    names |= {parameter_name(op, SizeOf(t.name, axis)) for t in tensors for axis in range(t.rank)}
    for attr in op.attrs:
        for element in itertools.product(*(range(n) for n in attr.shape)):
            names.add(parameter_name(op, AttrValue(attr.name, element)))
    return frozenset(names)
