"""Expressions of the mathematics: reads, reductions, casts and scalar functions on top of the shape language."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

from opgen.diagnostics import Span
from opgen.dtypes import DTYPES, UINT64, lookup
from opgen.spec import model as m
from opgen.spec import syntax as s
from opgen.spec.attribute_tables import table_of
from opgen.spec.kinds import BOOL, INT, NUMBER, REAL, SHAPE_FUNCTIONS, Kind, Typed
from opgen.spec.limits import LOOPS
from opgen.spec.literals import cast_leaves, numbers
from opgen.spec.names import check_name
from opgen.spec.orders import ORDERS, resolve_order
from opgen.spec.polynomial import digits, same
from opgen.spec.random_numbers import RANDOM, resolve_random
from opgen.spec.resolve import Resolver
from opgen.spec.scope import Binding, Readable, Scope
from opgen.spec.steps import Foretold
from opgen.spec.subscripts import SubscriptResolver
from opgen.spec.text import plural
from opgen.spec.walk import reads_constants

SCALAR_FUNCTIONS: dict[str, m.ScalarFunction] = {name: name for name in get_args(m.ScalarFunction)}
_OF_NUMBERS = ("abs", "sign")
"""Functions of integers, too; the others are of floats, but `bit_not`."""

PAIR_FUNCTIONS: dict[str, m.Operator] = {
    "rem": "rem", "bit_and": "bit_and", "bit_or": "bit_or", "bit_xor": "bit_xor", "shift_left": "shift_left",
    "shift_right": "shift_right",
}  # fmt: skip
"""Functions of two elements; `min`, `max` and `pow` are of integers of shapes, too."""

BIT_CAST = "bit_cast"
_OF_INTEGERS = ("//", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")
"""Operations that only elements of integer types have."""
_LARGEST = {"float32": 2**128 - 2**103, "float64": 2**1024 - 2**970}
"""Of each type that floats are computed in, the least number that rounds to infinity."""

REDUCTIONS: dict[str, m.ReductionKind] = {"sum": "sum", "prod": "prod", "max": "max", "min": "min"}


class MathResolver(Resolver):
    """Resolves the value of one definition.

    `target` is the tensor being defined; `foretold` tells of what is read at another step.  `unguarded` gathers the
    reads in no reduction that give no value for outside: they have to be proved inside.  `elements` are the reads of
    constants, each with the ranges of the indices of the reductions around it.  An order may be `root`, the value of a
    `let` with the indices `own`; `ordered` is along what is sorted.
    """

    def __init__(self, scope: Scope, target: str, foretold: Foretold, root: s.Expression | None = None) -> None:
        super().__init__(scope)
        self.target = target
        self.foretold = foretold
        self.unguarded: list[m.Read] = []
        self.elements: list[tuple[m.Element, dict[str, m.Expr]]] = []
        self.root = root
        self.own: set[str] = set()
        self.ordered: dict[str, m.Expr] = {}
        self._reductions = 0

    # Reads ----------------------------------------------------------------------------------------

    def _subscripted(self, tree: s.Subscripted) -> Typed | None:
        name = tree.owner.name
        tensor = self.scope.tensors.get(name)
        if tensor is None and name in self.scope.constants:
            return self._element_of(tree, self.scope.constants[name])
        if tensor is None and self.foretold.is_step(tree):
            return self._read(tree, None)
        if tensor is None:
            if name == self.target:
                step = f"an earlier step is read as in {name}[t - 1, ...] else 0"
                self.report.add("S023", f"'{name}' is read in its own definition", tree.owner.span, step)
                return None
            if name in self.scope.later_tensors:
                self.report.add(
                    "S023", f"'{name}' is read before it is defined", tree.owner.span, f"move `let {name}[...]` up"
                )
                return None
            if name in self.scope.attrs and not all(isinstance(e, s.Constant) for e in tree.subscripts):
                return self._list_element(tree, self.scope.attrs[name])
            if name in self.scope.attrs or name in self.scope.symbols or name in self.scope.poisoned:
                return super()._subscripted(tree)
            self.report.unknown("tensor", name, tree.owner.span, self.scope.known())
            return None
        if tensor.output or tensor.shape_only:
            why = "is an output: its elements cannot be read" if tensor.output else "is shape_only: it has no elements"
            help = f"compute it in a `let` tensor and copy that to '{name}'" if tensor.output else None
            self.report.add("S013", f"'{name}' {why}", tree.owner.span, help)
            return None
        return self._read(tree, tensor)

    def _read(self, tree: s.Subscripted, tensor: Readable | None) -> Typed | None:
        """A read of a tensor; None stands for one that is read at another step, before it is defined."""
        subscripts = [self._subscript(e) for e in tree.subscripts]
        outside = None if tree.outside is None else self.resolve(tree.outside)
        if tree.outside is not None and outside is None:
            return None
        if tensor is None:
            tensor = self.foretold.readable(tree.owner.name, None if outside is None else outside.kind, tree.span)
        if tensor is None or tensor.dims is None:
            return None
        if len(subscripts) != len(tensor.dims):
            expected = plural(len(tensor.dims), "dimension")
            message = f"'{tensor.name}' has {expected}, found {plural(len(subscripts), 'subscript')}"
            self.report.add("S021", message, tree.span)
            return None
        indices = tuple(e for e in subscripts if e is not None)
        if len(indices) < len(subscripts):
            return None
        for subscript, dim in zip(indices, tensor.dims, strict=True):
            self._learn(subscript, dim)
        value = None
        if outside is not None and tree.outside is not None:
            adapted = self.adapt(outside, tensor.dtype)
            if adapted is None:
                message = f"outside '{tensor.name}' the value must be {self.describe(tensor.dtype)}"
                self.report.add("S020", f"{message}, found {self.describe(outside.kind)}", tree.outside.span)
                return None
            value = adapted.expr
        read = m.Read(tensor.name, indices, value, tree.span)
        if value is None and not self._reductions:
            self.unguarded.append(read)
        return Typed(read, tensor.dtype)

    def _list_element(self, tree: s.Subscripted, attr: m.Attr) -> Typed | None:
        """An element of a list attribute at indices: of the tensor that holds the list."""
        if not attr.shape:
            self.report.add("S013", f"'{attr.name}' is not a list", tree.owner.span)
            return None
        if attr.layout is not None:
            message = f"'{attr.name}' follows the layout '{attr.layout}': its elements have letters, not numbers"
            self.report.add("S032", message, tree.span)
            return None
        if len(tree.subscripts) != len(attr.shape):
            shown = f"{plural(len(attr.shape), 'subscript')}, found {len(tree.subscripts)}"
            self.report.add("S021", f"an element of '{attr.name}' takes {shown}", tree.span)
            return None
        return self._read(tree, table_of(self.scope, attr, tree.owner.span))

    def _element_of(self, tree: s.Subscripted, constant: m.Constant) -> Typed | None:
        """An element of a constant."""
        if tree.outside is not None:
            self.report.add("S013", "a constant is read inside only: it takes no `else`", tree.outside.span)
        if len(tree.subscripts) != len(constant.shape):
            expected = plural(len(constant.shape), "dimension")
            message = f"'{constant.name}' has {expected}, found {plural(len(tree.subscripts), 'subscript')}"
            self.report.add("S021", message, tree.span)
            return None
        subscripts = [self._subscript(e) for e in tree.subscripts]
        indices = tuple(e for e in subscripts if e is not None)
        if len(indices) < len(subscripts):
            return None
        for subscript, size in zip(indices, constant.shape, strict=True):
            self._learn(subscript, m.Number(size))
        element = m.Element(constant, indices, tree.span)
        self.elements.append((element, {}))
        return Typed(element, NUMBER if all(v.denominator == 1 for v in constant.values) else REAL)

    def update(self, decl: s.DefinitionDecl) -> tuple[list[m.Expr | None], Typed | None, m.Expr | None]:
        """The place, the value and the condition of an update: as of a term, what reads outside is left out."""
        self._reductions += 1
        at = [self._subscript(e) for e in decl.subscripts]
        value = self.resolve(decl.value)
        condition = None if decl.condition is None else self.condition(decl.condition)
        self._reductions -= 1
        for element, _ in self.elements:
            if element.span is not None:
                help = f"read it in a `let` tensor, as in let c[i] = {element.constant.name}[i]"
                self.report.add("S013", "an update reads no constant", element.span, help)
        return at, value, condition

    def _subscript(self, tree: s.Expression) -> m.Expr | None:
        return SubscriptResolver(self.scope, self.resolve, self._whole).integer(tree)

    def _whole(self, value: Typed) -> m.Expr | None:
        """An element of an integer type, or what is made of a constant's integers, as an int64."""
        if value.kind == NUMBER and reads_constants(value.expr):
            self._require_held(value.expr, "int64")
        elif not self.is_integer(value.kind):
            return None
        return value.expr if value.kind == "int64" else m.Convert("int64", value.expr, value.expr.span)

    def _learn(self, subscript: m.Expr, dim: m.Expr) -> None:
        """Notes what a subscript tells of the ranges of its indices."""
        if isinstance(subscript, m.Index) and subscript.span is not None:
            self.scope.indices[subscript.name].bare.append((dim, subscript.span))
            return
        for name, extent in digits(subscript, dim) or ():
            binding = self.scope.indices[name]
            binding.composite.append((extent, binding.span))

    # Reductions -----------------------------------------------------------------------------------

    def _reduction(self, tree: s.Reduction) -> Typed | None:
        if tree.kind in ORDERS:
            return resolve_order(self, tree)
        if tree.place is not None:
            self.report.add("S021", f"'{tree.kind}' takes 1 value, found another", tree.place.span)
            return None
        bindings = self.bind([(r.index, r.extent) for r in tree.ranges])
        self._reductions += 1
        first = len(self.elements)
        body = self.resolve(tree.body)
        condition = None if tree.condition is None else self.condition(tree.condition)
        self._reductions -= 1
        for binding in bindings:
            del self.scope.indices[binding.name]
        if body is None or (condition is None and tree.condition is not None):
            return None
        if body.kind in (BOOL, INT):
            help = "cast it, as in float(...)" if body.kind == INT else None
            self.report.add(
                "S020",
                f"'{tree.kind}' takes values of a tensor's type, found {self.describe(body.kind)}",
                tree.body.span,
                help,
            )
            return None
        ranges = []
        for binding in bindings:
            extent = self.extent(binding, f"{tree.kind}[{binding.name} < ...]")
            if extent is None:
                return None
            if not binding.used:
                self.report.add("S033", f"the index '{binding.name}' is never used", binding.span)
            ranges.append(m.IndexRange(binding.name, extent))
        for _, known in self.elements[first:]:
            known.update({r.name: r.extent for r in ranges})
        kind = REDUCTIONS[tree.kind]
        return Typed(m.Reduce(kind, tuple(ranges), body.expr, span=tree.span, condition=condition), body.kind)

    def bind(self, indices: list[tuple[s.Ident, s.Expression | None]]) -> list[Binding]:
        """Brings indices into scope; the caller takes them out again."""
        bindings = []
        for ident, extent in indices:
            explicit = None if extent is None else Resolver(self.scope).integer(extent)
            name = ident.name
            if (
                name in self.scope.indices
                or name in self.scope.symbols
                or name in self.scope.attrs
                or name in self.scope.tensors
            ):
                self.report.add("S011", f"the index '{name}' hides another '{name}'", ident.span, "choose another name")
                continue
            check_name(self.report, name, ident.span)
            if not self.report.at_most(len(self.scope.indices) + 1, LOOPS, "indices around one value", ident.span):
                continue
            binding = Binding(name, ident.span, explicit)
            if extent is not None and explicit is None:
                binding.explicit = m.Number(1)
            self.scope.indices[name] = binding
            bindings.append(binding)
        return bindings

    def extent(self, binding: Binding, written: str) -> m.Expr | None:
        """The extent of an index: as written, else the dimension it subscripts alone, else its part of a composite."""
        if binding.explicit is not None:
            return binding.explicit
        for found in (binding.bare, binding.composite):
            for extent, span in found[1:]:
                if not same(extent, found[0][0]):
                    message = f"the index '{binding.name}' ranges over both {show(found[0][0])} and {show(extent)}"
                    self.report.add("S050", message, span, f"say which: {written}")
                    return None
            if found:
                return found[0][0]
        if binding.used:
            message = f"the range of the index '{binding.name}' cannot be told from its uses"
            self.report.add("S050", message, binding.span, f"write {written}")
        else:
            self.report.add("S033", f"the index '{binding.name}' is never used", binding.span)
        return None

    # Casts and functions --------------------------------------------------------------------------

    def _call(self, tree: s.Call) -> Typed | None:
        name = tree.function.name
        target = self._cast_target(name)
        if name in PAIR_FUNCTIONS:
            return self._pair(PAIR_FUNCTIONS[name], tree)
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
        """A function of two elements."""
        if len(tree.arguments) != 2:
            self.report.add("S021", f"{op} takes 2 arguments, {len(tree.arguments)} given", tree.span)
            return None
        left, right = map(self.resolve, tree.arguments)
        return None if left is None or right is None else self.arithmetic(op, left, right, tree.span)

    def _bit_cast(self, tree: s.Call) -> Typed | None:
        """`bit_cast(to, x)`: the bits of an element as those of another type."""
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
        """Whether two kinds are of types between which bits are cast, all of as many bits; notes what is not so."""
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
        """A literal beyond int64 that a uint64 holds: it stands in such a cast only."""
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
        if op == "ceildiv":
            self.report.add("S020", f"{told} takes integers of shapes, found {self.describe(kind)}", span)
            return None
        return Typed(m.Operation(op, pair[0].expr, pair[1].expr, span), kind)

    def is_float(self, kind: Kind) -> bool:
        """Whether values of a kind are floats, whichever of its types a variable stands for."""
        variable = self.scope.type_variables.get(kind)
        if variable is not None:
            return all(d.is_float for d in variable.allowed)
        return kind == REAL or (kind in DTYPES and DTYPES[kind].is_float)

    def is_integer(self, kind: Kind) -> bool:
        """Whether values of a kind are integer elements, whichever of its types a variable stands for."""
        variable = self.scope.type_variables.get(kind)
        if variable is not None:
            return all(d.is_int for d in variable.allowed)
        return kind in DTYPES and DTYPES[kind].is_int

    def unify(self, left: Typed, right: Typed) -> tuple[Typed, Typed] | None:
        """As everywhere; of an element of an integer type and an int64, or an integer of shapes, both are int64; so are
        a constant's integer and an integer of shapes.
        """
        kinds = {left.kind, right.kind}
        of_constant = kinds == {INT, NUMBER} and (reads_constants(left.expr) or reads_constants(right.expr))
        found = None if of_constant else super().unify(left, right)
        return found if found is not None or not {INT, "int64"} & kinds else self._whole_pair(left, right)

    def _whole_pair(self, left: Typed, right: Typed) -> tuple[Typed, Typed] | None:
        """Both as int64; None if one is no integer, or both are literals."""
        literal = [e.kind == NUMBER and not reads_constants(e.expr) for e in (left, right)]
        whole = [
            e.expr if plain or e.kind == INT else self._whole(e)
            for e, plain in zip((left, right), literal, strict=True)
        ]
        if whole[0] is None or whole[1] is None or all(literal):
            return None
        return Typed(whole[0], "int64"), Typed(whole[1], "int64")

    def _why_not(self, kind: Kind, integer: bool) -> str:
        """A kind, and which type it may be that is no float (or no integer)."""
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
        """Report numbers beyond a type that a kind may stand for: beyond integers, or what floats compute in."""
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


def show(expr: m.Expr) -> str:
    """An integer expression in words fit for a message."""
    if isinstance(expr, m.Number):
        return str(expr.value)
    if isinstance(expr, m.Symbol | m.Index):
        return expr.name
    if isinstance(expr, m.AttrValue):
        return expr.attr + "".join(f"[{i}]" for i in expr.element)
    if isinstance(expr, m.Operation) and len(expr.op) <= 2:
        return f"{show(expr.left)} {expr.op} {show(expr.right)}"
    return "another extent"
