"""The kernels of programs: from a call of an op to object code, once for equal calls, kept in the cache.

A kernel is made for the sizes of a call, for all sizes of its variant, or for calls between
(`opgen/compiler/symbolic.py`).  It differs from those that calls from Python run (`opgen.runtime.call.specialize`) only
in where its temporary results are: in memory that the program gives it.  What is kept says
all that a program needs to know, so that one that is in the cache is loaded without lowering or scheduling anything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from opgen.cache import entries as cache
from opgen.cache import pickled
from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.room import RoomNeeded, room_of
from opgen.compiler import toolchain, tuned
from opgen.compiler.algorithms import mode
from opgen.compiler.choose import choose
from opgen.compiler.keys import code_identity
from opgen.compiler.keys import machine_identity as identity_here
from opgen.compiler.limits import CheckedKernel
from opgen.compiler.request import Compilation, OpVariant
from opgen.compiler.sharing import Work, is_for_one, work_of
from opgen.compiler.symbolic import CLOSED, Opening, opened
from opgen.compiler.transfer import built
from opgen.graph.ir.bound import Bound, Kind
from opgen.graph.ir.nodes import Op
from opgen.graph.plan.in_place import Pairs
from opgen.locks import BUILD
from opgen.loop.analysis.bounds import kept_proofs
from opgen.loop.canonical import canonical
from opgen.loop.nodes import Kernel, Parameter
from opgen.loop.print import print_kernel
from opgen.loop.walk import loops_in
from opgen.lower import Variant, lower
from opgen.passes.apart import taken_apart
from opgen.passes.in_place import in_place
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.loaded import LoadedKernel, Origin, loaded_code, remembered
from opgen.runtime.kernels.run import evaluate
from opgen.schedule.fallback import unless_broken
from opgen.schedule.schedule import Schedule


@dataclass(frozen=True)
class KernelCode:
    """A kernel that was made: the key of its object code, and what is to be known to call it.

    `reads` are the positions, among the op's tensors, of those that it takes; `parameters` are those that it is given.
    `room` is None if it allocates by the C library.  `alone`: the thread that calls it does all its work; `work` tells
    whether that is so for given parameters.  After the tensors that it reads it takes what `first` makes, once, of
    constants alone, of these types and shapes (`made`).  `in_place` are the positions of tensors that it finds where it
    leaves results, with those of the results: these tensors it does not take.  Another op than that of its `origin` may
    have an equal kernel.
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
class _Object:
    """What is kept of a kernel whatever op it came from.

    `reads` are the positions of its inputs among those of the kernel before it was taken apart, and so are those that
    are `in_place`; `made` are the types and shapes of what `first` makes for it.  `symbol` is that of what runs first,
    told by what it does: kernels for other sizes may begin with the same.
    """

    room: RoomNeeded | None
    parallel: bool
    code: bytes
    reads: tuple[int, ...]
    first: _Object | None = None
    made: tuple[Kind, ...] = ()
    symbol: str = ""
    in_place: Pairs = ()


@dataclass(frozen=True)
class Wanted:
    """A kernel for a call, and for all others in which no more is unlike than is open (None: anything may be).

    The tensors at some positions are `constants`, and some may be `in_place` of results.  `key` is equal for calls that
    one kernel serves.
    """

    call: Bound
    opening: Opening | None
    key: str
    constants: tuple[int, ...] = ()
    in_place: Pairs = ()


Built: TypeAlias = "tuple[KernelCode, tuple[bytes, ...]]"
"""A kernel with its object code, and then that of what runs first."""


# What is wanted --------------------------------------------------------------------------------------------------


def wanted(
    call: Bound, opening: Opening | None = CLOSED, constants: tuple[int, ...] = (), in_place: Pairs = ()
) -> Wanted:
    """The kernel for a call, by everything that decides what it is."""
    spec = call.op.spec
    identity = {
        "op": repr(spec),
        "functions": repr(call.op.functions),
        "variant": repr((sorted(call.variant.types.items()), sorted(call.variant.values.items()))),
        "opening": repr(opening),
        "algorithms": mode(),
        "constants": "" if opening is None else repr(constants),
        "in place": "" if opening is None else repr(in_place),
        **_numbers(call, opening),
        **machine_identity(),
    }
    key = cache.key_of(identity)
    return Wanted(call, None, key) if opening is None else Wanted(call, opening, key, constants, in_place)


