"""What a call says of a form, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opgen.spec.call.environment import AttrStored
from opgen.spec.model.model import Function, OpSpec


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor that a call gives: its scalar type, its rank, and its values where they are known (row-major), which a
    static input needs.  `sizes` are those dimensions on which the form depends (`known_sizes`), None for the others.
    """

    dtype: str
    shape_rank: int
    value: tuple[int, ...] | tuple[float, ...] | float | None = None
    sizes: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Instance:
    """The plain op that a call makes of an op.

    `functions` are those of shapes that it calls, `types` binds its type variables.  `inputs` are, for each input of
    `op`, the position of the argument that it is; `attributes` has a value for each attribute that `op` still has,
    lists flat.
    """

    op: OpSpec
    functions: tuple[Function, ...]
    types: Mapping[str, str]
    attributes: Mapping[str, AttrStored]
    inputs: tuple[int, ...] = field(default=())
