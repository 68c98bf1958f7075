"""Choices fixed before an op becomes a loop nest: its types, layouts, and the enumerations its mathematics tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opgen.diagnostics import InternalError
from opgen.dtypes import DType, lookup
from opgen.spec.model.model import Attr, OpSpec
from opgen.spec.model.visit import structural_attrs


@dataclass(frozen=True)
class Variant:
    """A scalar type for each type variable, and a value for each structural attribute (layouts, enumerations)."""

    types: Mapping[str, str]
    values: Mapping[str, str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((tuple(sorted(self.types.items())), tuple(sorted(self.values.items()))))

    @property
    def suffix(self) -> str:
        """Return the suffix of names: `float32_NHWC`."""
        return "_".join((*self.types.values(), *self.values.values()))

    def dtype(self, name: str) -> DType:
        """Return the scalar type of a type variable, or of the name of a scalar type."""
        dtype = lookup(self.types.get(name, name))
        if dtype is None:
            raise InternalError(f"no scalar type is bound to {name!r}")
        return dtype

    def permutation(self, op: OpSpec, layout: str | None, rank: int) -> tuple[int, ...]:
        """Return the logical dimension of each physical dimension of a tensor."""
        if layout is None:
            return tuple(range(rank))
        logical = op.attr(layout).values[0]
        return tuple(logical.index(letter) for letter in self.values[layout])


def variants(op: OpSpec) -> Iterator[Variant]:
    """Yield every variant of an op: all its types times all values of its structural attributes."""
    attrs = structural_attrs(op)
    for types in itertools.product(*(v.allowed for v in op.type_variables)):
        for values in itertools.product(*(a.values for a in attrs)):
            yield Variant(
                {v.name: t.name for v, t in zip(op.type_variables, types, strict=True)},
                {a.name: value for a, value in zip(attrs, values, strict=True)},
            )


def variant_of(op: OpSpec, types: Mapping[str, str], words: Mapping[str, str]) -> Variant:
    """Return the variant for these types; structural attributes not in `words` have the default or the first value."""
    return Variant(dict(types), {a.name: words.get(a.name) or _first_word(a) for a in structural_attrs(op)})


def _first_word(attr: Attr) -> str:
    return attr.default if isinstance(attr.default, str) else attr.values[0]