def _numbers(call: Bound, opening: Opening | None) -> dict[str, str]:
    """The numbers of a call that are in its kernel."""
    if opening is None:
        return {}
    environment = call.environment
    if opening == CLOSED:
        decides = bool(call.op.spec.algorithms)  # whether an algorithm is for a call may depend on any number of it
        floats = () if decides else tuple(a.name for a in call.op.spec.attrs if a.kind == "float")
        return {
            "attributes": repr(sorted((n, v) for n, v in environment.attrs.items() if n not in floats)),
            "shapes": repr(sorted(environment.shapes.items())),
            "symbols": repr(sorted(environment.symbols.items())),
        }
    values = integers_of(call)
    opening.require(values)
    return {"integers": repr(sorted((n, v) for n, v in values.items() if n not in opening.names))}


def integers_of(call: Bound) -> dict[str, int]:
    """What a call passes to the general kernel for all parameters but floats."""
    checked = lowered(call.op, call.variant)
    values = checked.values(call.environment)
    return {p.name: int(values[p.name]) for p in checked.lowered.kernel.parameters if not p.dtype.is_float}


def machine_identity() -> dict[str, str]:
    """What decides the code of every kernel, whatever it computes."""
    return {**identity_here(), "kernels": toolchain.fingerprint("graph/kernels")}


@lru_cache(maxsize=256)
def lowered(op: Op, variant: Variant) -> CheckedKernel:
    """The generic kernel of a variant of an op."""
    return CheckedKernel(op.spec, lower(op.module, op.spec, variant))


# Making ----------------------------------------------------------------------------------------------------------


_known: OrderedDict[str, KernelCode] = OrderedDict()
"""Kernels by what was wanted, those made last at the end: without a cache, too, each is made once."""

KNOWN = 1024
"""Number of kernels that are known."""


def kept(want: Wanted) -> KernelCode | None:
    """The kernel if it was made before, by any process, and its code is there."""
    found = _known.get(want.key) or pickled.take(want.key, KernelCode)
    if found is None or loaded(found) is None:
        return None
    return found if found.first is None or loaded(found.first) is not None else None


def make(want: Wanted) -> Built:
    """The kernel and its object code: built, unless an equal one of another op was."""
    call = want.call
    checked = lowered(call.op, call.variant)
    generic = checked.lowered.kernel
    tensors = [t.name for t in call.op.spec.tensors]
    constants = tuple(x.name for x in generic.inputs if tensors.index(x.name) in want.constants)
    with BUILD, kept_proofs():
        kernel, algorithm = _kernel(want, checked)
        target = toolchain.host()
        names = [x.name for x in kernel.inputs]
        pairs = tuple((names.index(tensors[k]), r) for k, r in want.in_place if tensors[k] in names)
        like = {} if want.opening is None else dict(want.opening.like)
        places = repr(([name in constants for name in names], pairs))
        text = print_kernel(canonical(kernel))
        identity = {**code_identity(target, text), "places": places, "like": repr([*like.values()])}
        key = cache.key_of({**identity, **machine_identity(), "room": "yes"})
        made = pickled.take(key, _Object)
        if made is None:
            made = _built(replace(kernel, name=_symbol(key)), constants, pairs, like)
            pickled.put(key, made)
        alone = bool(unless_broken("the estimate of a kernel's time", lambda: is_for_one(kernel, target.machine)))
        work = None if kernel.is_bound or not made.parallel else work_of(generic, target.machine)
    code = _code_of(key, made, kernel.parameters, alone, work)
    places_of = tuple(tensors.index(x.name) for x in generic.inputs)
    over = tuple((places_of[i], r) for i, r in made.in_place)
    origin = Origin(call.op.spec.name, algorithm, all(p.dtype.is_float for p in kernel.parameters))
    code = replace(code, reads=tuple(places_of[i] for i in code.reads), in_place=over, origin=origin)
    if made.first is None:
        pickled.put(want.key, code)
        return code, (made.code,)
    key = cache.key_of({"first": made.first.symbol, "reads": repr(made.first.reads), **machine_identity()})
    pickled.put(key, made.first)
    first = _code_of(key, made.first, (), False, None)
    first = replace(first, reads=tuple(places_of[i] for i in first.reads), symbol=made.first.symbol, origin=origin)
    code = replace(code, first=first, made=made.made)
    pickled.put(want.key, code)
    return code, (made.code, made.first.code)


