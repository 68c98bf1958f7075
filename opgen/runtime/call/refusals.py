"""Reasons why a call's named integers, requirements or shapes cannot be computed, as every other language words them.

Generated checks compute with Python's integers and report no division by zero.  If one occurs, or if numbers are so
large that an intermediate one may not fit in 64 bits, the spec's own evaluator checks the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from opgen.diagnostics.calls import ArgumentValueError
from opgen.spec.call.arguments import CallError
from opgen.spec.call.shapes import AttrArgument, solve
from opgen.spec.model.model import Sizes

if TYPE_CHECKING:
    from opgen.spec.model.model import Module, OpSpec


def refusal(module: Module, op: OpSpec, tensors: Sequence[object], rest: Sequence[object]) -> ArgumentValueError | None:
    """Return the error for a call that cannot be computed, from the arguments of its check; None if it can be.

    Only the shapes of tensors count; one on a device may still have to be borrowed.
    """
    names = [t.name for t in op.tensors]
    given = dict(zip([n for n in op.signature if n not in names], rest, strict=True))
    vectors = [i.name for i in op.inputs if isinstance(i, Sizes)]
    attrs = {n: _plain(v) for n, v in given.items() if n not in vectors and n != "name"}
    shapes = {
        n: cast("tuple[int, ...]", getattr(getattr(t, "value", t), "shape", ()))
        for n, t in zip(names, tensors, strict=True)
    }
    sizes = {n: cast("list[int]", np.asarray(given[n]).tolist()) for n in vectors}
    try:
        solve(op, module, shapes, sizes, attrs)
    except CallError as error:
        return ArgumentValueError(op.title, error.argument, error.expected, error.given)
    return None


def _plain(value: object) -> AttrArgument:
    found = value.tolist() if isinstance(value, np.ndarray) else value
    return cast("AttrArgument", found.decode() if isinstance(found, bytes) else found)
