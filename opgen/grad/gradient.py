"""Gradient ops: an `OpSpec` with derived mathematics.

`gradient` makes one for any op.  It takes the op's inputs and the gradients with respect to its outputs, and returns
the gradient with respect to one input.  `expand` derives the mathematics of a declared gradient (`gradient of F with
respect to x`).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import replace

from opgen.diagnostics import Diagnostic, DiagnosticError, did_you_mean
from opgen.dtypes import DType, lookup
from opgen.grad.adjoint import adjoint
from opgen.grad.compose import compose
from opgen.spec.check.gradients import result_dims
from opgen.spec.model.model import Algorithm, Definition, Expr, Gradient, Module, OpSpec, Sizes, Tensor, TypeVariable
from opgen.spec.model.narrow import narrow_op, narrow_tensor
from opgen.spec.model.walk import reads
from opgen.spec.resolve.measure import size
from opgen.spec.syntax.limits import GROWTH


def gradient(module: Module, op: OpSpec, wrt: str) -> OpSpec:
    """Return the gradient of `op` with respect to one of its inputs, as an op.

    It takes all inputs of `op` (`shape_only` if their values are unused), then `grad_<output>` for each output, in the
    output's shape, then the attributes of `op`.  It returns `grad_<wrt>` in the shape of that input.
    """
    forward = expand(module, op)
    _bounded(op, forward.definitions)
    target = _differentiable(forward, wrt)
    taken = {i.name for i in forward.inputs} | {a.name for a in forward.attrs} | {a.alias for a in forward.attrs}
    seeds = {o.name: _fresh(f"grad_{o.name}", taken) for o in forward.outputs}
    cotangents = tuple(_cotangent(o, seeds[o.name]) for o in forward.outputs)
    result = replace(
        target, name=f"grad_{wrt}", dims=result_dims(target), doc=f"The gradient with respect to `{wrt}`.",
        follows=False,
    )  # fmt: skip
    definitions = adjoint(forward, wrt, seeds, result)
    used = {r.tensor for d in definitions for r in reads(d.value)}
    inputs = tuple(
        i if isinstance(i, Sizes) else replace(i, shape_only=i.shape_only or i.name not in used)
        for i in forward.inputs
    )  # fmt: skip
    names = [i.name for i in (*inputs, *cotangents)]
    attrs = [n for n in forward.signature if n not in {i.name for i in forward.inputs}]
    return replace(
        forward,
        name=f"{op.name}Gradient_{wrt}",
        function_name=f"{op.function_name}_gradient_{wrt}",
        signature=(*names, *attrs),
        signatures=(),
        type_variables=tuple(_floating(v) for v in forward.type_variables),
        inputs=(*inputs, *cotangents),
        outputs=(result,),
        definitions=definitions,
        algorithms=(),
        gradient=Gradient(op.name, wrt, None, tuple(seeds.values())),
        examples=(),
        doc=f"The gradient of `{op.name}` with respect to `{wrt}`, derived from its mathematics.\n\n{op.doc}".strip(),
    )


def expand(module: Module, op: OpSpec) -> OpSpec:
    """Return the op; for a declared gradient, derive its definitions.

    Raises DiagnosticError if that is impossible, or if they need values that the op does not take.
    """
    if op.gradient is None or op.definitions:
        return op
    forward = expand(module, module.op(op.gradient.op))
    _bounded(op, forward.definitions)
    wrt = _differentiable(forward, op.gradient.wrt)
    seeds = dict(zip((o.name for o in forward.outputs), op.gradient.cotangents, strict=True))
    definitions = adjoint(forward, wrt.name, seeds, op.outputs[0])
    _check_reads(op, definitions)
    own = {a.name for a in op.algorithms}
    derived = (_derived(op, forward, a, wrt.name, seeds) for a in forward.algorithms if a.name not in own)
    algorithms = (*op.algorithms, *(a for a in derived if a is not None))
    return replace(op, definitions=definitions, algorithms=algorithms)


def _bounded(op: OpSpec, definitions: tuple[Definition, ...]) -> None:
    """Raise DiagnosticError if the derivative may be too large."""
    growth = sum(size((d.value,), {}) ** 2 for d in definitions)
    if growth > GROWTH:
        message = f"the derivative would have up to {growth:,} expressions: at most {GROWTH:,} are taken on"
        raise DiagnosticError([Diagnostic("S005", message, op.span, "name parts with `let`")])


def _derived(op: OpSpec, forward: OpSpec, algorithm: Algorithm, wrt: str, seeds: Mapping[str, str]) -> Algorithm | None:
    """Return the adjoint of an algorithm; None if it has none, or needs values that the gradient does not take."""
    facts = dict(algorithm.facts)
    narrowed = replace(narrow_op(forward, facts), definitions=algorithm.definitions)
    try:
        _bounded(op, narrowed.definitions)
        definitions = adjoint(narrowed, wrt, seeds, narrow_tensor(op.outputs[0], facts))
        definitions = compose(definitions, functools.partial(_size, narrow_op(op, facts)))
        _check_reads(op, definitions)
    except DiagnosticError:
        return None
    types = {v.name: v.allowed for v in op.type_variables}
    variables = (replace(v, allowed=_common(v, types[v.name])) for v in algorithm.type_variables)
    return replace(algorithm, type_variables=tuple(variables), definitions=definitions)


def _size(op: OpSpec, tensor: str, axis: int) -> Expr | None:
    found = next((t for t in op.tensors if t.name == tensor), None)
    return None if found is None or found.dims[axis].broadcast else found.dims[axis].size


def _common(variable: TypeVariable, allowed: Collection[DType]) -> tuple[DType, ...]:
    return tuple(t for t in variable.allowed if t in allowed)


def _check_reads(op: OpSpec, definitions: tuple[Definition, ...]) -> None:
    """Raise DiagnosticError unless the mathematics read exactly the values that the op takes."""
    used = {r.tensor for d in definitions for r in reads(d.value)} - {d.tensor for d in definitions}
    given = {t.name: t for t in op.tensors}
    found: list[Diagnostic] = []
    for name in sorted(used):
        if name not in given:
            message = f"the gradient depends on the values of '{name}', which is no input of '{op.name}'"
            found.append(Diagnostic("S060", message, op.span, f"write input {name}"))
        elif given[name].shape_only:
            message = f"the gradient depends on the values of '{name}': it is not shape_only"
            found.append(Diagnostic("S060", message, given[name].span))
    for t in op.tensors:
        if t.name not in used and not t.shape_only:
            message = f"the gradient does not depend on the values of '{t.name}'"
            found.append(Diagnostic("S033", message, t.span, "mark it shape_only if only its shape counts"))
    if found:
        raise DiagnosticError(found)


def _differentiable(op: OpSpec, wrt: str) -> Tensor:
    found = next((t for t in op.tensors if t.name == wrt), None)
    if found is None:
        known = [t.name for t in op.tensors]
        message = f"'{op.name}' has no input tensor '{wrt}' to differentiate with respect to"
        raise DiagnosticError([Diagnostic("S062", message, op.span, did_you_mean(wrt, known))])
    variable = op.type_variable(found.dtype)
    types = [lookup(found.dtype)] if variable is None else list(variable.allowed)
    if not any(t is not None and t.is_float for t in types):
        kind = " or ".join(str(t) for t in types if t is not None)
        message = f"input '{wrt}' of '{op.name}' is of {kind} and has no gradient"
        raise DiagnosticError([Diagnostic("S062", message, found.span)])
    if found.shape_only:
        message = f"nothing depends on the values of '{wrt}', an input of '{op.name}' of which only the shape counts"
        raise DiagnosticError([Diagnostic("S062", message, found.span)])
    return found


def _floating(variable: TypeVariable) -> TypeVariable:
    floats = tuple(t for t in variable.allowed if t.is_float)
    return replace(variable, allowed=floats or variable.allowed)


def _cotangent(output: Tensor, name: str) -> Tensor:
    """Return an input in the shape of an output; its sizes are checked, not solved for."""
    return replace(output, name=name, doc=f"The gradient with respect to `{output.name}`.", follows=True)


def _fresh(name: str, taken: Collection[str | None]) -> str:
    while name in taken:
        name += "_"
    return name
