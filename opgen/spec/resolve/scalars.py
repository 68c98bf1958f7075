"""Casts, functions and arithmetic on elements of tensors, on top of the shape language."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

from opgen.diagnostics import Span
from opgen.dtypes import DTYPES, UINT64, lookup
from opgen.spec.model import model as m
from opgen.spec.model.literals import cast_leaves, numbers
from opgen.spec.model.walk import reads_constants
from opgen.spec.resolve.kinds import BOOL, INT, NUMBER, REAL, SHAPE_FUNCTIONS, Kind, Typed
from opgen.spec.resolve.random_numbers import RANDOM, resolve_random
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural

SCALAR_FUNCTIONS: dict[str, m.ScalarFunction] = {name: name for name in get_args(m.ScalarFunction)}
_OF_NUMBERS = ("abs", "sign")
"""Functions of floats and integers; all others take floats only, except `bit_not`."""

PAIR_FUNCTIONS: dict[str, m.Operator] = {
    "rem": "rem", "atan2": "atan2", "bit_and": "bit_and", "bit_or": "bit_or", "bit_xor": "bit_xor",
    "shift_left": "shift_left", "shift_right": "shift_right",
}  # fmt: skip
"""Functions of two elements; `min`, `max` and `pow`, which also take integers of shapes, are in SHAPE_FUNCTIONS."""

MULTIPLY_ADD = "fma"
BIT_CAST = "bit_cast"
_OF_INTEGERS = ("//", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")
"""Operations defined only for elements of integer types."""
_OF_FLOATS = ("atan2",)
"""Operations defined only for floats."""
_LARGEST = {"float32": 2**128 - 2**103, "float64": 2**1024 - 2**970}
"""Least number that rounds to infinity, by the type in which floats are computed."""


class ScalarResolver(Resolver):
    """Resolver of elementwise expressions; subclasses resolve the reads that yield elements."""

    # Casts and functions --------------------------------------------------------------------------

    def _call(self, tree: s.Call) -> Typed | None:
        name = tree.function.name
        target = self._cast_target(name)
        if name in PAIR_FUNCTIONS:
            return self._pair(PAIR_FUNCTIONS[name], tree)
        if name == MULTIPLY_ADD:
            return self._multiply_add(tree)
        if name == BIT_CAST:
            return self._bit_cast(tree)
        if name == RANDOM:
            return resolve_random(self, tree, self.is_integer)
        if target is None and name not in SCALAR_FUNCTIONS:
            return super()._call(tree)
        if len(tree.arguments) != 1:
            self.report.add("S021", f"{name} takes 1 argument, {len(tree.arguments)} given", tree.span)
            return None
        argument = self._unsigned(tree.arguments[0]) if target == "uint64" else None
        argument = argument or self.resolve(tree.arguments[0])
        if argument is None:
            return None
        if target is not None:
            if argument.kind in (NUMBER, REAL):
                self._require_held(argument.expr, target)
            return Typed(m.Convert(target, argument.expr, tree.span), target)
        return self._apply(SCALAR_FUNCTIONS[name], argument, tree.span)

    def _pair(self, op: m.Operator, tree: s.Call) -> Typed | None:
        """Resolve a function of two elements."""
        if len(tree.arguments) != 2:
            self.report.add("S021", f"{op} takes 2 arguments, {len(tree.arguments)} given", tree.span)
            return None
        left, right = map(self.resolve, tree.arguments)
        return None if left is None or right is None else self.arithmetic(op, left, right, tree.span)

    def _multiply_add(self, tree: s.Call) -> Typed | None:
        """Resolve `fma(a, b, c)`: a * b + c of floats, rounded once."""
        if len(tree.arguments) != 3:
            self.report.add("S021", f"{MULTIPLY_ADD} takes 3 arguments, {len(tree.arguments)} given", tree.span)
            return None
        given = [found for found in map(self.resolve, tree.arguments) if found is not None]
        if len(given) < 3:
            return None
        for found in given:
            if found.kind not in (INT, NUMBER) and not self.is_float(found.kind):
                message = f"{MULTIPLY_ADD} takes floats, found {self._why_not(found.kind, False)}"
                self.report.add("S020", message, tree.span)
                return None
        for kind in dict.fromkeys(f.kind for f in given):
            a, b, c = (self.adapt(found, kind) for found in given)
            if a is not None and b is not None and c is not None and self.is_float(kind):
                return Typed(m.MultiplyAdd(a.expr, b.expr, c.expr, tree.span), kind)
        told = " and ".join(map(self.describe, dict.fromkeys(f.kind for f in given if f.kind != NUMBER))) or "integers"
        self.report.add("S020", f"{MULTIPLY_ADD} takes floats of one type, found {told}", tree.span, "cast them")
        return None

    def _bit_cast(self, tree: s.Call) -> Typed | None:
        """Resolve `bit_cast(to, x)`: the bits of an element reinterpreted as another type."""
        if len(tree.arguments) != 2:
            message = f"{BIT_CAST} takes a type and an element, {plural(len(tree.arguments), 'argument')} given"
            self.report.add("S021", message, tree.span)
            return None
        named, argument = tree.arguments[0], self.resolve(tree.arguments[1])
        to = self._cast_target(named.name) if isinstance(named, s.Named) else None
        if to is None:
            help = f"{BIT_CAST}(int32, x), or a type variable"
            self.report.add("S013", f"{BIT_CAST} takes the name of a type first", named.span, help)
            return None
        if argument is None or not self._as_many_bits(argument.kind, to, tree):
            return None
        return Typed(m.BitCast(to, argument.expr, tree.span), to)

    def _as_many_bits(self, kind: Kind, to: str, tree: s.Call) -> bool:
        """True if bits can be cast between two kinds, all of their types having one width; mistakes are noted."""
        if kind in (INT, NUMBER, REAL):
            message = f"{BIT_CAST} takes an element, found {self.describe(kind)}"
            self.report.add("S020", message, tree.arguments[1].span, "cast it, as in int32(...)")
            return False
        widths: dict[int, str] = {}
        for name, span in ((kind, tree.arguments[1].span), (to, tree.arguments[0].span)):
            variable = self.scope.type_variables.get(name)
            for d in variable.allowed if variable else (DTYPES[name],):
                which = d.name if variable is None else f"{d}, which {name} may be"
                if d.kind == "bool" or d.is_stored:
                    message = f"{BIT_CAST} is for integers of 8 to 64 bits, float32 and float64, found {which}"
                    self.report.add("S020", message, span)
                    return False
                widths.setdefault(d.bits, which if variable is None else f"{which},")
        if len(widths) > 1:
            (bits, first), (other, second) = list(widths.items())[:2]
            message = f"{BIT_CAST} takes types of as many bits: {first} has {bits} and {second} has {other}"
            self.report.add("S020", message, tree.span)
        return len(widths) == 1

    @staticmethod
    def _unsigned(tree: s.Expression) -> Typed | None:
        """Return a literal up to the largest uint64; only a cast to uint64 may contain one beyond int64."""
        if not isinstance(tree, s.Constant) or not tree.text.isdigit() or len(tree.text) > 20:
            return None
        value = int(tree.text)
        return Typed(m.Number(value, tree.span), NUMBER) if value <= UINT64.greatest else None

    def unknown_function(self, tree: s.Call) -> None:
        known = [
            *self.scope.functions,
            *self.scope.ops,
            *SHAPE_FUNCTIONS,
            *SCALAR_FUNCTIONS,
            *PAIR_FUNCTIONS,
            MULTIPLY_ADD,
            BIT_CAST,
            RANDOM,
            *self.scope.type_variables,
            *DTYPES,
            "present",
        ]
        self.report.unknown("function", tree.function.name, tree.function.span, known)

    def _cast_target(self, name: str) -> str | None:
        if name in self.scope.type_variables:
            return name
        if name == "float" and self.scope.type_variables:
            return next(iter(self.scope.type_variables))
        dtype = lookup(name)
        return None if dtype is None else dtype.name

    def _apply(self, function: m.ScalarFunction, argument: Typed, span: Span) -> Typed | None:
        kind, bits = argument.kind, function == "bit_not"
        fits = self.is_integer(kind) if bits else self.is_float(kind)
        if not fits and not (function in _OF_NUMBERS and kind not in (BOOL, INT)):
            wanted = "an integer element" if bits else "a float"
            self.report.add("S020", f"{function} takes {wanted}, found {self._why_not(kind, bits)}", span)
            return None
        return Typed(m.Apply(function, argument.expr, span), BOOL if function in m.PREDICATES else kind)

    # Kinds ----------------------------------------------------------------------------------------

    def arithmetic(self, op: m.Operator, left: Typed, right: Typed, span: Span) -> Typed | None:
        pair = self.unify(left, right)
        if pair is not None and pair[0].kind == NUMBER and op in ("//", "ceildiv"):
            pair = self._whole_pair(left, right) or pair
        if pair is None or pair[0].kind == BOOL or (pair[0].kind in (INT, NUMBER) and op not in PAIR_FUNCTIONS):
            return super().arithmetic(op, left, right, span)
        kind, told = pair[0].kind, op if op in PAIR_FUNCTIONS else f"'{op}'"
        if kind in (INT, NUMBER):
            self.report.add("S020", f"{told} takes elements, found {self.describe(kind)}", span, "cast one of them")
            return None
        if op in _OF_INTEGERS and not self.is_integer(kind):
            self.report.add("S020", f"{told} takes integers, found {self._why_not(kind, True)}", span)
            return None
        if op in _OF_FLOATS and not self.is_float(kind):
            self.report.add("S020", f"{told} takes floats, found {self._why_not(kind, False)}", span)
            return None
        if op == "ceildiv":
            self.report.add("S020", f"{told} takes integers of shapes, found {self.describe(kind)}", span)
            return None
        return Typed(m.Operation(op, pair[0].expr, pair[1].expr, span), kind)

    def is_float(self, kind: Kind) -> bool:
        """True if values of a kind are floats; a type variable needs all its types to be."""
        variable = self.scope.type_variables.get(kind)
        if variable is not None:
            return all(d.is_float for d in variable.allowed)
        return kind == REAL or (kind in DTYPES and DTYPES[kind].is_float)

    def is_integer(self, kind: Kind) -> bool:
        """True if values of a kind are integer elements; a type variable needs all its types to be."""
        variable = self.scope.type_variables.get(kind)
        if variable is not None:
            return all(d.is_int for d in variable.allowed)
        return kind in DTYPES and DTYPES[kind].is_int

    def unify(self, left: Typed, right: Typed) -> tuple[Typed, Typed] | None:
        """Unify as in the shape language, with two additional rules.

        An integer element becomes int64 beside an int64 element or an integer of shapes.  So do a constant's integer
        and an integer of shapes together.
        """
        kinds = {left.kind, right.kind}
        of_constant = kinds == {INT, NUMBER} and (reads_constants(left.expr) or reads_constants(right.expr))
        found = None if of_constant else super().unify(left, right)
        return found if found is not None or not {INT, "int64"} & kinds else self._whole_pair(left, right)

    def whole(self, value: Typed) -> m.Expr | None:
        """Return an integer element, or an expression of a constant's integers, as an int64; None for other values."""
        if value.kind == NUMBER and reads_constants(value.expr):
            self._require_held(value.expr, "int64")
        elif not self.is_integer(value.kind):
            return None
        return value.expr if value.kind == "int64" else m.Convert("int64", value.expr, value.expr.span)

    def _whole_pair(self, left: Typed, right: Typed) -> tuple[Typed, Typed] | None:
        """Return both operands as int64; None if one is not an integer or both are literals."""
        literal = [e.kind == NUMBER and not reads_constants(e.expr) for e in (left, right)]
        whole = [
            e.expr if plain or e.kind == INT else self.whole(e) for e, plain in zip((left, right), literal, strict=True)
        ]
        if whole[0] is None or whole[1] is None or all(literal):
            return None
        return Typed(whole[0], "int64"), Typed(whole[1], "int64")

    def _why_not(self, kind: Kind, integer: bool) -> str:
        """Describe a kind, with one of its types that is not a float (or not an integer)."""
        variable = self.scope.type_variables.get(kind)
        if variable is None:
            return self.describe(kind)
        wanted = "int" if integer else "float"
        return f"{kind}, which may be {next(str(d) for d in variable.allowed if d.kind != wanted)}"

    def adapt(self, operand: Typed, kind: Kind) -> Typed | None:
        known = super().adapt(operand, kind)
        if known is not None or kind in (INT, NUMBER, REAL, BOOL):
            return known
        if operand.kind == NUMBER or (operand.kind == REAL and self.is_float(kind)):
            self._require_held(operand.expr, kind)
            return Typed(cast_leaves(operand.expr, kind), kind)
        return None

    def _require_held(self, expr: m.Expr, kind: Kind) -> None:
        """Report numbers outside the range of a kind's types; the range of a float is that of its compute type."""
        variable = self.scope.type_variables.get(kind)
        allowed = variable.allowed if variable else (DTYPES[kind],)
        ranges = [(d.least, d.greatest + 1, d.name) for d in allowed if d.is_int]
        ranges += [(-_LARGEST[d.compute], _LARGEST[d.compute], d.compute) for d in allowed if d.is_float]
        for value, span in numbers(expr):
            beyond = [(end - low, name) for low, end, name in ranges if not low <= value < end]
            if beyond:
                least = min(beyond)[1]
                computed = "" if any(d.name == least for d in allowed) else " computed in"
                where = least if variable is None else f"{least}, which {kind} may be{computed}"
                short = isinstance(value, int) or (isinstance(value, Fraction) and abs(value) < 2**63)
                shown = f"{value}" if short else f"{float(value):g}"
                self.report.add("S020", f"{shown} is beyond {where}", span)
