"""The kernels of programs: from a call of an op to object code, once for equal calls, kept in the cache.

A kernel is made for the sizes of a call, for all sizes of its variant, or for a set of calls between these
(`opgen.compiler.symbolic`).  It is the result of any request for it (`opgen.compiler.make`), with a workspace that the
program provides.  The cache entry has everything that a program needs to know, so that a cached kernel is loaded
without lowering or scheduling anything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from opgen.cache import pickled
from opgen.codegen.llvm.room import RoomNeeded
from opgen.compiler import keys, toolchain
from opgen.compiler.algorithms import Mode, mode
from opgen.compiler.artifact import Artifact
from opgen.compiler.limits import CheckedKernel
from opgen.compiler.make import artifact
from opgen.compiler.object import ObjectCode
from opgen.compiler.request import Compilation, OpVariant
from opgen.compiler.sharing import Work
from opgen.compiler.symbolic import CLOSED, Opening
from opgen.graph.ir.bound import Bound, Kind
from opgen.graph.ir.nodes import Op
from opgen.graph.plan.in_place import Pairs
from opgen.locks import BUILD
from opgen.loop.analysis.bounds import kept_proofs
from opgen.loop.nodes import Parameter
from opgen.lower import Variant
from opgen.runtime.kernels.loaded import LoadedKernel, Origin, loaded_code, remembered
from opgen.runtime.kernels.run import evaluate


@dataclass(frozen=True)
class KernelCode:
    """A compiled kernel: the key of its object code, and the facts that a caller needs.

    `reads` are the positions, among the op's tensors, of those that it takes; `parameters` are its parameters.  `room`
    is None if it allocates with the C library.  `alone`: the calling thread does all its work; `work` decides this for
    given parameters.  `first` computes tensors of these types and shapes (`made`), once, from constants alone; the
    kernel takes them after the tensors that it reads.  `in_place` pairs the positions of operands with those of the
    results written over them; the kernel does not take these operands.  An op other than that of its `origin` may have
    an equal kernel.
    """

    key: str
    symbol: str
    reads: tuple[int, ...]
    parameters: tuple[Parameter, ...]
    room: RoomNeeded | None
    alone: bool
    work: Work | None
    first: KernelCode | None = None
    made: tuple[Kind, ...] = ()
    in_place: Pairs = ()
    origin: Origin = field(default=Origin(), compare=False)


@dataclass(frozen=True)
class Wanted:
    """A kernel for a call, and for all other calls that differ only as the opening allows (None: in anything).

    One of the permitted `algorithms` computes it.  The tensors at some positions are `constants`, and some may be
    `in_place` of results.  `key` is equal for calls that share a kernel.
    """

    call: Bound
    opening: Opening | None
    algorithms: Mode
    constants: tuple[int, ...] = ()
    in_place: Pairs = ()
    key: str = ""

    @property
    def request(self) -> Compilation:
        """Return the request for the kernel on this machine."""
        every = self.opening is None
        return Compilation(
            variant_of(self.call.op, self.call.variant),
            toolchain.host(),
            None if every else self.call.environment,
            self.opening or CLOSED,
            self.algorithms,
            constants=() if every else self.constants,
            in_place=() if every else self.in_place,
            memory="caller",
        )


Built: TypeAlias = "tuple[KernelCode, tuple[bytes, ...]]"
"""A kernel with its object code, and then that of its `first`."""


@lru_cache(maxsize=256)
def variant_of(op: Op, variant: Variant) -> OpVariant:
    """Return an op for certain types and words, the same object for equal ones."""
    return OpVariant(op.module, op.spec, variant)


def lowered(op: Op, variant: Variant) -> CheckedKernel:
    """Return the generic kernel of a variant of an op."""
    return variant_of(op, variant).lowered()


def integers_of(call: Bound) -> dict[str, int]:
    """Return the arguments of a call to the general kernel for all parameters but floats."""
    return variant_of(call.op, call.variant).integers(call.environment)


def wanted(
    call: Bound, opening: Opening | None = CLOSED, constants: tuple[int, ...] = (), in_place: Pairs = ()
) -> Wanted:
    """Return the kernel for a call, with the algorithms that are permitted now."""
    found = Wanted(call, opening, mode(), constants, in_place)
    return replace(found, key=keys.request_key(found.request, toolchain.host(), "graph/kernels"))


# Making ----------------------------------------------------------------------------------------------------------


_known: OrderedDict[str, KernelCode] = OrderedDict()
"""Kernels by the key of their request, the newest last: each is made once, even without a cache."""

KNOWN = 1024
"""Maximum number of kernels in `_known`."""


def kept(want: Wanted) -> KernelCode | None:
    """Return the kernel if any process made it before and its code is still there; else None."""
    found = _known.get(want.key) or pickled.take(want.key, KernelCode)
    if found is None or loaded(found) is None:
        return None
    return found if found.first is None or loaded(found.first) is not None else None


def make(want: Wanted) -> Built:
    """Return the kernel and its object code: built, unless an equal one of another op was."""
    with BUILD, kept_proofs():
        made = artifact(want.request)
        found = made.object_code
        code = _code_of(want, made, found)
    pickled.put(want.key, code)
    if found.first is None or code.first is None:
        return code, (found.code,)
    pickled.put(code.first.key, found.first)
    return code, (found.code, found.first.code)


def _code_of(want: Wanted, made: Artifact, found: ObjectCode) -> KernelCode:
    """Return all that a program needs to know of a kernel."""
    parameters, spec = made.parameters, want.call.op.spec
    tensors = [t.name for t in spec.tensors]
    places = [tensors.index(x.name) for x in made.loop.inputs]
    origin = Origin(spec.name, made.algorithm, all(p.dtype.is_float for p in parameters))
    work = None if made.loop.is_bound or not found.parallel else made.work
    code = _part(made.key, found, places, parameters, made.is_short, work, origin)
    over = tuple((places[operand], result) for operand, result in found.in_place)
    if found.first is None:
        return replace(code, in_place=over)
    key = keys.first_key(found.first.symbol, toolchain.host())
    first = _part(key, found.first, places, (), False, None, origin)
    kinds = tuple((x.dtype, tuple(evaluate(d, {}) for d in x.shape)) for x in found.made)
    return replace(code, first=first, made=kinds, in_place=over)


def _part(
    key: str,
    found: ObjectCode,
    places: Sequence[int],
    parameters: tuple[Parameter, ...],
    short: bool,
    work: Work | None,
    origin: Origin,
) -> KernelCode:
    reads = tuple(places[k] for k in found.reads)
    alone = short or not found.parallel
    return KernelCode(key, found.symbol, reads, parameters, found.workspace, alone, work, origin=origin)


# Loading ---------------------------------------------------------------------------------------------------------


def load_built(want: Wanted, built: Built) -> None:
    """Load a built kernel into this process."""
    code, contents = built
    with BUILD:
        _known[want.key] = code
        while len(_known) > KNOWN:
            _known.popitem(last=False)
    for part, content in zip((code, code.first), contents, strict=False):
        if part is not None:
            loaded(part, content)


def loaded(code: KernelCode, given: bytes | None = None) -> LoadedKernel | None:
    """Return a kernel in the process, from its object code or from the cache; None if the code is gone."""
    found = remembered(code.key)
    if found is not None:
        return found
    kept = None if given is not None else pickled.take(code.key, ObjectCode)
    content = given if kept is None else kept.code
    if content is None:
        return None
    return loaded_code(code.key, code.symbol, content, code.origin, built=given is not None)
