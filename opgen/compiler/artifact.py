"""Artifacts: a request at every stage on its way to object code.

    spec -> model -> loop -> schedule -> scheduled -> legal -> llvm -> asm -> code
                         \\-> why                          \\-> cuda -> ptx

Each stage is made when it is first requested, by the same steps for every client: calls, programs of graphs, libraries,
the tuner, listings and `opgen inspect`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias, TypeVar, get_args

from opgen.cache import pickled
from opgen.codegen import cuda
from opgen.codegen.cuda import CudaProgram
from opgen.codegen.llvm.target import Target
from opgen.compiler import keys, transfer, tuned
from opgen.compiler.choose import Choice, choose
from opgen.compiler.cuda import ptx
from opgen.compiler.object import ObjectCode
from opgen.compiler.parts import Part
from opgen.compiler.request import Compilation, Cuda, OpVariant, Pairs
from opgen.compiler.sharing import Work, is_for_one, work_of
from opgen.diagnostics import InternalError, Span, UserError
from opgen.locks import cached_property
from opgen.loop.analysis.bounds import kept_proofs
from opgen.loop.nodes import Buffer, Kernel, Parameter
from opgen.loop.print import print_kernel
from opgen.passes.apart import taken_apart
from opgen.passes.in_place import in_place
from opgen.passes.legalize import legalize
from opgen.schedule.default import default_schedule, scheduled
from opgen.schedule.estimate import seconds
from opgen.schedule.fallback import unless_broken
from opgen.schedule.schedule import Schedule, apply
from opgen.schedule.why import why
from opgen.spec.model.model import Algorithm
from opgen.spec.unparse import write_algorithm, write_op

T = TypeVar("T")

Stage: TypeAlias = Literal[
    "spec", "model", "loop", "schedule", "why", "scheduled", "legal", "llvm", "asm", "cuda", "ptx"
]
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True)
class Scheduled:
    """A schedule, the scheduled kernel, and its parts for a CPU.

    `first` runs once, on constants; the `main` part takes its results after its other inputs.  `in_place` are the
    requested pairs whose operand and result share a buffer.
    """

    schedule: Schedule
    kernel: Kernel
    main: Part
    first: Part | None = None
    in_place: Pairs = ()


@dataclass(frozen=True)
class Artifact:
    """A request's stages, each computed on first use and kept."""

    request: Compilation

    def text(self, stage: Stage) -> str:
        """Return a stage as text that ends with a newline."""
        text = _TEXTS[stage](self)
        return text if text.endswith("\n") else text + "\n"

    # The kernel ------------------------------------------------------------------------------------------------------

    @cached_property
    def choice(self) -> Choice:
        """The kernel by the definition or by an algorithm.

        Raises ArgumentValueError for numbers with which the kernel's integers would overflow.
        """
        with kept_proofs():
            return choose(self.request)

    @property
    def algorithm(self) -> str | None:
        """The name of the algorithm that computes the op; None: its definition does."""
        return self.choice.name

    @property
    def reason(self) -> str:
        """The reason for computing by this algorithm, or by the definition."""
        return self.choice.reason

    @property
    def loop(self) -> Kernel:
        """The kernel to be scheduled, with the numbers of the request in place."""
        return self.choice.kernel

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that the kernel still takes as arguments."""
        return self.loop.parameters

    @property
    def arguments(self) -> tuple[int | float | bool, ...]:
        """The values of these parameters in the request's call."""
        if self.request.call is None:
            raise InternalError("a request without a call has no arguments")
        values = self._source.lowered(self.choice.algorithm).values(self.request.call)
        return tuple(values[p.name] for p in self.parameters)

    # For a CPU -------------------------------------------------------------------------------------------------------

    @cached_property
    def key(self) -> str:
        """The key of the object code in the kernel cache."""
        return keys.kernel_key(self.loop, self.request, self._target)

    def kept(self) -> ObjectCode | None:
        """Return the object code from the cache; None if it has none."""
        return pickled.take(self.key, ObjectCode)

    def build(self) -> ObjectCode:
        """Build the object code, and keep it."""
        made = self._object(self._coded.main)
        pickled.put(self.key, made)
        return made

    @cached_property
    def object_code(self) -> ObjectCode:
        """The object code, and the facts needed to load and call it: from the cache, or built."""
        return self.kept() or self.build()

    @cached_property
    def scheduled_parts(self) -> Scheduled:
        """The schedule, the scheduled kernel and its parts, lowered to LLVM IR."""
        return self._scheduled(_texts)

    @property
    def schedule(self) -> Schedule:
        """The steps that turn the loop IR into a fast loop nest: as provided, as tuned, or by the scheduler."""
        return self._on_device[0] if isinstance(self.request.target, Cuda) else self.scheduled_parts.schedule

    @property
    def scheduled(self) -> Kernel:
        """Loop IR after the schedule."""
        return self._on_device[1] if isinstance(self.request.target, Cuda) else self.scheduled_parts.kernel

    @cached_property
    def legal(self) -> Kernel:
        """Loop IR as the emitter takes it: vectors formed, loops unrolled."""
        if isinstance(self.request.target, Cuda):
            return legalize(self.scheduled, check=self._is_given)
        return self.scheduled_parts.main.legal

    @property
    def llvm(self) -> str:
        """LLVM IR, before LLVM's own passes."""
        return self.scheduled_parts.main.llvm

    @property
    def asm(self) -> str:
        """Assembly."""
        return self.scheduled_parts.main.asm

    @cached_property
    def code(self) -> bytes:
        """The object file, or for a CUDA device the image that its driver loads."""
        if isinstance(self.request.target, Cuda):
            return ptx.binary(self.cuda, self.request.target.capability)
        return self._coded.main.code

    @property
    def code_hash(self) -> str:
        """The sha256 of the object file."""
        return hashlib.sha256(self.code).hexdigest()

    @property
    def first(self) -> Part | None:
        """The part that runs once, on constants alone; None if there is none."""
        return self.scheduled_parts.first

    @property
    def made(self) -> tuple[Buffer, ...]:
        """The buffers that `first` makes, which are the last inputs of the part that runs each time."""
        return () if self.first is None else self.first.legal.outputs

    @property
    def in_place(self) -> Pairs:
        """The request's pairs whose operand and result share a buffer."""
        return self.scheduled_parts.in_place

    # Work ------------------------------------------------------------------------------------------------------------

    @cached_property
    def seconds(self) -> float | None:
        """The estimated time of the kernel on one core; None where sizes are open, or no estimate can be made."""
        if not self.loop.is_bound:
            return None
        return unless_broken("the estimate of a kernel's time", lambda: seconds(self.loop, self._target.machine))

    @cached_property
    def is_short(self) -> bool:
        """True if the thread that calls the kernel is to do all its work, parallel loops or not."""
        short = unless_broken("the estimate of a kernel's time", lambda: is_for_one(self.loop, self._target.machine))
        return bool(short)

    @property
    def alone(self) -> bool:
        """True if the thread that calls the kernel does all its work: the kernel is short, or has no parallel loop."""
        return self.is_short or not self.scheduled_parts.main.parallel

    @cached_property
    def work(self) -> Work:
        """Operations and bytes, as expressions over the parameters of the kernel for all sizes."""
        source = self.request.source
        kernel = source.lowered().lowered.kernel if isinstance(source, OpVariant) else source
        return work_of(kernel, self._target.machine)

    # For people ------------------------------------------------------------------------------------------------------

    @property
    def why(self) -> str:
        """The plans that the scheduler chose from, with their estimated costs; a note if another schedule is used."""
        if self._is_given:
            raise UserError("--stage why tells how the scheduler chooses, and this schedule was given")
        machine = self._target.machine
        used = default_schedule(self.loop, "cpu", machine) == self.schedule
        return ("" if used else "a tuned schedule is used in place of these (opgen tune --list)\n\n") + why(
            self.loop, machine
        )

    @property
    def spec(self) -> str:
        """The op, or the requested algorithm, as its file has it; as it would be written if no file has it."""
        span = (self._asked or self._source.op).span
        return self.model if span is None else source_lines(span)

    @property
    def model(self) -> str:
        """The resolved model as a spec: fragments in place, gradients derived, index ranges found."""
        if self._asked is not None:
            return write_algorithm(self._source.op, self._asked)
        return write_op(self._source.module, self._source.op)

    @cached_property
    def program(self) -> CudaProgram:
        """CUDA C and its launches."""
        return cuda.emit(self.legal)

    @property
    def cuda(self) -> str:
        """CUDA C: that of the same request for CUDA devices, if it is for a CPU."""
        return self._for_cuda.program.source

    @property
    def ptx(self) -> str:
        """PTX."""
        return ptx.ptx(self.cuda)

    @property
    def in_program(self) -> tuple[str, ...]:
        """Sentences on the kernel in its program: open sizes, results in place, and work that runs once."""
        tensors, outputs = self.request.tensors, self.loop.outputs
        told = [f"{name} is open{f', {low} or more' if low else ''}" for name, low in self.request.opening.free]
        told += [f"{outputs[result].name} is written over {tensors[operand]}" for operand, result in self.in_place]
        if self.first is not None:
            names = ", ".join(x.name for x in self.first.legal.inputs)
            told.append(f"work on {names} alone runs once, as a kernel of its own")
        return tuple(told)

    # How -------------------------------------------------------------------------------------------------------------

    @property
    def _source(self) -> OpVariant:
        if not isinstance(self.request.source, OpVariant):
            raise InternalError("a kernel that is given as loop IR has no spec")
        return self.request.source

    @property
    def _asked(self) -> Algorithm | None:
        return None if self.request.algorithm is None else self.choice.algorithm

    @property
    def _target(self) -> Target:
        if isinstance(self.request.target, Cuda):
            raise InternalError("a CUDA device has no LLVM target")
        return self.request.target

    @property
    def _is_given(self) -> bool:
        return isinstance(self.request.schedule, Schedule)

    @cached_property
    def _for_cuda(self) -> Artifact:
        if isinstance(self.request.target, Cuda):
            return self
        kept = self.request.schedule if self.request.schedule == "finished" else "automatic"
        return Artifact(replace(self.request, target=Cuda(), schedule=kept))

    @cached_property
    def _on_device(self) -> tuple[Schedule, Kernel]:
        given = self.request.schedule
        if given == "finished":
            return Schedule(), self.loop
        return (given, apply(self.loop, given)) if isinstance(given, Schedule) else scheduled(self.loop, "cuda")

    @cached_property
    def _coded(self) -> Scheduled:
        """The parts with their object code, by the first schedule for which code generation succeeds."""
        found: Scheduled | None = self.__dict__.get("scheduled_parts")
        if found is not None and (unless_broken(f"the kernel {self.loop.name}", partial(_codes, found)) is not None):
            return found
        found = self.__dict__["scheduled_parts"] = self._scheduled(_codes)
        return found

    def _object(self, part: Part) -> ObjectCode:
        """Return the object code of a part; the main part's includes that of `first`."""
        names = [x.name for x in self.loop.inputs]
        reads = tuple(names.index(x.name) for x in part.legal.inputs if x.name in names)
        found = ObjectCode(part.code, part.symbol, part.parallel, reads, part.workspace)
        if part is self.first:
            return found
        tensors = self.request.tensors
        held = tuple((names.index(tensors[operand]), result) for operand, result in self.in_place)
        first = None if self.first is None else self._object(self.first)
        return replace(found, in_place=held, first=first, made=self.made)

    def _scheduled(self, check: Callable[[Scheduled], object]) -> Scheduled:
        """Return the kernel by the first candidate schedule that passes a check."""
        kernel, target, how = self.loop, self._target, self.request.schedule

        def made(schedule: Schedule, after: Kernel) -> Scheduled:
            found = self._parts(schedule, after)
            check(found)
            return found

        with kept_proofs():
            if how == "finished":
                return Scheduled(Schedule(), kernel, Part(kernel, target, self.request.memory))
            if isinstance(how, Schedule):
                return made(how, apply(kernel, how))
            if how == "automatic":
                return tuned.by_default(kernel, target, made)
            like = dict(self.request.opening.like)
            return transfer.built(kernel, like, target, made) if like else tuned.build(kernel, target, made)

    def _parts(self, schedule: Schedule, after: Kernel) -> Scheduled:
        """Return the parts of a scheduled kernel: results in place where legal, and constant work hoisted."""
        request = self.request
        tensors = request.tensors
        read = {x.name for x in self.loop.inputs}
        pairs = [pair for pair in request.in_place if tensors[pair[0]] in read]
        wanted = [(tensors[operand], self.loop.outputs[result].name) for operand, result in pairs]
        over = in_place(after, wanted)
        held = tuple(pairs[wanted.index(pair)] for pair in over.pairs)
        legal = legalize(over.kernel, check=self._is_given)
        apart = taken_apart(legal, [tensors[k] for k in request.constants])
        main, first = (legal, None) if apart is None else (apart.then, apart.first)
        if request.memory == "caller":
            main = replace(main, name=keys.symbol(self.key))
            first = None if first is None else replace(first, name=keys.symbol_of_first(first))
        part = None if first is None else Part(first, self._target, request.memory)
        return Scheduled(schedule, after, Part(main, self._target, request.memory), part, held)


def _texts(found: Scheduled) -> tuple[str, ...]:
    return tuple(part.llvm for part in (found.main, found.first) if part is not None)


def _codes(found: Scheduled) -> tuple[bytes, ...]:
    return tuple(part.code for part in (found.main, found.first) if part is not None)


_TEXTS: Mapping[Stage, Callable[[Artifact], str]] = {
    "spec": lambda a: a.spec,
    "model": lambda a: a.model,
    "loop": lambda a: print_kernel(a.loop),
    "schedule": lambda a: str(a.schedule),
    "why": lambda a: a.why,
    "scheduled": lambda a: print_kernel(a.scheduled),
    "legal": lambda a: print_kernel(a.legal),
    "llvm": lambda a: a.llvm,
    "asm": lambda a: a.asm,
    "cuda": lambda a: a.cuda,
    "ptx": lambda a: a.ptx,
}


def source_lines(span: Span) -> str:
    """Return the source lines of a span."""
    return "\n".join(span.source.line(n) for n in range(span.line, span.end_line + 1))
