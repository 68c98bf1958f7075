"""Kernels of calls, for people: every stage, the inner loop, and the limits of the time.

print(opgen.inspect(nn_ops.op, x, w, [1, 1], "SAME"))
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opgen.compiler import toolchain
from opgen.compiler.algorithms import mode
from opgen.compiler.artifact import Artifact, Stage
from opgen.compiler.inner_loop import InnerLoop
from opgen.compiler.make import artifact
from opgen.compiler.parts import Part
from opgen.compiler.request import Compilation, OpVariant
from opgen.diagnostics import UserError
from opgen.diagnostics.describe import describe
from opgen.dtypes import lookup
from opgen.locks import cached_property
from opgen.lower import variant_of
from opgen.runtime.call.plan import Prepared, PreparedSeveral
from opgen.runtime.call.recording import stand_in
from opgen.runtime.call.specialize import Library, environment_of
from opgen.runtime.measuring.costs import Cost, cost_of
from opgen.runtime.memory.buffers import numpy_dtype

WIDTH = 120
"""Columns of a summary."""


@dataclass(frozen=True, repr=False)
class Inspection:
    """The kernel that a call takes; `call` names the op and its tensors.

    `print` shows a summary; each stage is text, made on first use.
    """

    call: str
    artifact: Artifact

    @property
    def algorithm(self) -> str | None:
        """The name of the algorithm; None: the op's definition."""
        return self.artifact.algorithm

    @property
    def reason(self) -> str:
        """The reason for this algorithm."""
        return self.artifact.reason

    @cached_property
    def cost(self) -> Cost:
        """The estimated and the measured time, and the machine's limits.  Measuring takes under a second."""
        return cost_of(self.artifact)

    @property
    def inner_loop(self) -> InnerLoop | None:
        """The inner loop in the assembly that runs most vector arithmetic; None without loops."""
        return self.artifact.scheduled_parts.main.inner_loop

    @property
    def spec(self) -> str:
        """The op as its file has it."""
        return self._text("spec")

    @property
    def model(self) -> str:
        """The op resolved, as a spec."""
        return self._text("model")

    @property
    def loop(self) -> str:
        """The loop IR before the schedule."""
        return self._text("loop")

    @property
    def schedule(self) -> str:
        """The steps of the schedule."""
        return self._text("schedule")

    @property
    def why(self) -> str:
        """The plans from which the schedule was chosen, with their estimated costs."""
        return self._text("why")

    @property
    def scheduled(self) -> str:
        """The loop IR after the schedule."""
        return self._text("scheduled")

    @property
    def llvm(self) -> str:
        """The LLVM IR, before LLVM's own passes."""
        return self._text("llvm")

    @property
    def asm(self) -> str:
        """The assembly."""
        return self._text("asm")

    @property
    def cuda(self) -> str:
        """The CUDA C of the same call on a device."""
        return self._text("cuda")

    @property
    def first(self) -> Part | None:
        """The part of a node's kernel that runs once, on constants alone, with its `llvm` and `asm`."""
        return self.artifact.first

    def _text(self, stage: Stage) -> str:
        return self.artifact.text(stage)

    def __repr__(self) -> str:
        return f"<the kernel of {self.call}: print shows a summary>"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        """Return a summary that unfolds, for notebooks."""
        parts = {"schedule": self.schedule, "inner loop": str(self.inner_loop or ""), "loop IR": self.scheduled}
        folded = (
            f"<details><summary>{title}</summary><pre>{html.escape(text)}</pre></details>"
            for title, text in parts.items()
        )
        return f"<pre>{html.escape(str(self))}</pre>{''.join(folded)}"

    def _lines(self) -> Iterator[str]:
        yield self.call
        yield f"algorithm: {self.algorithm or 'the definition'}; {self.reason}"
        steps = self.schedule.split("\n")
        yield textwrap.shorten(f"schedule: {len(steps) - 1} steps: {'; '.join(steps)}", WIDTH, placeholder=" ...")
        yield from (f"in the program: {line}" for line in self.artifact.in_program)
        found = self.inner_loop
        if found is not None:
            used = f"{found.registers} vector registers, {found.spills} accesses of the stack"
            yield f"inner loop{found.name and f' {found.name}'}: {len(found.lines)} lines, {used}"
        yield from (
            str(self.cost).splitlines()
            if self.artifact.loop.is_bound
            else ("cost: not known, since the kernel is for all sizes",)
        )


def inspect(function: Callable[..., Any], *arguments: Any, **named: Any) -> Inspection:
    """Return the kernel that a call of a generated function takes, without running the call.

    The arguments are those of the call, and are checked as in the call.  Only types and shapes of tensors count, so
    `("float32", (1, 56, 56, 64))` may replace one.  A prepared call is inspected without arguments.

    Raises UserError for anything but a generated function, and ArgumentError as the call does.
    """
    if isinstance(function, Prepared | PreparedSeveral):
        return _of_prepared(function)
    prepare = _preparing(function)
    if prepare is None:
        hint = ""
        if hasattr(function, "inspect") or hasattr(function, "model"):
            hint = "; `inspect` of a compiled model (of a compiled function: of its `model(...)`) shows its nodes"
        raise UserError(f"opgen.inspect: expected a function of a generated module, given {describe(function)}{hint}")
    named.pop("out", None)
    given = {name: _tensor(value) for name, value in named.items()}
    return _of_prepared(prepare(*map(_tensor, arguments), **given))


def _preparing(function: Callable[..., Any]) -> Callable[..., Prepared | PreparedSeveral] | None:
    """Return the function that prepares calls of a generated one; None if it is not generated."""
    names, name = getattr(function, "__globals__", {}), getattr(function, "__name__", "")
    library, prepare = names.get("_library"), names.get("prepare")
    if not isinstance(library, Library):
        return None
    plain = next((op.function_name for op in library.module().ops if op.name == name), name)
    found: Callable[..., Prepared | PreparedSeveral] | None = getattr(prepare, plain, getattr(prepare, name, None))
    return found


def _of_prepared(handle: Prepared | PreparedSeveral) -> Inspection:
    """Return the kernel of a prepared call."""
    operator, call = handle.operator, handle.call
    module = operator.module() if operator.module is not None else None
    if module is None:
        raise UserError(f"opgen.inspect: {operator.name} is of no generated module")
    op = module.op(operator.name)
    source = OpVariant(module, op, variant_of(op, call.types, call.words))
    numbers = environment_of(module, op, call) if handle.specialized else None
    return Inspection(repr(handle)[1:-1], artifact(Compilation(source, toolchain.host(), numbers, algorithms=mode())))


def _tensor(value: Any) -> Any:
    """Return the argument of a call, an array without memory for `(type, shape)`."""
    if not isinstance(value, tuple) or len(value) != 2:
        return value
    name, shape = value
    dtype = lookup(name) if isinstance(name, str) and isinstance(shape, tuple | list) else None
    if dtype is None:
        return value
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise UserError(f"opgen.inspect: expected sizes that are integers >= 0, given the shape {describe(shape)}")
    return stand_in(np.dtype(numpy_dtype(dtype)), tuple(shape))
