"""Functions of the C library (for float32 the `f` variants), called once a lane in a helper.

They are called as unknown functions so that LLVM does not replace or fold them.
"""

from __future__ import annotations

from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import scalar_type, vector
from opgen.loop.nodes import Type


def library_symbol(fn: Function, function: str, of: Type, arity: int) -> str:
    """Return the symbol for a function of `arity` arguments of a type: the library's, or a helper's for all lanes."""
    scalar = scalar_type(of.dtype.name)
    name = function + ("f" if scalar == "float" else "")
    types = ", ".join([scalar] * arity)
    symbol = fn.module.declare(name, f"{scalar} @{name}({types}) nounwind willreturn nobuiltin memory(none)")
    return symbol if of.lanes == 1 else _every_lane(fn, name, scalar, of.lanes, arity)


def _every_lane(fn: Function, name: str, scalar: str, lanes: int, arity: int) -> str:
    """Return a helper that calls a function for each lane."""
    symbol = f"{name}.x{lanes}"
    if symbol in fn.module.helpers:
        return f"@{symbol}"
    whole = vector(scalar, lanes)
    names = ["x", "y", "z"][:arity]
    lines = []
    result = "poison"
    for k in range(lanes):
        lines += [f"  %{n}.{k} = extractelement {whole} %{n}, i64 {k}" for n in names]
        operands = ", ".join(f"{scalar} %{n}.{k}" for n in names)
        lines.append(f"  %value.{k} = call {scalar} @{name}({operands})")
        lines.append(f"  %lanes.{k} = insertelement {whole} {result}, {scalar} %value.{k}, i64 {k}")
        result = f"%lanes.{k}"
    parameters = ", ".join(f"{whole} %{n}" for n in names)
    head = f"define internal {whole} @{symbol}({parameters}) memory(none) #0"
    fn.module.helpers[symbol] = "\n".join([f"{head} {{", *lines, f"  ret {whole} {result}", "}"])
    return f"@{symbol}"
