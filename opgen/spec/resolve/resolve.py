"""Expressions of the shape language: names resolved, types checked.

An invalid expression resolves to None after its mistake is noted; its parents then resolve to None without a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from opgen.diagnostics import Span, did_you_mean
from opgen.spec.model import model as m
from opgen.spec.model.visit import everything_in
from opgen.spec.resolve.kinds import (
    ARITHMETIC,
    BOOL,
    INT,
    LOGIC,
    NUMBER,
    REAL,
    ROUNDINGS,
    SHAPE_FUNCTIONS,
    Kind,
    Typed,
    number,
    operator,
)
from opgen.spec.resolve.scope import Scope
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural


class Resolver:
    """Resolver of the shape language: integers, conditions, attributes, calls of shape functions."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.report = scope.report

    # Entrances ------------------------------------------------------------------------------------

    def integer(self, tree: s.Expression) -> m.Expr | None:
        """Resolve an expression that must be an integer."""
        found = self.resolve(tree)
        if found is not None and found.kind not in (INT, NUMBER):
            self.report.add("S020", f"expected an integer, found {self.describe(found.kind)}", tree.span)
            return None
        return None if found is None else found.expr

    def condition(self, tree: s.Expression) -> m.Expr | None:
        """Resolve an expression that must be true or false."""
        found = self.resolve(tree)
        if found is not None and found.kind != BOOL:
            self.report.add("S020", f"expected a condition, found {self.describe(found.kind)}", tree.span)
            return None
        return None if found is None else found.expr

    def resolve(self, tree: s.Expression) -> Typed | None:
        if isinstance(tree, s.Constant):
            return self._constant(tree)
        if isinstance(tree, s.Named):
            return self._named(tree)
        if isinstance(tree, s.Member):
            return self._member(tree)
        if isinstance(tree, s.Subscripted):
            return self._subscripted(tree)
        if isinstance(tree, s.Call):
            return self._call(tree) if self._plain_call(tree) else None
        if isinstance(tree, s.Reduction):
            return self._reduction(tree)
        if isinstance(tree, s.Unary):
            return self._unary(tree)
        if isinstance(tree, s.Binary):
            return self._binary(tree)
        if isinstance(tree, s.Choice):
            return self._choice(tree)
        self.report.add("S065", "packs and lists belong to the declarations of ops", tree.span)
        return None

    @staticmethod
    def describe(kind: Kind) -> str:
        """Describe a kind in words."""
        words = {INT: "an integer", NUMBER: "an integer", REAL: "a float", BOOL: "a condition"}
        return words.get(kind, f"a value of type {kind}")

    # Leaves ---------------------------------------------------------------------------------------

    def _constant(self, tree: s.Constant) -> Typed | None:
        value = number(tree)
        if value is None:
            self.report.add("S004", f"{tree.text} is out of range", tree.span)
            return None
        kind = BOOL if isinstance(value, bool) else NUMBER if isinstance(value, int) else REAL
        return Typed(m.Number(value, tree.span), kind)

    def _named(self, tree: s.Named) -> Typed | None:
        scope, name = self.scope, tree.name
        if name in scope.indices:
            scope.indices[name].used = True
            return Typed(m.Index(name, tree.span), INT)
        if name in scope.stands_for:
            return Typed(scope.stands_for[name], INT)
        if name in scope.symbols:
            return Typed(m.Symbol(name, tree.span), INT)
        if name in scope.attrs:
            return self._attr(scope.attrs[name], tree.span)
        if name in scope.later:
            self.report.add("S023", f"'{name}' is used before it is defined", tree.span, f"move `let {name}` up")
        elif name in scope.enums:
            self._only_compared(name, tree.span)
        elif name in scope.tensors or name in scope.constants:
            what = "a tensor" if name in scope.tensors else "a constant"
            self.report.add("S013", f"'{name}' is {what}: read an element of it", tree.span, f"write {name}[...]")
        elif name not in scope.poisoned:
            self.report.unknown("name", name, tree.span, scope.known())
        return None

    def _only_compared(self, name: str, span: Span) -> None:
        self.report.add(
            "S013",
            f"'{name}' is an enumeration: it can only be compared",
            span,
            f"write {name} == {self.scope.enums[name][0]}",
        )

    def _attr(self, attr: m.Attr, span: Span) -> Typed | None:
        if attr.kind == "enum":
            self._only_compared(attr.name, span)
        elif attr.kind == "layout":
            self.report.add("S013", f"'{attr.name}' is a layout: it orders dimensions and has no value", span)
        elif attr.shape:
            self.report.add("S013", f"'{attr.name}' is a list: take an element of it", span, _element_help(attr))
        else:
            kind = {"int": INT, "float": REAL, "bool": BOOL}[attr.kind]
            return Typed(m.AttrValue(attr.name, (), span), kind)
        return None

    # Elements of lists ----------------------------------------------------------------------------

    def _member(self, tree: s.Member) -> Typed | None:
        attr = self._list_attr(tree.owner)
        if attr is None:
            return None
        letters = None if attr.layout is None else self.scope.letters(attr.layout)
        if letters is None:
            if attr.layout is None:
                self.report.add("S032", f"'{attr.name}' follows no layout", tree.span, _element_help(attr))
            return None
        letter = tree.letter.name
        if letter not in letters or len(letter) != 1:
            self.report.add(
                "S032", f"'{attr.layout}' has no dimension '{letter}'", tree.letter.span, f"it has {_list(letters)}"
            )
            return None
        return self._element(attr, (letters.index(letter),), tree.subscripts, tree.span)

    def _list_attr(self, owner: s.Ident) -> m.Attr | None:
        name = owner.name
        if name in self.scope.attrs:
            attr = self.scope.attrs[name]
            if attr.shape:
                return attr
            self.report.add("S013", f"'{name}' is not a list", owner.span)
        elif name in self.scope.symbols or name in self.scope.indices or name in self.scope.enums:
            self.report.add("S013", f"'{name}' is not a list", owner.span)
        elif name in self.scope.tensors:
            self.report.add("S013", f"'{name}' is a tensor, which has no named elements", owner.span)
        elif name not in self.scope.poisoned:
            lists = [a.name for a in self.scope.attrs.values() if a.shape]
            self.report.unknown("list attribute", name, owner.span, lists)
        return None

    def _subscripted(self, tree: s.Subscripted) -> Typed | None:
        """Resolve an element of a list attribute, the only subscripted value of the shape language."""
        if tree.owner.name in self.scope.tensors:
            self.report.add("S013", f"a shape cannot depend on the values of '{tree.owner.name}'", tree.span)
            return None
        attr = self._list_attr(tree.owner)
        if attr is None:
            return None
        if tree.outside is not None:
            self.report.add("S013", "an attribute's element is always there: it takes no `else`", tree.outside.span)
        if attr.layout is not None:
            self.report.add("S032", f"'{attr.name}' follows the layout '{attr.layout}'", tree.span, _element_help(attr))
            return None
        return self._element(attr, (), tree.subscripts, tree.span)

    def _element(
        self, attr: m.Attr, first: tuple[int, ...], rest: tuple[s.Expression, ...], span: Span
    ) -> Typed | None:
        """Resolve an element of a list attribute; its positions are literal."""
        expected = len(attr.shape) - len(first)
        if len(rest) != expected:
            shown = plural(expected, "subscript")
            self.report.add("S021", f"an element of '{attr.name}' takes {shown} here, found {len(rest)}", span)
            return None
        element = list(first)
        for tree, size in zip(rest, attr.shape[len(first) :], strict=True):
            value = number(tree) if isinstance(tree, s.Constant) else None
            if not isinstance(value, int) or isinstance(value, bool):
                self.report.add("S020", "expected a literal position", tree.span)
                return None
            if value >= size:
                self.report.add(
                    "S021", f"'{attr.name}' has {plural(size, 'element')} here: {value} is outside", tree.span
                )
                return None
            element.append(value)
        return Typed(m.AttrValue(attr.name, tuple(element), span), {"float": REAL, "bool": BOOL}.get(attr.kind, INT))

    # Calls ----------------------------------------------------------------------------------------

    def _call(self, tree: s.Call) -> Typed | None:
        name = tree.function.name
        if name == "present":
            return self._present(tree)
        if name in SHAPE_FUNCTIONS:
            return self._two(tree, SHAPE_FUNCTIONS[name])
        if name in ("int", "float"):
            return self._rounded(tree) if name == "int" else self._to_float(tree)
        if name in ROUNDINGS and type(self) is Resolver:
            self.report.add("S013", f"'{name}' in sizes gives an integer", tree.span, f"write int({name}(...))")
            return None
        if name not in self.scope.functions:
            self.unknown_function(tree)
            return None
        results = self.call_results(tree, 1)
        return None if results is None else Typed(results[0], INT)

    def _plain_call(self, tree: s.Call) -> bool:
        """Note keyword arguments, which only ops take, and ops called outside a `let`; True if there are none."""
        name = tree.function.name
        if name in self.scope.ops and name not in self.scope.functions:
            help = f"write let p = {name}(...), and read elements of p"
            self.report.add("S013", f"'{name}' is an op: its results get names by a `let` of an op", tree.span, help)
            return False
        for keyword in tree.keywords:
            self.report.add("S021", f"'{name}' is no op: its arguments have no names", keyword.span)
        return not tree.keywords

    def _to_float(self, tree: s.Call) -> Typed | None:
        """Resolve `float(n)`: an integer of shapes as a float."""
        if len(tree.arguments) != 1:
            self.report.add("S021", f"float takes 1 argument, {len(tree.arguments)} given", tree.span)
            return None
        found = self.integer(tree.arguments[0])
        if found is None:
            return None
        self._no_index("float", (found,), tree.span)
        return Typed(m.Real(found, tree.span), REAL)

    def _rounded(self, tree: s.Call) -> Typed | None:
        """Resolve `int(floor(scale * float(n)))`: an integer computed from floats with Python's rounding."""
        inner = tree.arguments[0] if len(tree.arguments) == 1 else None
        function: Literal["floor", "ceil", "round", "trunc"] = "trunc"
        if isinstance(inner, s.Call) and inner.function.name in ROUNDINGS and len(inner.arguments) == 1:
            function, inner = ROUNDINGS[inner.function.name], inner.arguments[0]
        if inner is None:
            self.report.add("S021", f"int takes 1 argument, {len(tree.arguments)} given", tree.span)
            return None
        found = Resolver(self.scope).resolve(inner)
        if found is None:
            return None
        if found.kind != REAL:
            help = "float(n) makes one of an integer"
            self.report.add("S020", f"int takes a float, found {self.describe(found.kind)}", inner.span, help)
            return None
        for operation in _of_floats(found.expr):
            if operation.op not in ("+", "-", "*", "/") and operation.span is not None:
                help = "of integers there is: round before it"
                self.report.add("S013", f"'{operation.op}' of floats is not for sizes", operation.span, help)
        self._no_index("int", (found.expr,), tree.span)
        return Typed(m.Whole(function, found.expr, tree.span), INT)

    def unknown_function(self, tree: s.Call) -> None:
        known = [*self.scope.functions, *self.scope.ops, *SHAPE_FUNCTIONS, "present"]
        self.report.unknown("function", tree.function.name, tree.function.span, known)

    def call_results(self, tree: s.Call, wanted: int) -> tuple[m.Expr, ...] | None:
        """Return the results of a call of a shape function, `wanted` in number."""
        name = tree.function.name
        function = self.scope.functions.get(name)
        if function is None:
            if name not in self.scope.functions:
                self.unknown_function(tree)
            return None
        if len(function.results) != wanted:
            given = plural(len(function.results), "result")
            names = ", ".join(function.result_names)
            self.report.add(
                "S021", f"'{name}' has {given}, {wanted} wanted here", tree.span, f"write let {names} = {name}(...)"
            )
            return None
        if len(tree.arguments) != len(function.parameters):
            expected = ", ".join(p.name for p in function.parameters)
            message = f"'{name}' takes {plural(len(function.parameters), 'argument')}, {len(tree.arguments)} given"
            self.report.add("S021", message, tree.span, f"it takes ({expected})")
            return None
        given_arguments = [self._argument(a, p) for a, p in zip(tree.arguments, function.parameters, strict=True)]
        arguments = tuple(a for a in given_arguments if a is not None)
        if len(arguments) < len(given_arguments):
            return None
        self._no_index(name, (a for a in arguments if not isinstance(a, m.EnumArgument)), tree.span)
        return tuple(m.FunctionCall(name, arguments, i, tree.span) for i in range(wanted))

    def _argument(self, tree: s.Expression, parameter: m.Parameter) -> m.Expr | m.EnumArgument | None:
        if not parameter.values:
            return self.integer(tree)
        if isinstance(tree, s.Named):
            if tree.name in self.scope.enums:
                extra = [v for v in self.scope.enums[tree.name] if v not in parameter.values]
                if extra:
                    message = f"'{tree.name}' may be {extra[0]}, which the parameter '{parameter.name}' may not"
                    self.report.add("S020", message, tree.span, f"it may be {_list(parameter.values)}")
                    return None
                return m.EnumArgument(tree.name, None, tree.span)
            if tree.name in parameter.values:
                return m.EnumArgument(None, tree.name, tree.span)
            if tree.name in self.scope.poisoned:
                return None
        message = f"expected an enumeration for '{parameter.name}'"
        self.report.add("S020", message, tree.span, f"one of {_list(parameter.values)}")
        return None

    def _present(self, tree: s.Call) -> Typed | None:
        if len(tree.arguments) != 1 or not isinstance(tree.arguments[0], s.Named):
            self.report.add("S021", "present takes the name of one list attribute", tree.span)
            return None
        argument = tree.arguments[0]
        attr = self._list_attr(s.Ident(argument.span, argument.name))
        if attr is None:
            return None
        if not attr.optional:
            self.report.add(
                "S013", f"'{attr.name}' is always present", argument.span, "an optional list has the default []"
            )
            return None
        return Typed(m.Present(attr.name, tree.span), BOOL)

    def _two(self, tree: s.Call, op: Literal["min", "max", "ceildiv", "pow"]) -> Typed | None:
        if len(tree.arguments) != 2:
            self.report.add("S021", f"{op} takes 2 arguments, {len(tree.arguments)} given", tree.span)
            return None
        left, right = map(self.resolve, tree.arguments)
        if left is None or right is None:
            return None
        if op == "pow" and left.kind in (INT, NUMBER) and right.kind in (INT, NUMBER):
            self._no_index("pow", (left.expr, right.expr), tree.span)
        return self.arithmetic(op, left, right, tree.span)

    def _no_index(self, function: str, arguments: Iterable[m.Expr], span: Span) -> None:
        """Note a shape function applied to an index or element: it is evaluated once per call, before the kernel."""
        found = next((e for a in arguments for e in everything_in(a) if isinstance(e, m.Index | m.Read)), None)
        if found is not None:
            help = "write it with + - * // %, min and max"
            what = "an index" if isinstance(found, m.Index) else "an element"
            self.report.add("S013", f"'{function}' is worked out before the op runs: not for {what}", span, help)

    def _reduction(self, tree: s.Reduction) -> Typed | None:
        self.report.add("S013", f"'{tree.kind}[...]' belongs to the mathematics, not to shapes", tree.span)
        return None

    # Operators ------------------------------------------------------------------------------------

    def _unary(self, tree: s.Unary) -> Typed | None:
        operand = self.resolve(tree.operand)
        if operand is None:
            return None
        if tree.op == "not":
            if operand.kind != BOOL:
                self._mismatch("not", operand, None, tree.span)
                return None
            return Typed(m.Not(operand.expr, tree.span), BOOL)
        if operand.kind == BOOL:
            self._mismatch("-", operand, None, tree.span)
            return None
        if isinstance(operand.expr, m.Number):
            return Typed(m.Number(-operand.expr.value, tree.span), operand.kind)
        return Typed(m.Negate(operand.expr, tree.span), operand.kind)

    def _binary(self, tree: s.Binary) -> Typed | None:
        if tree.op in ("==", "!=") and isinstance(tree.left, s.Named) and tree.left.name in self.scope.enums:
            return self._enum_is(tree, tree.left)
        left, right = self.resolve(tree.left), self.resolve(tree.right)
        if left is None or right is None:
            return None
        if tree.op in LOGIC:
            if left.kind != BOOL or right.kind != BOOL:
                self._mismatch(tree.op, left, right, tree.span)
                return None
            return Typed(m.Operation("and" if tree.op == "and" else "or", left.expr, right.expr, tree.span), BOOL)
        op = operator(tree.op)
        if tree.op in ARITHMETIC:
            return self.arithmetic(op, left, right, tree.span)
        pair = self.unify(left, right)
        if pair is None or (pair[0].kind == BOOL and tree.op not in ("==", "!=")):
            self._mismatch(tree.op, left, right, tree.span)
            return None
        return Typed(m.Operation(op, pair[0].expr, pair[1].expr, tree.span), BOOL)

    def _enum_is(self, tree: s.Binary, left: s.Named) -> Typed | None:
        values = self.scope.enums[left.name]
        word = tree.right.name if isinstance(tree.right, s.Named) else None
        if word not in values or word is None:
            shown = f"'{word}' is not a value of '{left.name}'" if word else f"expected a value of '{left.name}'"
            help = (did_you_mean(word, values) if word else None) or f"it is one of {_list(values)}"
            self.report.add("S012", shown, tree.right.span, help)
            return None
        found: m.Expr = m.EnumIs(left.name, word, tree.span)
        return Typed(found if tree.op == "==" else m.Not(found, tree.span), BOOL)

    def arithmetic(self, op: m.Operator, left: Typed, right: Typed, span: Span) -> Typed | None:
        """Return an operation on two numbers, with their common kind."""
        pair = self.unify(left, right)
        if pair is None or pair[0].kind == BOOL:
            self._mismatch(op, left, right, span)
            return None
        kind = pair[0].kind
        if op == "/" and kind in (INT, NUMBER):
            self.report.add("S020", "'/' divides floats", span, "integers divide by // or ceildiv")
            return None
        if op in ("//", "%", "ceildiv") and kind not in (INT, NUMBER):
            self.report.add("S020", f"'{op}' takes integers, found {self.describe(kind)}", span)
            return None
        return Typed(m.Operation(op, pair[0].expr, pair[1].expr, span), kind)

    def unify(self, left: Typed, right: Typed) -> tuple[Typed, Typed] | None:
        """Return both operands with one kind, a literal taking the other's; None if the kinds are incompatible."""
        if left.kind == right.kind:
            return left, right
        for kind in (left.kind, right.kind):
            adapted = [self.adapt(operand, kind) for operand in (left, right)]
            if adapted[0] is not None and adapted[1] is not None:
                return adapted[0], adapted[1]
        return None

    def adapt(self, operand: Typed, kind: Kind) -> Typed | None:
        """Return an operand as a value of another kind; None if that needs a cast."""
        if operand.kind == kind:
            return operand
        if operand.kind == NUMBER and kind in (INT, REAL):
            return Typed(operand.expr, kind)
        return None

    def _choice(self, tree: s.Choice) -> Typed | None:
        condition = self.condition(tree.condition)
        if_true, if_false = self.resolve(tree.if_true), self.resolve(tree.if_false)
        if condition is None or if_true is None or if_false is None:
            return None
        pair = self.unify(if_true, if_false)
        if pair is None:
            self._mismatch("if", if_true, if_false, tree.span)
            return None
        return Typed(m.Conditional(condition, pair[0].expr, pair[1].expr, tree.span), pair[0].kind)

    def _mismatch(self, op: str, left: Typed, right: Typed | None, span: Span) -> None:
        both = self.describe(left.kind) + ("" if right is None else f" and {self.describe(right.kind)}")
        help = None
        if right is not None:
            elements = [k for k in (left.kind, right.kind) if k not in (INT, NUMBER, REAL, BOOL)]
            help = f"cast one of them, as in {elements[0]}(...)" if elements else None
        self.report.add("S020", f"'{op}' does not go with {both}", span, help)


def _list(words: str | tuple[str, ...]) -> str:
    return ", ".join(words)


def _of_floats(e: m.Expr) -> Iterator[m.Operation]:
    """Yield the operations on floats in a value."""
    if isinstance(e, m.Conditional):
        yield from (*_of_floats(e.if_true), *_of_floats(e.if_false))
    elif isinstance(e, m.Operation):
        yield from (e, *_of_floats(e.left), *_of_floats(e.right))
    elif isinstance(e, m.Negate):
        yield from _of_floats(e.operand)


def _element_help(attr: m.Attr) -> str:
    subscripts = "".join("[0]" for _ in attr.shape[1:2])
    if attr.layout is not None:
        return f"write {attr.name}.LETTER{subscripts} with a letter of '{attr.layout}'"
    return f"write {attr.name}[{', '.join('0' for _ in attr.shape)}]"
