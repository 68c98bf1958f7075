"""Lengths of packs of indices, determined by the tensors that they subscript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext

from opgen.diagnostics import Span
from opgen.spec.generic.evaluate import Evaluator
from opgen.spec.generic.lists import LISTS, list_function
from opgen.spec.generic.trees import everything_in, parts
from opgen.spec.generic.values import Mistake, known_condition
from opgen.spec.syntax import nodes as s


class Lengths:
    """Solver for the lengths of the index packs in one definition; results go to `evaluator.lengths`."""

    def __init__(self, evaluator: Evaluator, decl: s.DefinitionDecl) -> None:
        self.evaluator = evaluator
        self.found = evaluator.lengths
        self.decl = decl
        self.trees = [*decl.subscripts, decl.value, *(r.extent for r in decl.where if r.extent is not None)]
        self.trees += [] if decl.condition is None else [decl.condition]
        self.packs: dict[str, Span] = {}

    def solve(self) -> None:
        """Raise Mistake if a length is undetermined, or if tensors contradict each other."""
        self.found.clear()
        for ident in self._binders():
            if self.evaluator.length_of(ident.name) is not None:
                raise Mistake(f"the index '{ident.name}' has the name of something else", ident.span)
            self.packs.setdefault(ident.name, ident.span)
        while len(self.found) < len(self.packs):
            before = len(self.found)
            self._pass()
            if len(self.found) == before:
                name = next(n for n in self.packs if n not in self.found)
                message = f"nothing tells how many indices '{name}...' stands for"
                raise Mistake(message, self.packs[name], f"write {name}... < dims... where it is bound")
        self._pass()

    def _binders(self) -> Iterator[s.Ident]:
        """Yield the names of packs where they are bound: on the left side, after `where`, and by reductions."""
        known = {*self.evaluator.world.attributes, *self.evaluator.world.aliases, *self.evaluator.world.packs}
        for subscript in self.decl.subscripts:
            if isinstance(subscript, s.Expansion):
                for named in _expanded(subscript.pattern):
                    if named.name not in known:
                        yield s.Ident(named.span, named.name)
        for tree in self.trees:
            for node in self._taken(tree):
                if isinstance(node, s.Reduction):
                    yield from (r.index for r in node.ranges if r.pack)
        yield from (r.index for r in self.decl.where if r.pack)

    # One round --------------------------------------------------------------------------------------

    def _pass(self) -> None:
        self._subscripts(self.decl.target.name, self.decl.subscripts)
        self._ranges(self.decl.where)
        for tree in self.trees:
            for node in self._taken(tree):
                match node:
                    case s.Subscripted():
                        self._subscripts(node.owner.name, node.subscripts)
                    case s.Reduction():
                        self._ranges(node.ranges)
                    case s.Expansion():
                        count = self._length(node.pattern)
                        if count is not None:
                            self._learn(node.pattern, count)

    def _taken(self, tree: s.Expression) -> Iterator[s.Expression]:
        """Yield an expression and everything inside it, except the branches that this form does not take."""
        yield tree
        if isinstance(tree, s.Binary) and tree.op in ("and", "or"):
            for part, _ in self._asked(tree, demand=False):
                yield from self._taken(part)
            return
        side = self._side(tree) if isinstance(tree, s.Choice) else None
        for part in parts(tree) if side is None else (side,):
            yield from self._taken(part)

    def _ranges(self, ranges: Iterable[s.Range]) -> None:
        for r in ranges:
            if r.pack and isinstance(r.extent, s.Expansion):
                count = self._length(r.extent.pattern)
                if count is not None:
                    self._set(r.index.name, count, r.span)

    def _subscripts(self, owner: str, subscripts: Sequence[s.Expression]) -> None:
        """Learn lengths from a tensor's dimensions.

        Packs are matched one by one if the subscripts have packs in the same places, else by the total number.
        """
        world = self.evaluator.world
        several = world.tensors_of.get(owner)
        tensor = world.tensors.get(several[0] if several else owner)
        if tensor is None:
            return
        spread = [isinstance(e, s.Expansion) for e in subscripts]
        if spread == [pack for pack, _ in tensor.parts]:
            for subscript, (pack, count) in zip(subscripts, tensor.parts, strict=True):
                if pack and isinstance(subscript, s.Expansion):
                    self._learn(subscript.pattern, count)
            return
        counts = [self._length(e.pattern) if isinstance(e, s.Expansion) else 1 for e in subscripts]
        open_ = [e for e, n in zip(subscripts, counts, strict=True) if n is None]
        if len(open_) == 1 and isinstance(open_[0], s.Expansion):
            rest = tensor.rank - sum(n or 0 for n in counts)
            if rest < 0:
                raise Mistake(f"'{owner}' has {tensor.rank} dimensions, here are more subscripts", open_[0].span)
            self._learn(open_[0].pattern, rest)

    def _set(self, name: str, count: int, span: Span) -> None:
        if self.found.setdefault(name, count) != count:
            message = f"'{name}...' stands for {self.found[name]} indices, and for {count} here"
            raise Mistake(message, span)

    # Lengths of patterns ----------------------------------------------------------------------------

    def _open(self, tree: s.Expression) -> bool:
        """Return True if a pattern contains packs of unknown length."""
        for node in everything_in(tree):
            if isinstance(node, s.Named) and node.name in self.packs and node.name not in self.found:
                return True
            if isinstance(node, s.Reduction) and any(r.pack and r.index.name not in self.found for r in node.ranges):
                return True
        return False

    def _length(self, tree: s.Expression) -> int | None:
        """Return the number of elements of a pattern, or None while it is unknown."""
        if not self._open(tree):
            return self.evaluator.length(tree)
        match tree:
            case s.Named() | s.Expansion():
                return None
            case s.Call() if tree.function.name in LISTS:
                return self._call_length(tree)
            case s.Listed():
                counts = [self._length(i.pattern) if isinstance(i, s.Expansion) else 1 for i in tree.items]
                return None if None in counts else sum(n for n in counts if n is not None)
            case s.Choice():
                side = self._side(tree)
                return self._length(side) if side is not None else self._first((tree.if_true, tree.if_false))
        return self._first(parts(tree))

    def _first(self, trees: Iterable[s.Expression]) -> int | None:
        return next((n for n in map(self._length, trees) if n is not None), None)

    def _side(self, tree: s.Choice) -> s.Expression | None:
        """Return the branch that a choice takes, or None while it is undecided."""
        decided = self._condition(tree.condition)
        if decided is None:
            return None
        self.evaluator.decided[id(tree)] = decided
        return tree.if_true if decided else tree.if_false

    def _condition(self, tree: s.Expression, demand: bool = True) -> bool | None:
        """Return the value of a condition, or None while it is undecided; one decisive operand is enough."""
        if isinstance(tree, s.Binary) and tree.op in ("and", "or"):
            return self._joined(tree, demand)
        if self._open(tree) or self.evaluator.length(tree) is not None:
            return None
        with self.evaluator.demanding() if demand else nullcontext():
            return known_condition(self.evaluator.one(tree, None))

    def _joined(self, tree: s.Binary, demand: bool) -> bool | None:
        """Return the value of conditions joined by one operation: one may decide, else all are needed."""
        enough, known = tree.op == "or", True
        for _, found in self._asked(tree, demand):
            if found == enough:
                return found
            known = known and found is not None
        return not enough if known else None

    def _asked(self, tree: s.Binary, demand: bool) -> Iterator[tuple[s.Expression, bool | None]]:
        """Yield joined conditions with their values, up to the first decisive one.

        Conditions after an open one are not evaluated.
        """
        enough, asked = tree.op == "or", True
        for part in operands(tree):
            found = self._condition(part, demand) if asked else None
            yield part, found
            if found == enough:
                return
            asked = asked and not (found is None and self._open(part))

    def _call_length(self, tree: s.Call) -> int | None:
        """Return the length of a list function's result if some argument is open."""
        list_function(tree)
        name, arguments = tree.function.name, tree.arguments
        evaluator = self.evaluator
        if name == "pick":
            return len(evaluator.axes_of(arguments[1]))
        if name in ("take", "repeat", "aligned"):
            return abs(evaluator.int_of(arguments[1]))
        inner = self._length(arguments[0])
        if inner is None:
            return None
        if name in ("drop", "place"):
            return inner + len(evaluator.axes_of(arguments[-1])) * (1 if name == "place" else -1)
        return inner - abs(evaluator.int_of(arguments[1])) if name == "skip" else inner

    def _learn(self, tree: s.Expression, count: int) -> None:
        """Record the length of a pattern for the packs in it."""
        match tree:
            case s.Named():
                if tree.name in self.packs:
                    self._set(tree.name, count, tree.span)
            case s.Expansion():
                pass
            case s.Call() if tree.function.name in LISTS:
                self._learn_call(tree, count)
            case s.Listed():
                counts = [self._length(i.pattern) if isinstance(i, s.Expansion) else 1 for i in tree.items]
                if counts.count(None) == 1:
                    item = tree.items[counts.index(None)]
                    if isinstance(item, s.Expansion):
                        self._learn(item.pattern, count - sum(n or 0 for n in counts))
            case s.Choice():
                side = self._side(tree)
                for part in (tree.if_true, tree.if_false) if side is None else (side,):
                    self._learn(part, count)
            case _:
                for part in parts(tree):
                    self._learn(part, count)

    def _learn_call(self, tree: s.Call, count: int) -> None:
        list_function(tree)
        name, arguments = tree.function.name, tree.arguments
        evaluator = self.evaluator
        if name == "drop":
            self._learn(arguments[0], count + len(evaluator.axes_of(arguments[1])))
        elif name == "place":
            picked = len(evaluator.axes_of(arguments[2]))
            self._learn(arguments[0], count - picked)
            self._learn(arguments[1], picked)
        elif name == "skip":
            self._learn(arguments[0], count + abs(evaluator.int_of(arguments[1])))
        elif name in ("reversed", "starts"):
            self._learn(arguments[0], count)


def operands(tree: s.Binary) -> Iterator[s.Expression]:
    """Yield the operands of a chain of one operation, from the left."""
    row: list[s.Expression] = [tree]
    while isinstance(first := row[-1], s.Binary) and first.op == tree.op:
        row[-1:] = [first.right, first.left]
    yield from reversed(row)


def _expanded(tree: s.Expression) -> Iterator[s.Named]:
    """Yield the names in a left-side pattern that may be packs; in reads and lists, only those that are expanded."""
    if isinstance(tree, s.Named):
        yield tree
    for part in parts(tree):
        if not isinstance(tree, s.Subscripted | s.Listed) or isinstance(part, s.Expansion):
            yield from _expanded(part)
