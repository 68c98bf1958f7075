"""Narrowing of an op to calls with known values: they replace symbols and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opgen.spec.model.model import Definition, Expr, IndexRange, Number, Operation, OpSpec, Tensor
from opgen.spec.model.walk import transform

Facts = Mapping[Expr, int]


def narrow(e: Expr, facts: Facts) -> Expr:
    """Substitute known values in an expression, and drop factors of 1."""

    def known(n: Expr) -> Expr:
        if n in facts:
            return Number(facts[n])
        if isinstance(n, Operation) and n.op == "*":
            if n.left == Number(1):
                return n.right
            if n.right == Number(1):
                return n.left
        return n

    return transform(known, e) if facts else e


def narrow_tensor(tensor: Tensor, facts: Facts) -> Tensor:
    return replace(tensor, dims=tuple(replace(d, size=narrow(d.size, facts)) for d in tensor.dims))


def narrow_definition(definition: Definition, facts: Facts) -> Definition:
    return replace(
        definition,
        indices=tuple(IndexRange(r.name, narrow(r.extent, facts)) for r in definition.indices),
        subscripts=tuple(narrow(e, facts) for e in definition.subscripts),
        value=narrow(definition.value, facts),
        dims=tuple(narrow(e, facts) for e in definition.dims),
    )


def narrow_op(op: OpSpec, facts: Facts) -> OpSpec:
    """Substitute known values in an op's tensors and mathematics; its checks stay as they are."""
    return replace(
        op,
        inputs=tuple(narrow_tensor(i, facts) if isinstance(i, Tensor) else i for i in op.inputs),
        outputs=tuple(narrow_tensor(o, facts) for o in op.outputs),
        definitions=tuple(narrow_definition(d, facts) for d in op.definitions),
    )
