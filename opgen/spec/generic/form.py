"""The form that a call gives, and the plain op made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opgen.spec.call.environment import AttrStored
from opgen.spec.model.model import Function, OpSpec


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor argument of a call: its scalar type, its rank, and its values if they are known.

    The values are row-major; static inputs need them.  `sizes` holds the dimensions that the form depends on
    (`known_sizes`), None for the others.
    """

    dtype: str
    shape_rank: int
    value: tuple[int, ...] | tuple[float, ...] | float | None = None
    sizes: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Instance:
    """The plain op that a call makes of an op.

    `functions` are the shape functions that it calls; `types` binds its type variables.  `inputs` holds, for each input
    of `op`, the position of its argument.  `attributes` has a value for each remaining attribute of `op`, with flat
    lists.
    """

    op: OpSpec
    functions: tuple[Function, ...]
    types: Mapping[str, str]
    attributes: Mapping[str, AttrStored]
    inputs: tuple[int, ...] = field(default=())