def _symbol(key: str, part: str = "kernel") -> str:
    return f"{part}_{key[:16]}"


def _code_of(key: str, made: _Object, parameters: tuple[Parameter, ...], alone: bool, work: Work | None) -> KernelCode:
    return KernelCode(key, _symbol(key), made.reads, parameters, made.room, alone or not made.parallel, work)


def _kernel(want: Wanted, checked: CheckedKernel) -> tuple[Kernel, str | None]:
    """The kernel before its schedule, and the name of its algorithm (None: by the definition)."""
    if want.opening is None:
        return simplify(checked.lowered.kernel), None
    if want.opening == CLOSED:
        return _chosen(want)
    return opened(checked.lowered.kernel, integers_of(want.call), want.opening), None


def _chosen(want: Wanted) -> tuple[Kernel, str | None]:
    """The kernel for a call's sizes, by the definition or by a faster algorithm."""
    call = want.call
    source = OpVariant(call.op.module, call.op.spec, call.variant)
    found = choose(Compilation(source, toolchain.host(), call.environment, algorithms=mode()))
    return found.kernel, found.name


def _built(kernel: Kernel, constants: tuple[str, ...], pairs: Pairs, like: Mapping[str, int]) -> _Object:
    """A kernel scheduled and compiled: what it does with constants alone apart, results in place where they may be.

    What is open is typically `like`.
    """
    wanted = [(kernel.inputs[k].name, kernel.outputs[r].name) for k, r in pairs]

    def finished(_: Schedule, scheduled: Kernel) -> _Object:
        over = in_place(scheduled, wanted)
        held = tuple(pairs[wanted.index(pair)] for pair in over.pairs)
        legal = legalize(over.kernel, check=False)
        apart = taken_apart(legal, constants)
        if apart is None:
            return replace(_compiled(legal, kernel), in_place=held)
        symbol = _symbol(cache.key_of({"text": print_kernel(canonical(apart.first))}), "first")
        first = replace(_compiled(replace(apart.first, name=symbol), kernel), symbol=symbol)
        results = tuple((x.dtype, tuple(evaluate(d, {}) for d in x.shape)) for x in apart.first.outputs)
        return replace(_compiled(apart.then, kernel), first=first, made=results, in_place=held)

    target = toolchain.host()
    return built(kernel, like, target, finished) if like else tuned.build(kernel, target, finished)


def _compiled(legal: Kernel, whole: Kernel) -> _Object:
    """A kernel, or a part of one."""
    target = toolchain.host()
    room = room_of(legal)
    code = toolchain.object_code(emit(legal, target, room is not None), target, legal.is_bound)
    names = [x.name for x in whole.inputs]
    reads = tuple(names.index(x.name) for x in legal.inputs if x.name in names)
    return _Object(room, any(s.kind == "parallel" for s in loops_in(legal.body)), code, reads)


# Loading ---------------------------------------------------------------------------------------------------------


def load_built(want: Wanted, built: Built) -> None:
    """Have what was built in the process."""
    code, contents = built
    with BUILD:
        _known[want.key] = code
        while len(_known) > KNOWN:
            _known.popitem(last=False)
    for part, content in zip((code, code.first), contents, strict=False):
        if part is not None:
            loaded(part, content)


def loaded(code: KernelCode, given: bytes | None = None) -> LoadedKernel | None:
    """A kernel in the process, from its object code or from the cache; None if the code is not there any more."""
    found = remembered(code.key)
    if found is not None:
        return found
    kept = None if given is not None else pickled.take(code.key, _Object)
    content = given if kept is None else kept.code
    if content is None:
        return None
    return loaded_code(code.key, code.symbol, content, code.origin, built=given is not None)
