"""Kernels of a library: one for each variant of each op and each level of the CPU, and specialised ones.

Kernels that do the same have the same code: two ops whose loops differ only in names share one symbol.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from opgen.bindings.c.library import VariantView
from opgen.compiler.limits import CheckedKernel
from opgen.diagnostics import InternalError, UserError, did_you_mean
from opgen.loop.bind import ImpossibleValueError, bind
from opgen.loop.canonical import canonical
from opgen.loop.nodes import Kernel
from opgen.loop.print import print_kernel
from opgen.lower import structural_attrs, variants
from opgen.passes.simplify import simplify
from opgen.spec.call.shapes import AttrArgument, solve
from opgen.spec.model.model import AttrValue, Expr, Module, OpSpec, Specialization, SpecializedValue, Symbol

X86_LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
TILED = ("x86-64-v3", "x86-64-v4", "aarch64")
"""The levels that get kernels for calls given in part: register tiles need vectors, and registers, to pay."""
VECTOR_BYTES = {"x86-64": 16, "x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64, "aarch64": 16}


@dataclass(frozen=True)
class Task:
    """A kernel to be compiled: unscheduled, for a target, under a symbol; `helper` begins the library's own names."""

    kernel: Kernel
    target: str
    symbol: str
    helper: str


@dataclass(frozen=True)
class Special:
    """A call that gets kernels of its own: types by type variable, the rest as `solve` takes it (`opgen.spec.call`)."""

    op: str
    types: Mapping[str, str]
    shapes: Mapping[str, Sequence[int]]
    sizes: Mapping[str, Sequence[int]]
    attrs: Mapping[str, AttrArgument]


@dataclass(frozen=True)
class Bound:
    """A specialised kernel: for which variant, and the value of each parameter; None for one that the kernel still
    takes.
    """

    number: int
    values: tuple[int | None, ...]
    kernel: Kernel

    @property
    def whole(self) -> bool:
        """Return True if it is for just one call (except for floating parameters, which are never bound)."""
        return all(p.dtype.is_float for p in self.kernel.parameters)


def levels(targets: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the levels of each architecture, lowest first, including its lowest level in any case."""
    unknown = [t for t in targets if t not in VECTOR_BYTES]
    if unknown:
        hint = did_you_mean(unknown[0], VECTOR_BYTES) or f"there is {', '.join(VECTOR_BYTES)}"
        raise UserError(f"no such target '{unknown[0]}'; {hint}")
    found: dict[str, tuple[str, ...]] = {}
    if any(t in X86_LEVELS for t in targets):
        found["x86_64"] = tuple(x for x in X86_LEVELS if x in targets or x == X86_LEVELS[0])
    if "aarch64" in targets:
        found["aarch64"] = ("aarch64",)
    return found


def serving(kernel: Kernel, level: str, available: Sequence[str]) -> str:
    """Return the level whose code a kernel runs at a level.

    x86-64-v2 has no advantage over x86-64 for floating types (vectors and fused arithmetic come with v3); for integers
    it has the multiplication of vectors.
    """
    floating = not any(b.dtype.is_int for b in kernel.buffers)
    return X86_LEVELS[0] if level == X86_LEVELS[1] and floating and X86_LEVELS[0] in available else level


def task(kernel: Kernel, target: str, prefix: str) -> Task:
    """Return the task for a kernel; equal kernels have equal tasks."""
    plain = canonical(kernel)
    digest = hashlib.sha256(print_kernel(plain).encode()).hexdigest()[:16]
    symbol = f"{prefix}_k_{digest}_{target.replace('-', '_')}"
    return Task(replace(plain, name=symbol), target, symbol, f"{prefix}_k")


def specialised(module: Module, kernels: Sequence[VariantView], first: Mapping[str, int], special: Special) -> Bound:
    """Return the kernel for one call.  Raises UserError if the call is wrong."""
    op = module.op(special.op)
    call = solve(op, module, special.shapes, special.sizes, special.attrs)
    words = {a.name: call.attrs[a.name] for a in structural_attrs(op)}
    for number in range(first[op.name], len(kernels)):
        view = kernels[number]
        if dict(view.variant.types) == dict(special.types) and dict(view.variant.values) == words:
            break
    else:
        raise InternalError(f"op {op.name} has no variant of {dict(special.types)} and {words}")
    kernel = view.lowered.kernel
    found = CheckedKernel(op, view.lowered).values(call)
    values = [None if p.dtype.is_float else int(found[p.name]) for p in kernel.parameters]
    return _bound(number, kernel, values)


def partly_bound(
    op: OpSpec, kernels: Sequence[VariantView], first: int, specialization: Specialization
) -> Iterator[Bound]:
    """Yield the kernels that a specialization declares: one for each variant of the op that it leaves open.

    Raises UserError if no call can have the values.
    """
    given = dict(specialization.values)
    count = sum(1 for _ in variants(op))
    for number, view in enumerate(kernels[first : first + count], first):
        words = {**view.variant.types, **view.variant.values}
        if all(given[name] == word for name, word in words.items() if name in given):
            values = [_given(e, given) for e in view.lowered.arguments]
            if any(v is not None for v in values):
                try:
                    yield _bound(number, view.lowered.kernel, values)
                except ImpossibleValueError as error:
                    declared = ", ".join(
                        f"{n} = {list(v) if isinstance(v, tuple) else v}" for n, v in specialization.values
                    )
                    raise UserError(f"{op.name}: no call has {declared}: {error}") from error


def _given(e: Expr, given: Mapping[str, SpecializedValue]) -> int | None:
    """Return a kernel parameter's value under a specialization; None if it leaves it open."""
    value = given.get(e.name if isinstance(e, Symbol) else e.attr if isinstance(e, AttrValue) else "")
    if isinstance(e, AttrValue) and isinstance(value, tuple):
        value = value[e.element[0]] if len(e.element) == 1 else None
    return value if isinstance(value, int) else None


def _bound(number: int, kernel: Kernel, values: Sequence[int | None]) -> Bound:
    fixed = {p.name: v for p, v in zip(kernel.parameters, values, strict=True) if v is not None}
    return Bound(number, tuple(values), simplify(bind(kernel, fixed)))
