"""Gradient ops: an `OpSpec` whose mathematics are derived.

gradient(module, op, wrt="input")   an op made on the spot: the op's inputs and the adjoints of its outputs in,
one adjoint out expand(module, op)                  a declared gradient (`gradient of F with respect to x`) with
its mathematics filled in
"""

from __future__ import annotations

from dataclasses import replace

from opgen.diagnostics import Diagnostic, DiagnosticError, did_you_mean
from opgen.grad.adjoint import adjoint
from opgen.spec.model import Dimension, Module, OpSpec, SizeOf, Tensor
from opgen.spec.walk import reads


def gradient(module: Module, op: OpSpec, wrt: str) -> OpSpec:
    """The gradient of `op` with respect to one of its inputs, as an op.

    It takes all inputs of `op` (only the shapes of those whose values do not matter), then `grad_<output>` for each
    output, in the output's shape, then the attributes of `op`; it returns `grad_<wrt>` in the shape of that input.
    """
    forward = expand(module, op)
    target = _differentiable(forward, wrt)
    seeds = {o.name: f"grad_{o.name}" for o in forward.outputs}
    cotangents = tuple(_cotangent(o, seeds[o.name]) for o in forward.outputs)
    dims = tuple(replace(d, size=SizeOf(wrt, i), factors=()) if d.broadcast else d for i, d in enumerate(target.dims))
    plain = tuple(replace(d, broadcast=False) for d in dims)
    result = replace(target, name=f"grad_{wrt}", dims=plain, doc=f"The gradient with respect to `{wrt}`.")
    definitions = adjoint(forward, wrt, seeds, result)
    used = {r.tensor for d in definitions for r in reads(d.value)}
    inputs = tuple(
        replace(i, shape_only=i.shape_only or i.name not in used) if isinstance(i, Tensor) else i
        for i in forward.inputs
    )
    names = [i.name for i in (*inputs, *cotangents)]
    attrs = [n for n in forward.signature if n not in {i.name for i in forward.inputs}]
    return replace(
        forward,
        name=f"{op.name}Gradient_{wrt}",
        function_name=f"{op.function_name}_gradient_{wrt}",
        signature=(*names, *attrs),
        inputs=(*inputs, *cotangents),
        outputs=(result,),
        definitions=definitions,
        gradient=None,
        examples=(),
        doc=f"The gradient of `{op.name}` with respect to `{wrt}`.",
    )


def expand(module: Module, op: OpSpec) -> OpSpec:
    """The op itself, or for a declared gradient the op with its definitions derived.

    Its inputs that bear the name of an input of the forward op are that input; the other tensors are the adjoints of
    the forward op's outputs, in order.
    """
    if op.gradient is None or op.definitions:
        return op
    forward = expand(module, module.op(op.gradient.op))
    names = {t.name for t in forward.tensors}
    cotangents = [t.name for t in op.tensors if t.name not in names]
    seeds = dict(zip((o.name for o in forward.outputs), cotangents, strict=True))
    wrt = _differentiable(forward, op.gradient.wrt)
    definitions = adjoint(forward, wrt.name, seeds, op.outputs[0])
    return replace(op, definitions=definitions)


def _differentiable(op: OpSpec, wrt: str) -> Tensor:
    found = next((t for t in op.tensors if t.name == wrt), None)
    if found is None:
        known = [t.name for t in op.tensors]
        message = f"'{op.name}' has no input tensor '{wrt}' to differentiate with respect to"
        raise DiagnosticError([Diagnostic("gradient", message, op.span, did_you_mean(wrt, known))])
    variable = op.type_variable(found.dtype)
    if variable is not None and not any(t.is_float for t in variable.allowed):
        message = f"input '{wrt}' of '{op.name}' is of an integer type and has no gradient"
        raise DiagnosticError([Diagnostic("gradient", message, found.span)])
    return found


def _cotangent(output: Tensor, name: str) -> Tensor:
    """An input in the shape of an output; its sizes are checked, not solved for."""
    dims = tuple(Dimension(d.size, d.factors) for d in output.dims)
    return replace(output, name=name, dims=dims, doc=f"The gradient with respect to `{output.name}`.")
