"""An op on its way to machine code, stopped at any stage: what `opgen inspect` shows.

    spec -> model -> loop -> schedule -> scheduled -> legal -> llvm -> asm
                             \\-> why                       \\-> cuda -> ptx

Each stage is computed when it is first asked for.  These are the steps that a call takes
(`opgen.runtime.call.specialize`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from opgen.codegen import cuda
from opgen.codegen.llvm import compile as machine
from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.compiler import tuned
from opgen.compiler.cuda.ptx import ptx
from opgen.compiler.limits import CheckedKernel
from opgen.diagnostics import InternalError, Span, UserError
from opgen.locks import cached_property
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.loop.print import print_kernel
from opgen.lower import Lowered, Variant, lower, structural_attrs
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.schedule.default import default_schedule
from opgen.schedule.schedule import Schedule, apply
from opgen.schedule.why import why
from opgen.spec.call.environment import Environment
from opgen.spec.model.model import Algorithm, Attr, Module, OpSpec
from opgen.spec.unparse import write_algorithm, write_op

Stage: TypeAlias = Literal[
    "spec", "model", "loop", "schedule", "why", "scheduled", "legal", "llvm", "asm", "cuda", "ptx"
]
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True)
class Pipeline:
    """One variant of one op: generic in its sizes and attributes, or specialised for a call (its environment).

    `target` is a machine, or None for a CUDA device.  `given` replaces the default schedule.  An `algorithm` is
    compiled in place of the op's definition.
    """

    module: Module
    op: OpSpec
    variant: Variant
    call: Environment | None = None
    target: Target | None = None
    given: Schedule | None = None
    algorithm: Algorithm | None = None

    def text(self, stage: Stage) -> str:
        """What is there at a stage, as text that ends with a newline."""
        text = _TEXTS[stage](self)
        return text if text.endswith("\n") else text + "\n"

    @cached_property
    def lowered(self) -> Lowered:
        """The kernel of the variant, and what a caller passes for its parameters."""
        return lower(self.module, self.op, self.variant, self.algorithm)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel to be scheduled: its integers in place if there is a call."""
        kernel = self.lowered.kernel
        if self.call is None:
            return simplify(kernel)
        integers = {p: v for p, v in self.values(self.call).items() if not isinstance(v, float)}
        return simplify(bind(kernel, integers))

    def values(self, call: Environment) -> dict[str, int | float | bool]:
        """What a call passes for each parameter of the generic kernel.

        Raises ArgumentValueError for numbers with which integers of the kernel would not fit.
        """
        return CheckedKernel(self.op, self.lowered).values(call)

    @cached_property
    def schedule(self) -> Schedule:
        if self.given is not None:
            return self.given
        if self.target is None:
            return default_schedule(self.kernel, "cuda")
        return tuned.scheduled(self.kernel, self.target)[0]

    @property
    def why(self) -> str:
        """What the scheduler chose from, and at which price; that this is not what is used, if it is not."""
        if self.given is not None:
            raise UserError("--stage why tells how the scheduler chooses, and this schedule was given")
        machine = self._machine.machine
        used = default_schedule(self.kernel, "cpu", machine) == self.schedule
        return ("" if used else "a tuned schedule is used in place of these (opgen tune --list)\n\n") + why(
            self.kernel, machine
        )

    @cached_property
    def scheduled(self) -> Kernel:
        return apply(self.kernel, self.schedule)

    @cached_property
    def legal(self) -> Kernel:
        """What the emitter gets: vectors formed, loops unrolled."""
        return legalize(self.scheduled)

    @cached_property
    def ir(self) -> str:
        """LLVM IR, before LLVM's own passes."""
        return emit(self.legal, self._machine)

    @cached_property
    def assembly(self) -> str:
        return machine.assembly(self.ir, self._machine, self.legal.is_bound)

    @cached_property
    def cuda(self) -> str:
        return cuda.emit(self.legal).source

    @property
    def _machine(self) -> Target:
        if self.target is None:
            raise InternalError("a CUDA device has no LLVM target here")
        return self.target

    @property
    def spec(self) -> str:
        """The op, or its algorithm, as its file has it; as it would be written if it stands in none."""
        span = (self.algorithm or self.op).span
        return self.model if span is None else source_lines(span)

    @property
    def model(self) -> str:
        """The resolved model as a spec: fragments in place, gradients derived, index ranges found."""
        if self.algorithm is not None:
            return write_algorithm(self.op, self.algorithm)
        return write_op(self.module, self.op)


_TEXTS: Mapping[Stage, Callable[[Pipeline], str]] = {
    "spec": lambda p: p.spec,
    "model": lambda p: p.model,
    "loop": lambda p: print_kernel(p.kernel),
    "schedule": lambda p: str(p.schedule),
    "why": lambda p: p.why,
    "scheduled": lambda p: print_kernel(p.scheduled),
    "legal": lambda p: print_kernel(p.legal),
    "llvm": lambda p: p.ir,
    "asm": lambda p: p.assembly,
    "cuda": lambda p: p.cuda,
    "ptx": lambda p: ptx(p.cuda),
}


def variant_of(op: OpSpec, types: Mapping[str, str], words: Mapping[str, str]) -> Variant:
    """The variant for these types; of a structural attribute not in `words` the default, else its first value."""
    return Variant(dict(types), {a.name: words.get(a.name) or _first_word(a) for a in structural_attrs(op)})


def _first_word(attr: Attr) -> str:
    return attr.default if isinstance(attr.default, str) else attr.values[0]


def source_lines(span: Span) -> str:
    """The lines of a file where something stands."""
    return "\n".join(span.source.line(n) for n in range(span.line, span.end_line + 1))
