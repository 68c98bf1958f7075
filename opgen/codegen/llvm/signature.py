"""Parameters of the internal functions, with their promises."""

from __future__ import annotations

from opgen.codegen.llvm.function import Function, Memory
from opgen.codegen.llvm.types import Value, sanitised, value_type, wrapped
from opgen.loop.nodes import Parameter, Type

HEADER = "define internal i32 @{name}({parameters}) noinline #0"


def pointer(fn: Function, m: Memory) -> str:
    """Return the declaration of a buffer's pointer, for the finished function; `noalias`, as buffers never overlap."""
    access = " readonly" if m.readonly else "" if m.buffer.name in fn.loaded else " writeonly"
    return f"ptr noalias{access} align {m.alignment} {m.ref}"


def scalar(fn: Function, name: str, of: Type, promise: str = "") -> str:
    """Return a scalar, which is brought into scope under its name: its declaration."""
    value = Value(fn.writer.value(sanitised(name)), of, value_type(of))
    fn.values[name] = value
    return f"{value.text} {promise}{value.ref}"


def promised(p: Parameter) -> str:
    """Return the promised interval of a parameter, as an attribute."""
    if not p.dtype.is_int:
        return ""
    bits = p.dtype.bits
    low = max(-(1 << bits - 1), p.low) if p.low is not None else -(1 << bits - 1)
    high = min((1 << bits - 1) - 1, p.high) if p.high is not None else (1 << bits - 1) - 1
    if low > high or wrapped(high + 1, bits) == low:
        return ""
    return f"range(i{bits} {low}, {wrapped(high + 1, bits)}) "
