"""Generic ops called by another op: ranks of the arguments and values determine their form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from opgen.diagnostics import DiagnosticError
from opgen.spec.call.arguments import AttrArgument, CallError
from opgen.spec.generic.form import Argument, Instance
from opgen.spec.generic.sizes import depends_on_sizes
from opgen.spec.inline.given import Giving, literal
from opgen.spec.inline.passed import Passed
from opgen.spec.inline.passing import Passing
from opgen.spec.model import model as m
from opgen.spec.resolve.scope import Readable, Scope
from opgen.spec.syntax import nodes as s

Make = Callable[[m.GenericOp, Sequence[Argument | None], Mapping[str, object], int], Instance]
"""The function that makes the plain op for a call of a generic op."""


class AnyPassing(Passing):
    """Checks of calls of other ops, generic ones included, inside one op."""

    def __init__(self, ops: m.Ops, make: Make, scope: Scope, caller: str) -> None:
        super().__init__(scope, caller, ops)
        self._make = make

    def generic(self, call: s.OpCall, op: m.GenericOp) -> Passed:
        decls = op.inputs
        if depends_on_sizes(op):
            message = f"'{op.name}' depends on sizes that only a call tells: it cannot be used in another op"
            self.refuse("S013", message, call.call.function.span)
        several = bool(decls) and isinstance(decls[-1], s.SeveralDecl)
        slots, keywords = self.slots(call, [d.name.name for d in decls], several)
        while slots and slots[-1] is None:
            slots.pop()
        arguments = [self._argument(op, decls[min(at, len(decls) - 1)], tree) for at, tree in enumerate(slots)]
        attributes, open_ = self._attributes(op, keywords)
        made = self._instance(call, op, arguments, attributes)
        for attr, keyword in open_.items():
            if not any(a.name == attr for a in made.op.attrs):
                message = f"which op '{op.name}' is depends on '{attr}': here it takes a value"
                self.refuse("S013", message, keyword.span, "write a number or a word")
        binder = Giving(self.scope, self.caller, made.op, call)
        attrs = {
            a.name: binder.given(a, open_[a.name]) if a.name in open_ else binder.settled(a, made.attributes[a.name])
            for a in made.op.attrs
        }
        bound: dict[str, Readable] = {}
        for tensor, position in zip(made.op.tensors, made.inputs, strict=True):
            tree = slots[position]
            if tree is not None:
                bound[tensor.name] = self.tensor(op.name, tensor, tree)
        return self.bound(call, made.op, bound, attrs, binder.bounds)

    def _argument(
        self,
        op: m.GenericOp,
        decl: s.TensorDecl | s.SeveralDecl | s.StaticDecl | s.SizesDecl,
        tree: s.Expression | None,
    ) -> Argument | None:
        """Return a tensor as an argument of the called op's form: with its first allowed type, and with open sizes."""
        if tree is None:
            return None
        if isinstance(decl, s.StaticDecl):
            return _static(decl, self._literal(op.name, decl.name.name, tree))
        found = self.readable(op.name, decl.name.name, tree)
        return Argument(self.allowed(found.dtype)[0].name, len(found.dims or ()))

    def _attributes(
        self, op: m.GenericOp, keywords: Sequence[s.Keyword]
    ) -> tuple[dict[str, object], dict[str, s.Keyword]]:
        """Return the values of attributes, and the keywords whose values only a call of the enclosing op gives."""
        decls = {a.name.name: a for a in op.attrs}
        values: dict[str, object] = {}
        open_: dict[str, s.Keyword] = {}
        for keyword in keywords:
            name = keyword.name.name
            value = literal(self.scope, keyword.value)
            if value is None and name in decls:
                open_[name] = keyword
                values[name] = _sample(decls[name])
            else:
                values[name] = self._literal(op.name, name, keyword.value)
        return values, open_

    def _instance(
        self,
        call: s.OpCall,
        op: m.GenericOp,
        arguments: Sequence[Argument | None],
        attributes: Mapping[str, object],
    ) -> Instance:
        try:
            return self._make(op, arguments, attributes, len(call.names))
        except CallError as error:
            message = f"'{op.name}' in '{self.caller}': argument '{error.argument}': expected {error.expected}"
            self.refuse("S020", f"{message}, given {error.given}", call.call.span)
        except DiagnosticError as error:
            told = error.diagnostics[0]
            message = f"'{op.name}' cannot be used so in '{self.caller}': {told.message}"
            self.refuse("S065", message, call.call.span, told.help)

    def _literal(self, op: str, argument: str, tree: s.Expression | s.Text) -> AttrArgument:
        value = literal(self.scope, tree)
        if value is None:
            self.refuse("S013", f"'{op}' takes a value for '{argument}' here: a number, a word or a list", tree.span)
        return value


def _sample(decl: s.AttrDecl) -> object:
    """Return an allowed value for an attribute that only a call gives."""
    if decl.type.words:
        word = decl.type.words[0].name.name
        return [word] if decl.type.shape else word
    if decl.default is not None:
        return None
    least = 1 if decl.minimum is None else int(float(decl.minimum.text))
    return {"bool": True, "float": float(least)}.get(decl.type.kind.name, least)


def _static(decl: s.StaticDecl, value: AttrArgument) -> Argument:
    """Return a static input: a number or a list of numbers."""
    values = value if isinstance(value, list | tuple) else (value,)
    numbers = tuple(v for v in values if isinstance(v, int | float) and not isinstance(v, bool))
    return Argument(decl.dtype.name, 0 if decl.scalar else 1, tuple(map(float, numbers)), ())
