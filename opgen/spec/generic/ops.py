"""Calls of other ops inside a generic op, expanded for a form, with the ranks of their results."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from opgen.spec.call.arguments import CallError
from opgen.spec.generic.evaluate import Evaluator
from opgen.spec.generic.form import Argument
from opgen.spec.generic.passing import Make
from opgen.spec.generic.values import Mistake
from opgen.spec.generic.world import Tensor
from opgen.spec.model import model as m
from opgen.spec.resolve.kinds import number
from opgen.spec.syntax import nodes as s


class OpCalls:
    """Expands the calls of other ops in one form; `types` holds the types of its type variables."""

    def __init__(self, op: m.GenericOp, evaluator: Evaluator, make: Make) -> None:
        self._op = op
        self._make = make
        self._evaluator = evaluator
        self._world = evaluator.world
        self._dtypes = {
            i.name.name: i.dtype.name for i in op.inputs if isinstance(i, s.TensorDecl | s.SeveralDecl)
        }  # fmt: skip

    def expanded(self, item: s.OpCall, types: Mapping[str, str]) -> Iterator[s.OpCall]:
        """Expand the arguments of a call, and record its results for later declarations."""
        target = self._op.ops.get(item.call.function.name)
        arguments = tuple(e for a in item.call.arguments for e in self._argument(a))
        keywords = tuple(self._keyword(k, isinstance(target, m.GenericOp)) for k in item.call.keywords)
        call = dataclasses.replace(item.call, arguments=arguments, keywords=keywords)
        for name, (rank, dtype) in zip(item.names, self._results(target, call, len(item.names), types), strict=False):
            self._world.tensors[name.name] = Tensor(((False, 1),) * rank)
            self._dtypes[name.name] = dtype
        yield dataclasses.replace(item, call=call)

    def _argument(self, tree: s.Expression) -> Iterator[s.Expression]:
        world = self._world
        pattern = tree.pattern if isinstance(tree, s.Expansion) else tree
        if not isinstance(pattern, s.Named):
            yield self._value(tree)
        elif isinstance(tree, s.Expansion):
            yield from self._evaluator.all(pattern)
        elif world.present.get(pattern.name) is False:
            raise Mistake(f"'{pattern.name}' is optional, and given where it may be absent", tree.span)
        elif self._known(pattern.name):
            yield self._value(tree)
        else:
            yield pattern

    def _known(self, name: str) -> bool:
        return name in self._world.attributes or self._evaluator.length_of(name) is not None

    def _keyword(self, keyword: s.Keyword, form: bool) -> s.Keyword:
        """Expand a keyword argument; for a generic op its value must be known from the form."""
        value = keyword.value
        if isinstance(value, s.Text):
            return keyword
        if not form:
            return dataclasses.replace(keyword, value=self._value(value))
        with self._evaluator.demanding():
            return dataclasses.replace(keyword, value=self._value(value))

    def _value(self, tree: s.Expression) -> s.Expression:
        if isinstance(tree, s.Listed | s.Expansion):
            return s.Listed(
                tree.span, self._evaluator.spread((tree,) if isinstance(tree, s.Expansion) else tree.items, None)
            )
        if isinstance(tree, s.Named) and self._evaluator.length_of(tree.name) is not None:
            return s.Listed(tree.span, self._evaluator.all(tree))
        return self._evaluator.one(tree, None)

    # Results --------------------------------------------------------------------------------------

    def _results(
        self, target: m.OpSpec | m.GenericOp | None, call: s.Call, wanted: int, types: Mapping[str, str]
    ) -> Iterator[tuple[int, str]]:
        """Yield the rank and type of each result, as far as they are known; the checker checks the call itself."""
        if isinstance(target, m.OpSpec):
            yield from ((o.rank, o.dtype) for o in target.outputs[:wanted])
        elif target is not None:
            arguments = [self._given(a, types) for a in call.arguments]
            attributes = {k.name.name: _plain(k.value) for k in call.keywords}
            inputs = [i.name.name for i in target.inputs]
            for at, name in enumerate(inputs[len(arguments) :], len(arguments)):
                tree = next((k.value for k in call.keywords if k.name.name == name), None)
                arguments += [None] * (at - len(arguments))
                arguments.append(None if tree is None or isinstance(tree, s.Text) else self._given(tree, types))
            values = {n: v for n, v in attributes.items() if n not in inputs and v is not None}
            while arguments and arguments[-1] is None:
                arguments.pop()
            try:
                made = self._make(target, arguments, values, wanted)
            except CallError as error:
                message = (
                    f"'{target.name}' in '{self._op.name}': argument '{error.argument}': expected {error.expected}"
                )
                raise Mistake(f"{message}, given {error.given}", call.span) from None
            yield from ((o.rank, made.types.get(o.dtype, o.dtype)) for o in made.op.outputs)

    def _given(self, tree: s.Expression, types: Mapping[str, str]) -> Argument | None:
        """Return an argument of a generic op, as far as ranks depend on it."""
        if not isinstance(tree, s.Named):
            value = _plain(tree)
            values = value if isinstance(value, list) else [value]
            numbers = tuple(float(v) for v in values if isinstance(v, int | float))
            return Argument("int64", 1 if isinstance(value, list) else 0, numbers)
        name, world = tree.name, self._world
        base = next((n for n, several in world.tensors_of.items() if name in several), name)
        tensor = world.tensors.get(name)
        if tensor is None:
            raise Mistake(f"'{name}' is no tensor that is there before", tree.span)
        first = next(iter(types.values()), "float32")
        dtype = self._dtypes.get(base, first)
        return Argument(types.get(dtype, dtype), tensor.rank - len(tensor.absent))


def _plain(tree: s.Expression | s.Text) -> object:
    """Return a number, a word, a text, or a list of them; None if the form leaves the value open."""
    match tree:
        case s.Text():
            return tree.value
        case s.Constant():
            return number(tree)
        case s.Unary(op="-", operand=s.Constant() as operand):
            value = number(operand)
            return None if value is None else -value
        case s.Named():
            return tree.name
        case s.Listed():
            return [_plain(i) for i in tree.items]
    return None
