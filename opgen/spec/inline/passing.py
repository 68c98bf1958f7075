"""Arguments that one op passes to another: tensors, types and attributes, each checked at the call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NoReturn

from opgen.diagnostics import Span
from opgen.dtypes import DTYPES, DType
from opgen.spec.inline.given import Giving, Refused
from opgen.spec.inline.passed import Bound, Given, Passed
from opgen.spec.model import model as m
from opgen.spec.resolve.scope import Readable, Scope
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural


class Passing(ABC):
    """Checker of the calls of other ops in one op; `opgen.spec.generic.passing` adds calls of generic ops."""

    def __init__(self, scope: Scope, caller: str, ops: m.Ops) -> None:
        self.scope = scope
        self.report = scope.report
        self.caller = caller
        self.ops = ops

    def passed(self, call: s.OpCall) -> Passed | None:
        """Return a call's arguments, or None with its mistakes noted (those of the called op elsewhere)."""
        target = self.ops.get(call.call.function.name)
        before = len(self.report)
        try:
            if isinstance(target, m.OpSpec):
                return self._plain(call, target) if len(self.report) == before else None
            return None if target is None else self.generic(call, target)
        except Refused:
            return None

    @abstractmethod
    def generic(self, call: s.OpCall, op: m.GenericOp) -> Passed:
        """Return the arguments of a call of a generic op.  Raises Refused after noting the reason."""

    def refuse(self, code: str, message: str, span: Span, help: str | None = None) -> NoReturn:
        self.report.add(code, message, span, help)
        raise Refused

    # A plain op -----------------------------------------------------------------------------------

    def _plain(self, call: s.OpCall, op: m.OpSpec) -> Passed:
        name, span = op.name, call.call.function.span
        if op.gradient is not None:
            self.refuse("S013", f"'{name}' is a gradient: an op uses ops, and has gradients of its own", span)
        for entry in op.inputs:
            if isinstance(entry, m.Sizes):
                message = f"'{name}' takes sizes ('{entry.name}'): an op that does cannot be used in another"
                self.refuse("S013", message, span)
        if len(call.names) > len(op.outputs):
            message = f"'{name}' has {plural(len(op.outputs), 'result')}, {len(call.names)} wanted here"
            self.refuse("S021", message, call.call.span)
        slots, attrs = self.slots(call, [i.name for i in op.inputs], False)
        aliases = {a.alias: a.name for a in op.attrs if a.alias is not None}
        known = {a.name for a in op.attrs if a.carried_by is None}
        given: dict[str, s.Keyword] = {}
        for keyword in attrs:
            found = aliases.get(keyword.name.name, keyword.name.name)
            if found not in known:
                self.report.unknown(f"argument of '{name}'", keyword.name.name, keyword.name.span, [*known, *aliases])
                raise Refused
            if found in given:
                self.refuse("S021", f"the argument '{found}' of '{name}' is given twice", keyword.span)
            given[found] = keyword
        tensors: dict[str, Readable] = {}
        for tensor, tree in zip(op.tensors, slots, strict=True):
            if tree is None:
                takes = ", ".join(i.name for i in op.inputs)
                self.refuse("S021", f"'{name}' takes tensors ({takes}), no '{tensor.name}' given", call.call.span)
            tensors[tensor.name] = self.tensor(name, tensor, tree)
        binder = Giving(self.scope, self.caller, op, call)
        values = {a.name: binder.given(a, given.get(a.name)) for a in op.attrs}
        return self.bound(call, op, tensors, values, binder.bounds)

    def bound(
        self,
        call: s.OpCall,
        op: m.OpSpec,
        tensors: Mapping[str, Readable],
        attrs: Mapping[str, Given],
        bounds: Sequence[Bound],
    ) -> Passed:
        types: dict[str, str] = {}
        for tensor in op.tensors:
            self._type(call, op, tensor, tensors[tensor.name], types)
        return Passed(op, tensors, attrs, types, bounds)

    def slots(
        self, call: s.OpCall, inputs: Sequence[str], several: bool
    ) -> tuple[list[s.Expression | None], list[s.Keyword]]:
        """Return the expression for each input (None if missing), and the remaining arguments."""
        name, given = call.call.function.name, call.call.arguments
        if len(given) > len(inputs) and not several:
            takes = f"{plural(len(inputs), 'tensor')} ({', '.join(inputs)})"
            self.refuse("S021", f"'{name}' takes {takes}, {len(given)} given", call.call.span)
        slots: list[s.Expression | None] = [*given, *[None] * (len(inputs) - len(given))]
        rest = []
        for keyword in call.call.keywords:
            if keyword.name.name not in inputs:
                rest.append(keyword)
                continue
            at = inputs.index(keyword.name.name)
            if slots[at] is not None or isinstance(keyword.value, s.Text):
                self.refuse("S021", f"the argument '{keyword.name.name}' of '{name}' is given twice", keyword.span)
            slots[at] = keyword.value
        return slots, rest

    # Tensors and types ----------------------------------------------------------------------------

    def tensor(self, op: str, wanted: m.Tensor, tree: s.Expression) -> Readable:
        """Return the tensor passed for an input of a plain op."""
        found = self.readable(op, wanted.name, tree)
        if found.shape_only and not wanted.shape_only:
            self.refuse("S013", f"'{found.name}' is shape_only: '{op}' reads elements of it", tree.span)
        rank = len(found.dims or ())
        if rank != wanted.rank:
            message = f"'{op}' takes {plural(wanted.rank, 'dimension')} for '{wanted.name}', '{found.name}' has {rank}"
            self.refuse("S021", message, tree.span)
        return found

    def readable(self, op: str, wanted: str, tree: s.Expression) -> Readable:
        scope = self.scope
        if not isinstance(tree, s.Named):
            help = "give it a name first: let t[i] = ..."
            self.refuse("S013", f"'{op}' takes the name of a tensor for '{wanted}'", tree.span, help)
        name = tree.name
        found = scope.tensors.get(name)
        if found is None:
            if name in scope.later_tensors:
                self.refuse("S023", f"'{name}' is used before it is defined", tree.span, f"move `let {name}` up")
            elif name in scope.known():
                self.refuse("S013", f"'{op}' takes a tensor for '{wanted}', and '{name}' is none", tree.span)
            elif name not in scope.poisoned:
                self.report.unknown("tensor", name, tree.span, scope.tensors)
            raise Refused
        if found.output:
            help = f"compute it in a `let` tensor and copy that to '{name}'"
            self.refuse("S013", f"'{name}' is an output: its elements cannot be read", tree.span, help)
        if found.dims is None:
            raise Refused
        return found

    def allowed(self, dtype: str) -> tuple[DType, ...]:
        variable = self.scope.type_variables.get(dtype)
        return variable.allowed if variable is not None else (DTYPES[dtype],)

    def _type(self, call: s.OpCall, op: m.OpSpec, tensor: m.Tensor, given: Readable, types: dict[str, str]) -> None:
        """Bind a type variable of the called op to a type of the calling op in `types`."""
        variable = op.type_variable(tensor.dtype)
        allowed = (DTYPES[tensor.dtype],) if variable is None else variable.allowed
        wanted = f"'{op.name}' takes {' or '.join(str(t) for t in allowed)} for '{tensor.name}'"
        wrong = next((t for t in self.allowed(given.dtype) if t not in allowed), None)
        if wrong is not None:
            may = f"may be {wrong}" if given.dtype in self.scope.type_variables else f"is {wrong}"
            self.refuse("S020", f"{wanted}, and '{given.name}' {may}", call.call.span)
        if variable is not None and types.setdefault(variable.name, given.dtype) != given.dtype:
            message = f"'{op.name}' takes one type for all of type {variable.name}: '{given.name}' is {given.dtype}"
            self.refuse("S020", f"{message}, another is {types[variable.name]}", call.call.span)
