"""int64 arithmetic as polynomials, so that indices keep their structure until they become addresses.

Sums are written with the terms of outer loops first and the constant last: prefixes are shared by all unrolled copies
and leave inner loops, and the constant ends up as the displacement of the memory access.  int64 arithmetic wraps, so
reordering it is exact; for the same reason the emitted additions and products carry no `nsw`.
"""

from __future__ import annotations

from itertools import pairwise

from opgen.codegen.llvm.function import Function, Lanes, Poly
from opgen.codegen.llvm.types import Value, listed, value_type, wrapped
from opgen.loop.nodes import INDEX, Binary, Broadcast, Const, Expr, Ramp, Type, Var

ZERO: Poly = {}
ONE: Poly = {(): 1}
NOTHING = Lanes(ZERO, ZERO)
"""0 in every lane."""


def constant(value: int) -> Poly:
    return {(): value} if value else ZERO


def constant_of(p: Poly) -> int | None:
    """Return the value of a constant polynomial, None for any other."""
    if not p:
        return 0
    return p[()] if len(p) == 1 and () in p else None


def plus(a: Poly, b: Poly, sign: int = 1) -> Poly:
    """a + sign * b."""
    if not b:
        return a
    total = dict(a)
    for atoms, coefficient in b.items():
        value = total.get(atoms, 0) + sign * coefficient
        if value:
            total[atoms] = value
        else:
            del total[atoms]
    return total


def accumulate(fn: Function, into: Poly, p: Poly, factor: Poly) -> None:
    """Add p * factor to a polynomial that nobody else holds yet."""
    scale = constant_of(factor)
    if scale is None:
        p, scale = times(fn, p, factor), 1
    for atoms, coefficient in p.items():
        value = into.get(atoms, 0) + coefficient * scale
        if value:
            into[atoms] = value
        else:
            into.pop(atoms, None)


def times(fn: Function, a: Poly, b: Poly) -> Poly:
    """a * b.  Two sums are not multiplied out: the second becomes one value first."""
    if len(a) > 1 and len(b) > 1:
        b = atom(materialise(fn, b))
    if len(b) > 1:
        a, b = b, a
    if not a or not b:
        return ZERO
    ((right, factor),) = b.items()
    if not right:
        return {atoms: coefficient * factor for atoms, coefficient in a.items()}
    order = fn.writer.order
    return {tuple(sorted(atoms + right, key=order.__getitem__)): c * factor for atoms, c in a.items()}


def atom(ref: str) -> Poly:
    """Return the polynomial that is a value or an integer literal."""
    return {(ref,): 1} if ref.startswith("%") else constant(int(ref))


def poly(fn: Function, e: Expr) -> Poly:
    """Return a scalar int64 expression as a polynomial; any part other than sums and products is emitted as an atom."""
    match e:
        case Var():
            known = fn.polys.get(e.name)
            return {(fn.variable(e.name).ref,): 1} if known is None else known
        case Const():
            return constant(int(e.value))
        case Binary():
            if e.op == "mul":
                return times(fn, poly(fn, e.left), poly(fn, e.right))
            if e.op in ("add", "sub"):
                return plus(poly(fn, e.left), poly(fn, e.right), 1 if e.op == "add" else -1)
    return atom(fn.value(e).ref)


