"""Requests: everything that decides the object code of a kernel."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from opgen.codegen.llvm.target import Target
from opgen.compiler.algorithms import Mode
from opgen.compiler.limits import CheckedKernel
from opgen.compiler.symbolic import CLOSED, Opening
from opgen.locks import cached_property
from opgen.loop.nodes import Kernel
from opgen.lower import Variant, lower
from opgen.schedule.schedule import Schedule
from opgen.spec.call.environment import Environment
from opgen.spec.model.model import Algorithm, Module, OpSpec

Pairs: TypeAlias = "tuple[tuple[int, int], ...]"
"""Positions: of an operand among an op's tensors, of a result among its outputs."""

How: TypeAlias = Literal["tuned", "automatic", "finished"]
"""Source of a schedule: tuned ones before automatic ones, automatic ones only, or none.

A finished kernel needs none: the emitter takes it as it is.
"""


@dataclass(frozen=True)
class OpVariant:
    """An op for certain types and words.  Its definition and its algorithms are lowered once."""

    module: Module
    op: OpSpec
    variant: Variant
    _lowered: dict[str | None, CheckedKernel] = field(default_factory=dict, init=False, repr=False, compare=False)

    def lowered(self, algorithm: Algorithm | None = None) -> CheckedKernel:
        """Return the generic kernel of the op's definition, or of one of its algorithms."""
        name = None if algorithm is None else algorithm.name
        if name not in self._lowered:
            self._lowered[name] = CheckedKernel(self.op, lower(self.module, self.op, self.variant, algorithm))
        return self._lowered[name]

    def integers(self, call: Environment, algorithm: Algorithm | None = None) -> dict[str, int]:
        """Return the call's values for all parameters of the generic kernel but floats."""
        checked = self.lowered(algorithm)
        values = checked.values(call)
        return {p.name: int(values[p.name]) for p in checked.lowered.kernel.parameters if not p.dtype.is_float}

    @cached_property
    def identity(self) -> str:
        """Return a sha256 of the variant's contents, the same in every process."""
        words = sorted(self.variant.types.items()), sorted(self.variant.values.items())
        return hashlib.sha256(repr((self.op, self.module.functions, words)).encode()).hexdigest()


@dataclass(frozen=True)
class Cuda:
    """CUDA devices of at least a compute capability."""

    capability: tuple[int, int] = (8, 0)
    name: str = "cuda"


@dataclass(frozen=True)
class LibraryFunctions:
    """A library's own functions for temporary memory, `PREFIX_malloc` and `PREFIX_free`.

    The kernel is not visible outside the library.
    """

    prefix: str


Memory: TypeAlias = Literal["malloc", "caller"] | LibraryFunctions
"""Source of temporary memory: the C library, a workspace from the caller, or functions of the library."""


@dataclass(frozen=True)
class Compilation:
    """A request for a kernel.

    `source` is an op's variant, or a kernel in loop IR.  With a `call` its numbers are bound, but for those that an
    `opening` leaves open; without one the kernel is for all sizes.  Of `algorithms` the one with the shortest estimated
    time is taken, unless one is named (`algorithm`).  The op's tensors at the positions in `constants` never change.
    `in_place` pairs operands with results that may share their buffer.
    """

    source: OpVariant | Kernel
    target: Target | Cuda
    call: Environment | None = None
    opening: Opening = CLOSED
    algorithms: Mode = "default"
    algorithm: str | None = None
    schedule: Schedule | How = "tuned"
    constants: tuple[int, ...] = ()
    in_place: Pairs = ()
    memory: Memory = "malloc"

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the op's tensors, or of a provided kernel's inputs: positions in requests refer to them."""
        source = self.source
        return tuple(x.name for x in (source.op.tensors if isinstance(source, OpVariant) else source.inputs))
