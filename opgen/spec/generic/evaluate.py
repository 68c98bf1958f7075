"""Expansion of a generic op's expressions for a form: packs element by element, with known values folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from opgen.diagnostics import Span
from opgen.spec.call.arguments import CallError
from opgen.spec.generic.lists import LISTS, SINGLE, List, Misfit, list_function
from opgen.spec.generic.trees import parts
from opgen.spec.generic.types import QUESTIONS, Narrowed, of_types
from opgen.spec.generic.values import Mistake, binary, boolean, choice, integer, known_condition, known_integer, unary
from opgen.spec.generic.world import World
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural

FOLDS = {"sum": "+", "prod": "*", "max": "max", "min": "min", "all": "and", "any": "or"}
"""Functions of any number of arguments, with the operation that joins two of them."""

_EMPTY = {"sum": 0, "prod": 1, "all": True, "any": False}
_KNOWN = {"min", "max", "ceildiv"}


class Evaluator:
    """Expands expressions in a world.

    `one` returns the tree of one value, at position `at` of the enclosing pattern (None: outside patterns).  `all`
    returns the list that a pattern expands to.  Under `demanding`, conditions and integers must be known: the
    attributes that they depend on become part of the form.
    """

    def __init__(self, op: str, world: World, narrowed: Narrowed) -> None:
        self.op = op
        self.world = world
        self.narrowed = narrowed
        self.lengths: dict[str, int] = {}
        self.decided: dict[int, bool] = {}  # by the identity of a choice, if lengths depended on its condition
        self._demand = False

    @contextmanager
    def demanding(self) -> Iterator[None]:
        """Demand the values of attributes inside this block."""
        before, self._demand = self._demand, True
        try:
            yield
        finally:
            self._demand = before

    # Lists ------------------------------------------------------------------------------------------

    def list_of(self, name: str, span: Span) -> List | None:
        """Return the elements of a named list, or None for the name of one value."""
        world = self.world
        if name in world.packs:
            return world.packs[name]
        if name in self.lengths:
            return tuple(s.Named(span, f"{name}_{k}") for k in range(self.lengths[name]))
        if name in world.tensors_of:
            return tuple(s.Named(span, n) for n in world.tensors_of[name])
        attribute = world.attributes.get(name)
        if attribute is None or attribute.length is None:
            return None
        return tuple(world.element(name, k, span, self._demand) for k in range(attribute.length))

    def length_of(self, name: str) -> int | None:
        """Return the number of elements of a named list, without reading them."""
        attribute = self.world.attributes.get(name)
        if attribute is not None and name not in self.world.packs:
            return attribute.length
        if name in self.world.packs:
            return len(self.world.packs[name])
        return self.lengths.get(name, len(self.world.tensors_of[name]) if name in self.world.tensors_of else None)

    def all(self, tree: s.Expression) -> List:
        """Return the list that a pattern expands to."""
        match tree:
            case s.Named():
                found = self.list_of(tree.name, tree.span)
                if found is None:
                    raise Mistake(f"'{tree.name}' is one value: there is nothing to expand", tree.span)
                return found
            case s.Listed():
                return self.spread(tree.items, None)
            case s.Expansion():
                return self.all(tree.pattern)
            case s.Call() if tree.function.name in LISTS:
                return self._list_call(tree)
            case s.Choice():
                return self._list_choice(tree)
        count = self.length(tree)
        if count is None:
            raise Mistake("there is no pack in what is expanded here", tree.span, "write `...` after what has one")
        return tuple(self.one(tree, k) for k in range(count))

    def length(self, tree: s.Expression) -> int | None:
        """Return the number of elements of an expanded pattern, or None if it has no pack."""
        match tree:
            case s.Named():
                return self.length_of(tree.name)
            case s.Expansion():
                return None
            case s.Listed():
                return len(self.all(tree))
            case s.Call() if tree.function.name in LISTS:
                return len(self.all(tree))
            case s.Choice() if self.length(tree.condition) is None:
                decided = known_condition(self.one(tree.condition, None))
                if decided is not None:
                    return self.length(tree.if_true if decided else tree.if_false)
            case s.Call() if tree.function.name in SINGLE or tree.function.name in ("rank", "count", "present"):
                return None
        inside = list(parts(tree))
        if isinstance(tree, s.Subscripted) and tree.owner.name in self.world.tensors_of:
            inside.append(s.Named(tree.owner.span, tree.owner.name))
        found = [(n, p) for p in inside for n in [self.length(p)] if n is not None]
        for count, part in found[1:]:
            if count != found[0][0]:
                message = f"packs of {found[0][0]} and of {count} elements expand together here"
                raise self.misfit(message, tree, part.span)
        return found[0][0] if found else None

    def _list_choice(self, tree: s.Choice) -> List:
        condition = self._condition(tree.condition)
        if condition is not None:
            return self.all(tree.if_true if condition else tree.if_false)
        if self.length(tree.condition) is None and not self._demand:
            left, right = self._both(tree)
            if len(left) == len(right):
                decided = self.one(tree.condition, None)
                return tuple(choice(tree, decided, a, b) for a, b in zip(left, right, strict=True))
            with self.demanding():
                return self._list_choice(tree)
        count = self.length(tree)
        return tuple(self.one(tree, k) for k in range(count or 0))

    def _both(self, tree: s.Choice) -> tuple[List, List]:
        """Return both sides as lists of equal length; a single value is repeated."""
        counts = [self.length(side) for side in (tree.if_true, tree.if_false)]
        count = next((c for c in counts if c is not None), None)
        if count is None:
            raise Mistake("there is no pack in what is expanded here", tree.span)
        sides = [
            (self.one(side, None),) * count if own is None else self.all(side)
            for side, own in zip((tree.if_true, tree.if_false), counts, strict=True)
        ]
        return sides[0], sides[1]

    def _condition(self, tree: s.Expression) -> bool | None:
        """Return the value of a condition outside patterns, or None while it is open."""
        if self.length(tree) is not None:
            return None
        return known_condition(self.one(tree, None))

    def spread(self, trees: Iterable[s.Expression], at: int | None) -> List:
        """Expand the packs among arguments or subscripts."""
        found: list[s.Expression] = []
        for tree in trees:
            if isinstance(tree, s.Expansion):
                found += self.all(tree.pattern)
            else:
                found.append(self.one(tree, at))
        return tuple(found)

    # Known integers ---------------------------------------------------------------------------------

    def int_of(self, tree: s.Expression) -> int:
        """Return the value of an integer that the structure depends on."""
        with self.demanding():
            found = self.one(tree, None)
        value = known_integer(found)
        if value is None:
            raise Mistake("this is not known when an op is made of a call", tree.span, _KNOWN_HELP)
        return value

    def axes_of(self, tree: s.Expression) -> tuple[int, ...]:
        """Return a list of integers that the structure depends on."""
        with self.demanding():
            found = [known_integer(e) for e in self.all(tree)]
        values = tuple(v for v in found if v is not None)
        if len(values) < len(found):
            raise Mistake("these are not known when an op is made of a call", tree.span, _KNOWN_HELP)
        return values

    def _list_call(self, tree: s.Call) -> List:
        name, function = tree.function.name, list_function(tree)
        if name == "normalised":
            return self._normalised(tree)
        arguments: list[object] = []
        for kind, argument in zip(function.takes, tree.arguments, strict=True):
            if kind == "axes":
                arguments.append(self.axes_of(argument))
            elif kind == "int":
                arguments.append(self.int_of(argument))
            elif kind == "known":
                with self.demanding():
                    arguments.append(self.all(argument))
            elif kind == "tensor":
                arguments.append(self._units(argument))
            elif kind == "list" or (kind == "fill" and self.length(argument) is not None):
                arguments.append(self.all(argument))
            else:
                arguments.append(self.one(argument, None))
        if "fill" in function.takes and not isinstance(arguments[1], tuple):
            axes = arguments[-1]
            arguments[1] = (arguments[1],) * (len(axes) if isinstance(axes, tuple) else 0)
        try:
            return function.make(tree.span, *arguments)
        except Misfit as error:
            raise self.misfit(str(error), tree, tree.span) from None

    def _units(self, tree: s.Expression) -> tuple[int, ...]:
        """Return the dimensions of an input that have size 1."""
        if isinstance(tree, s.Named) and tree.name in self.world.units:
            return self.world.units[tree.name]
        raise Mistake("'units' takes an input, in a list that `let p... =` names", tree.span)

    def misfit(self, message: str, tree: s.Expression, span: Span) -> Exception:
        """Return the error for lists that do not fit each other.

        It is an error of the call if one of them depends on an argument, else of the spec.
        """
        source = self.world.source(tree)
        if source is None:
            return Mistake(message, span)
        value = self.world.attributes[source]
        shown = list(value.value) if isinstance(value.value, tuple) else value.value
        return CallError(self.op, source, f"values that fit ({message})", str(shown))

    def _normalised(self, tree: s.Call) -> List:
        """Return distinct axes, with negative ones counted from the end."""
        axes, rank = self.axes_of(tree.arguments[0]), self.int_of(tree.arguments[1])
        blamed = self.world.source(tree.arguments[0])
        found = tuple(a + rank if a < 0 else a for a in axes)
        if any(not 0 <= a < rank for a in found) or len(set(found)) < len(found):
            if blamed is None:
                raise Mistake(f"{list(axes)} are not different axes of {rank}", tree.span)
            expected = f"different axes from {-rank} to {rank - 1}" if rank else "no axes, for a tensor of rank 0"
            raise CallError(self.op, blamed, expected, str(list(axes)))
        return tuple(integer(a, tree.span) for a in found)

    # One value --------------------------------------------------------------------------------------

    def one(self, tree: s.Expression, at: int | None) -> s.Expression:
        """Return the tree of one value."""
        match tree:
            case s.Constant():
                return tree
            case s.Named():
                return self._named(tree, at)
            case s.Member():
                return s.Member(tree.span, tree.owner, tree.letter, self.spread(tree.subscripts, at))
            case s.Subscripted():
                return self._subscripted(tree, at)
            case s.Call():
                return self._call(tree, at)
            case s.Reduction():
                return self._reduction(tree, at)
            case s.Unary():
                return unary(tree, self.one(tree.operand, at))
            case s.Binary():
                return self._binary(tree, at)
            case s.Choice():
                return self._choice(tree, at)
            case s.Chain():
                return self._chain(tree, at)
            case s.Listed() if at is not None:
                return self._at(self.all(tree), at, tree)
        raise Mistake("several values stand where one goes", tree.span)

    def _at(self, found: Sequence[s.Expression], at: int, tree: s.Expression) -> s.Expression:
        if not 0 <= at < len(found):
            raise self.misfit(f"there is no element {at} of {len(found)}", tree, tree.span)
        return found[at]

    def _named(self, tree: s.Named, at: int | None) -> s.Expression:
        world = self.world
        count = self.length_of(tree.name)
        if count is not None:
            if at is None:
                raise Mistake(f"'{tree.name}' stands for several values", tree.span, f"write {tree.name}...")
            if tree.name in world.attributes and tree.name not in world.packs and at < count:
                return world.element(tree.name, at, tree.span, self._demand)
            return self._at(self.list_of(tree.name, tree.span) or (), at, tree)
        if tree.name in world.aliases:
            return world.aliases[tree.name]
        if self._demand and tree.name in world.lets:
            value = self.one(world.lets[tree.name], None)
            known = known_integer(value) is not None or known_condition(value) is not None
            return value if known else tree
        return world.scalar(tree, self._demand) if tree.name in world.attributes else tree

    def _subscripted(self, tree: s.Subscripted, at: int | None) -> s.Expression:
        owner = tree.owner
        several = self.world.tensors_of.get(owner.name)
        if several is not None:
            if at is None:
                raise Mistake(f"'{owner.name}' stands for several tensors", owner.span, f"write {owner.name}[...]...")
            if at >= len(several):
                raise Mistake(f"there is no tensor {at} of {len(several)}", owner.span)
            owner = s.Ident(owner.span, several[at])
        elif self.world.present.get(owner.name) is False:
            help = f"ask first: if present({owner.name}) then ... else ..."
            raise Mistake(f"'{owner.name}' is optional, and read where it may be absent", owner.span, help)
        elif self.length_of(owner.name) is not None:
            return self._element(tree, at)
        subscripts = self.spread(tree.subscripts, at)
        tensor = self.world.tensors.get(owner.name)
        if tensor is not None and tensor.absent and len(subscripts) == tensor.rank:
            subscripts = tuple(e for k, e in enumerate(subscripts) if k not in tensor.absent)
        outside = None if tree.outside is None else self.one(tree.outside, at)
        return s.Subscripted(tree.span, owner, subscripts, outside)

    def _element(self, tree: s.Subscripted, at: int | None) -> s.Expression:
        """Return an element of a pack or a list attribute; a negative position counts from the end."""
        if len(tree.subscripts) != 1:
            raise Mistake(f"an element of '{tree.owner.name}' takes 1 subscript", tree.span)
        subscript = self.one(tree.subscripts[0], at)
        position = known_integer(subscript)
        if position is None and self.world.is_open(tree.owner.name):
            if not self.world.attributes[tree.owner.name].length:
                raise CallError(self.op, tree.owner.name, "a list of at least one element", "[]")
            outside = None if tree.outside is None else self.one(tree.outside, at)
            return s.Subscripted(tree.span, tree.owner, (subscript,), outside)
        if position is None:
            raise Mistake("this is not known when an op is made of a call", tree.subscripts[0].span, _KNOWN_HELP)
        name = tree.owner.name
        count = self.length_of(name) or 0
        position += count if position < 0 else 0
        if not 0 <= position < count:
            raise self.misfit(f"'{name}' has {plural(count, 'element')} here: {position} is outside", tree, tree.span)
        return self._named(s.Named(tree.span, name), position)

    def _reduction(self, tree: s.Reduction, at: int | None) -> s.Expression:
        ranges = self.ranges(tree.ranges, at)
        body = self.one(tree.body, at)
        condition = None if tree.condition is None else self.one(tree.condition, at)
        if condition is not None and known_condition(condition):
            condition = None
        if not ranges and condition is None:
            return body
        if not ranges:
            # A false condition leaves no term: a range of one index with a false condition expresses that.
            index = s.Ident(tree.ranges[0].span, f"{tree.ranges[0].index.name}_0")
            ranges = (s.Range(tree.ranges[0].span, index, integer(1, tree.span)),)
            first = s.Binary(tree.span, "==", s.Named(index.span, index.name), integer(0, tree.span))
            condition = s.Binary(tree.span, "and", first, condition or first)
        place = None if tree.place is None else self.one(tree.place, at)
        return s.Reduction(tree.span, tree.kind, ranges, body, condition, place)

    def ranges(self, trees: Iterable[s.Range], at: int | None) -> tuple[s.Range, ...]:
        """Expand packs in ranges of indices."""
        found: list[s.Range] = []
        for tree in trees:
            if not tree.pack:
                extent = None if tree.extent is None else self.one(tree.extent, at)
                found.append(s.Range(tree.span, tree.index, extent))
                continue
            count = self.lengths.get(tree.index.name, -1)
            if count < 0:
                raise Mistake(f"nothing tells how many indices '{tree.index.name}...' stands for", tree.span)
            extents: Sequence[s.Expression | None] = [None] * count
            if isinstance(tree.extent, s.Expansion):
                extents = self.all(tree.extent.pattern)
                if len(extents) != count:
                    message = f"{count} indices do not go with {len(extents)} extents"
                    raise Mistake(message, tree.span)
            elif tree.extent is not None:
                extents = [self.one(tree.extent, at)] * count
            found += [
                s.Range(tree.span, s.Ident(tree.index.span, f"{tree.index.name}_{k}"), e) for k, e in enumerate(extents)
            ]
        return tuple(found)

    # Calls ------------------------------------------------------------------------------------------

    def _call(self, tree: s.Call, at: int | None) -> s.Expression:
        if tree.keywords:
            raise Mistake(f"'{tree.function.name}' is no op: its arguments have no names", tree.keywords[0].span)
        name, world = tree.function.name, self.world
        if name in ("rank", "count"):
            return integer(self._count(tree), tree.span)
        if name == "present":
            return self._present(tree)
        if name in QUESTIONS:
            return self.narrowed.ask(tree, world.types)
        if name in LISTS:
            if at is None:
                raise Mistake(f"'{name}' gives several values", tree.span, f"write {name}(...)...")
            return self._at(self._list_call(tree), at, tree)
        if name in SINGLE:
            return self._list_call(tree)[0]
        expanded = any(isinstance(a, s.Expansion) for a in tree.arguments)
        arguments = self.spread(tree.arguments, at)
        if name in FOLDS and (expanded or name not in ("min", "max")):
            return self._fold(tree, arguments)
        if name in _KNOWN and len(arguments) == 2 and all(known_integer(a) is not None for a in arguments):
            return binary(name, arguments[0], arguments[1], tree.span)
        return of_types(tree, arguments, world.types)

    def _fold(self, tree: s.Call, arguments: List) -> s.Expression:
        name = tree.function.name
        if not arguments:
            if name not in _EMPTY:
                raise Mistake(f"'{name}' of nothing has no value", tree.span)
            value = _EMPTY[name]
            return boolean(value, tree.span) if isinstance(value, bool) else integer(value, tree.span)
        found = arguments[0]
        for argument in arguments[1:]:
            both = known_integer(found) is not None and known_integer(argument) is not None
            if FOLDS[name] in ("min", "max") and not both:
                found = s.Call(tree.span, tree.function, (found, argument))
            else:
                found = binary(FOLDS[name], found, argument, tree.span)
        return found

    def _count(self, tree: s.Call) -> int:
        """Evaluate `rank(tensor or pack)` or `count(list or tensors)`."""
        argument = tree.arguments[0] if len(tree.arguments) == 1 else tree
        if isinstance(argument, s.Named):
            name = argument.name
            if name in self.world.ranks and tree.function.name == "rank":
                return self.world.ranks[name]
            if self.world.present.get(name) is False:
                return 0
        count = None if argument is tree else self.length(argument)
        if count is None:
            raise Mistake(f"'{tree.function.name}' takes a tensor, a pack or a list", tree.span)
        return count

    def _present(self, tree: s.Call) -> s.Expression:
        argument = tree.arguments[0] if len(tree.arguments) == 1 else None
        if not isinstance(argument, s.Named):
            return tree
        attribute = self.world.attributes.get(argument.name)
        length = None if attribute is None else attribute.length
        given = self.world.given.get(argument.name) if length is None else length > 0
        given = self.world.present.get(argument.name, given)
        if given is not None:
            return boolean(given, tree.span)
        if attribute is not None:
            self.world.left.add(argument.name)
        return tree

    # Operators --------------------------------------------------------------------------------------

    def _binary(self, tree: s.Binary, at: int | None) -> s.Expression:
        if tree.op in ("==", "!=") and isinstance(tree.right, s.Named):
            word = self._word(tree.left, at)
            if word is not None:
                if isinstance(word, s.Named) and word.name in self.world.attributes and word is tree.left:
                    return s.Binary(tree.span, tree.op, word, tree.right)
                same = isinstance(word, s.Named) and word.name == tree.right.name
                return boolean(same == (tree.op == "=="), tree.span)
        left = self.one(tree.left, at)
        if tree.op in ("and", "or") and known_condition(left) == (tree.op == "or"):
            return left
        return binary(tree.op, left, self.one(tree.right, at), tree.span)

    def _word(self, tree: s.Expression, at: int | None) -> s.Expression | None:
        """Return the word of an enumeration or of an element of a list of words; the tree itself while open."""
        name = tree.name if isinstance(tree, s.Named) else tree.owner.name if isinstance(tree, s.Subscripted) else ""
        attribute = self.world.attributes.get(name)
        words = attribute is not None and attribute.decl.type.words
        return self.one(tree, at) if words else None

    def _choice(self, tree: s.Choice, at: int | None) -> s.Expression:
        condition = self.one(tree.condition, at)
        decided = self.decided.get(id(tree), known_condition(condition))
        if decided is not None:
            return self.one(tree.if_true if decided else tree.if_false, at)
        return choice(tree, condition, self.one(tree.if_true, at), self.one(tree.if_false, at))

    def _chain(self, tree: s.Chain, at: int | None) -> s.Expression:
        """Return the value of the first element for which the condition holds."""
        count = self.length(tree.value)
        if count is None:
            raise Mistake("there is no pack in what is chosen from", tree.value.span)
        found = None if tree.if_false is None else self.one(tree.if_false, at)
        for k in reversed(range(count)):
            value = self.one(tree.value, k)
            if found is None:
                found = value
                continue
            condition = self.one(tree.condition, k)
            decided = known_condition(condition)
            if decided is None:
                found = s.Choice(tree.span, condition, value, found)
            elif decided:
                found = value
        if found is None:
            raise Mistake("there is nothing to choose from", tree.span, "say what it is then: ... else ...")
        return found


_KNOWN_HELP = "it may depend on ranks, numbers of tensors, attributes and static inputs"
