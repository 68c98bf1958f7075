"""What names stand for while a generic op is expanded."""

from __future__ import annotations

from dataclasses import dataclass, field

from opgen.diagnostics import Span
from opgen.spec.call.environment import AttrStored
from opgen.spec.generic.lists import List
from opgen.spec.generic.trees import names_in
from opgen.spec.generic.values import boolean, integer, real
from opgen.spec.syntax import nodes as s


@dataclass
class Attribute:
    """An attribute, or a static input: its value in this call, and for a list its length (None: it is no list).

    Of a list of words, which only expansion reads, `words` are the value.
    """

    decl: s.AttrDecl
    value: AttrStored
    length: int | None = None
    static: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tensor:
    """A tensor as reads see it.

    `parts` are the dimensions as they are declared: of each, whether it is a pack, and how many it stands for.
    `absent` are the positions among all of them that this tensor lacks, because its pack stretches.
    """

    parts: tuple[tuple[bool, int], ...]
    absent: frozenset[int] = frozenset()

    @property
    def rank(self) -> int:
        """The number of dimensions, those included that the tensor lacks."""
        return sum(count for _, count in self.parts)


@dataclass
class World:
    """Names by what they are.

    `packs` are lists of dimensions, indices and named integers; `tensors_of` the names of several tensors; `aliases`
    what named integers stand for; `lets` what they are as written; `given` says of attributes that name types whether
    the call has them; `units` are the dimensions of size 1 of inputs, where they count; `sources`, of those that
    depend on an argument of the call, the argument.  `demanded` are the attributes whose values a structure depended
    on, `left` those that the expanded op still reads: what is `known` from the start is put in place everywhere.
    """

    known: frozenset[str]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    packs: dict[str, List] = field(default_factory=dict)
    tensors_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    aliases: dict[str, s.Expression] = field(default_factory=dict)
    present: dict[str, bool] = field(default_factory=dict)
    given: dict[str, bool] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    units: dict[str, tuple[int, ...]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    lets: dict[str, s.Expression] = field(default_factory=dict)
    demanded: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)

    def source(self, tree: s.Expression) -> str | None:
        """The attribute, or static input, that a value depends on; of several, the first."""
        for name in names_in(tree):
            if name in self.attributes:
                return name
            if name in self.sources:
                return self.sources[name]
        return None

    def element(self, name: str, at: int, span: Span, demand: bool) -> s.Expression:
        """An element of a list attribute: its value where a structure depends on it, else what reads it."""
        attribute = self.attributes[name]
        if attribute.words:
            return s.Named(span, attribute.words[at])
        if isinstance(attribute.value, tuple) and (demand or self._decided(name)):
            self.demanded.add(name)
            return literal(attribute.value[at], span)
        self.left.add(name)
        return s.Subscripted(span, s.Ident(span, name), (integer(at, span),), None)

    def is_open(self, name: str) -> bool:
        """Whether a name is that of a list attribute that is no part of the form: it is read as it is, then."""
        attribute = self.attributes.get(name)
        if attribute is None or attribute.length is None or attribute.words or name in self.packs:
            return False
        if not self._decided(name):
            self.left.add(name)
            return True
        return False

    def _decided(self, name: str) -> bool:
        """Whether the value of an attribute is a part of the form, as far as that is known by now."""
        return name in self.known or name in self.demanded

    def scalar(self, tree: s.Named, demand: bool) -> s.Expression:
        """An attribute that is no list."""
        attribute = self.attributes[tree.name]
        if not isinstance(attribute.value, tuple) and (demand or self._decided(tree.name)):
            self.demanded.add(tree.name)
            return literal(attribute.value, tree.span)
        self.left.add(tree.name)
        return tree


def literal(value: int | float | bool | str, span: Span) -> s.Expression:
    """A value of an attribute as a tree; a word is a name."""
    if isinstance(value, str):
        return s.Named(span, value)
    if isinstance(value, bool):
        return boolean(value, span)
    return integer(value, span) if isinstance(value, int) else real(value, span)
