"""Meanings of names while a generic op is expanded."""

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
    """An attribute or a static input: its value in this call, and the length of a list (None for a scalar).

    For a list of words, which only expansion reads, `words` is the value.
    """

    decl: s.AttrDecl
    value: AttrStored
    length: int | None = None
    static: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tensor:
    """A tensor as reads see it.

    `parts` has one entry for each declared dimension: True for a pack, and the number of dimensions in it.  `absent`
    holds the positions that this tensor lacks because its pack stretches.
    """

    parts: tuple[tuple[bool, int], ...]
    absent: frozenset[int] = frozenset()

    @property
    def rank(self) -> int:
        """Return the number of dimensions, including absent ones."""
        return sum(count for _, count in self.parts)


@dataclass
class World:
    """Names by their meaning.

    `packs` are lists of dimensions, indices and named integers; `tensors_of` has the names of several tensors.
    `aliases` has the expanded values of named integers, `lets` their values as written.  `given` tells if the call has
    an attribute that names a type.  `units` has the dimensions of size 1 of inputs, if the form depends on them.
    `sources` maps a name to the argument of the call that it depends on.  `demanded` are the attributes whose values
    the structure depends on; `left` those that the expanded op still reads.  Attributes `known` from the start are
    replaced by their values everywhere.
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
        """Return the first attribute or static input that a value depends on."""
        for name in names_in(tree):
            if name in self.attributes:
                return name
            if name in self.sources:
                return self.sources[name]
        return None

    def element(self, name: str, at: int, span: Span, demand: bool) -> s.Expression:
        """Return an element of a list attribute: its value if the structure depends on it, else a read of it."""
        attribute = self.attributes[name]
        if attribute.words:
            return s.Named(span, attribute.words[at])
        if isinstance(attribute.value, tuple) and (demand or self._decided(name)):
            self.demanded.add(name)
            return literal(attribute.value[at], span)
        self.left.add(name)
        return s.Subscripted(span, s.Ident(span, name), (integer(at, span),), None)

    def is_open(self, name: str) -> bool:
        """Return True for a list attribute that the form does not include; it is then read at run time."""
        attribute = self.attributes.get(name)
        if attribute is None or attribute.length is None or attribute.words or name in self.packs:
            return False
        if not self._decided(name):
            self.left.add(name)
            return True
        return False

    def _decided(self, name: str) -> bool:
        """Return True if an attribute's value is known to be part of the form."""
        return name in self.known or name in self.demanded

    def scalar(self, tree: s.Named, demand: bool) -> s.Expression:
        """Return a scalar attribute: its value if the structure depends on it, else its name."""
        attribute = self.attributes[tree.name]
        if not isinstance(attribute.value, tuple) and (demand or self._decided(tree.name)):
            self.demanded.add(tree.name)
            return literal(attribute.value, tree.span)
        self.left.add(tree.name)
        return tree


def literal(value: int | float | bool | str, span: Span) -> s.Expression:
    """Return a value of an attribute as a tree; a word becomes a name."""
    if isinstance(value, str):
        return s.Named(span, value)
    if isinstance(value, bool):
        return boolean(value, span)
    return integer(value, span) if isinstance(value, int) else real(value, span)