def lanes(fn: Function, e: Expr) -> Lanes:
    """Return an int64 expression, scalar (the same in every lane) or vector."""
    match e:
        case Ramp():
            return Lanes(poly(fn, e.base), poly(fn, e.stride))
        case Broadcast():
            return Lanes(poly(fn, e.operand), ZERO)
        case Const():
            return Lanes(constant(int(e.value)), ZERO)
        case _ if e.type.lanes == 1:
            return Lanes(poly(fn, e), ZERO)
        case Binary(op="add" | "sub"):
            return total(fn, lanes(fn, e.left), lanes(fn, e.right), constant(1 if e.op == "add" else -1))
        case Binary(op="mul"):
            left, right = lanes(fn, e.left), lanes(fn, e.right)
            if _uniform(left):
                left, right = right, left
            if _uniform(right):
                return total(fn, Lanes(ZERO, ZERO), left, right.base)
        case Binary(op="floordiv" | "mod", right=Const(int(divisor))) if divisor > 0:
            known = _numbers(lanes(fn, e.left), e.type.lanes)
            if known is not None:
                return Lanes(ZERO, ZERO, (), tuple(n // divisor if e.op == "floordiv" else n % divisor for n in known))
    return Lanes(ZERO, ZERO, ((fn.value(e), constant(1)),))


def _uniform(at: Lanes) -> bool:
    """Return True if all lanes are the same."""
    return not at.step and not at.rest and not at.fixed


def _numbers(at: Lanes, count: int) -> list[int] | None:
    """Return the integer of each lane, if they are known."""
    base, step = constant_of(at.base), constant_of(at.step)
    if base is None or step is None or at.rest:
        return None
    return [base + k * step + (at.fixed[k] if at.fixed else 0) for k in range(count)]


def total(fn: Function, a: Lanes, b: Lanes, factor: Poly) -> Lanes:
    """a + b * factor."""
    if a == NOTHING and factor == ONE:
        return b
    base = plus(a.base, times(fn, b.base, factor))
    if _uniform(b):
        return Lanes(base, a.step, a.rest, a.fixed)
    rest = a.rest + tuple((value, times(fn, f, factor)) for value, f in b.rest)
    fixed, scale = a.fixed, constant_of(factor)
    if b.fixed and scale is None:
        literal = listed("i64", [wrapped(n, 64) for n in b.fixed])
        of = Type(INDEX.dtype, len(b.fixed))
        rest += ((Value(literal, of, value_type(of)), factor),)
    elif b.fixed and scale is not None:
        fixed = tuple(n + m * scale for n, m in zip(fixed or (0,) * len(b.fixed), b.fixed, strict=True))
    return Lanes(base, plus(a.step, times(fn, b.step, factor)), rest, fixed)


def settled(at: Lanes) -> Lanes:
    """Return the same lanes, with fixed parts as a step if they form one; else with known steps included in them."""
    step = constant_of(at.step)
    if not at.fixed or step is None:
        return at
    places = [k * step + n for k, n in enumerate(at.fixed)]
    apart = places[1] - places[0]
    if all(after - before == apart for before, after in pairwise(places)):
        return Lanes(plus(at.base, constant(places[0])), constant(apart), at.rest)
    return Lanes(at.base, ZERO, at.rest, tuple(places))


def by_loop(fn: Function, p: Poly) -> list[Poly]:
    """Return a polynomial without a constant as parts that change in different loops, those of outer loops first."""
    depth = fn.writer.depth
    parts: dict[int, Poly] = {}
    for atoms, coefficient in p.items():
        parts.setdefault(max(map(depth, atoms)), {})[atoms] = coefficient
    return [parts[d] for d in sorted(parts)]


def materialise(fn: Function, p: Poly) -> str:
    """Emit a polynomial: the name of its value, or an integer literal."""
    order = fn.writer.order
    offset = wrapped(p.get((), 0), 64)
    terms = [(atoms, wrapped(coefficient, 64)) for atoms, coefficient in p.items() if atoms]
    terms.sort(key=lambda term: [order[a] for a in reversed(term[0])])
    sum_so_far = ""
    for atoms, coefficient in terms:
        sum_so_far = _accumulate(fn, sum_so_far, atoms, coefficient)
    if not sum_so_far:
        return str(offset)
    if offset:
        sum_so_far = fn.writer.pure(_hint(sum_so_far, "offset"), f"add i64 {sum_so_far}, {offset}")
    return sum_so_far


def _accumulate(fn: Function, sum_so_far: str, atoms: tuple[str, ...], coefficient: int) -> str:
    """sum + coefficient * atoms, where an empty sum is nothing."""
    term = atoms[0]
    for factor in atoms[1:]:
        term = fn.writer.pure(_hint(factor, "product"), f"mul i64 {term}, {factor}")
    negative = bool(sum_so_far) and coefficient < 0
    scale = -coefficient if negative else coefficient
    if scale != 1:
        term = fn.writer.multiple(_hint(term, "scaled"), term, scale)
    if not sum_so_far:
        return term
    operation = "sub" if negative else "add"
    return fn.writer.pure(_hint(term, "offset"), f"{operation} i64 {sum_so_far}, {term}")


def _hint(ref: str, what: str) -> str:
    """Return a name for a value made from another: the hint of that value's origin, then that of this one."""
    return f"{ref[1:].split('.', 1)[0]}.{what}"


def splat(fn: Function, scalar: str, ref: str, count: int) -> str:
    """Return a scalar value (by name) of an LLVM type in every lane."""
    vector = f"<{count} x {scalar}>"
    hint = _hint(ref, "splat") if ref.startswith("%") else "splat"
    single = fn.writer.pure(hint, f"insertelement {vector} poison, {scalar} {ref}, i64 0")
    return fn.writer.pure(hint, f"shufflevector {vector} {single}, {vector} poison, <{count} x i32> zeroinitializer")


def materialise_lanes(fn: Function, at: Lanes, count: int) -> str:
    """Emit k * step + rest (the base left out) as a vector of int64."""
    vector = f"<{count} x i64>"
    step = constant_of(at.step)
    if step is not None:
        fixed = at.fixed or (0,) * count
        result = listed("i64", [wrapped(step * k + n, 64) for k, n in enumerate(fixed)])
    else:
        steps = splat(fn, "i64", materialise(fn, at.step), count)
        result = fn.writer.pure("lanes", f"mul {vector} {steps}, {listed('i64', list(range(count)))}")
        if at.fixed:
            places = listed("i64", [wrapped(n, 64) for n in at.fixed])
            result = fn.writer.pure("lanes", f"add {vector} {result}, {places}")
    for value, factor in at.rest:
        scaled = value.ref
        if constant_of(factor) != 1:
            by = splat(fn, "i64", materialise(fn, factor), count)
            scaled = fn.writer.pure("lanes", f"mul {vector} {scaled}, {by}")
        result = fn.writer.pure("lanes", f"add {vector} {result}, {scaled}")
    return result


def is_index(t: Type) -> bool:
    """Return True if a type is the scalar int64 of indices."""
    return t.lanes == 1 and t.dtype.name == INDEX.dtype.name
