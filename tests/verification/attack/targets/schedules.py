"""Mutated schedules, as files of them or tuned ones may hold."""

from __future__ import annotations

import random
import re
from itertools import count

import numpy as np

from opgen.compiler import toolchain
from opgen.diagnostics import UserError
from opgen.grad.load import load
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.loop.walk import buffers_in, loops_in
from opgen.lower import Variant, lower
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.kernel import compile_kernel
from opgen.runtime.kernels.run import buffer_shape
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import AnyArray, empty_aligned, poison
from opgen.schedule.default import default_schedule
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule.random_steps import Drawn
from tests.verification.attack.finding import FoundError, Target, described, is_typed
from tests.verification.attack.targets.ops import SPEC

NUMBERS = (1, 2, 3, 4, 7, 8, 16, 64, 1000, 65536, 999999999)


class Schedules(Target):
    """Random steps on kernels: refused with a reason, or built and right."""

    name = "schedules"
    seconds = 30.0
    memory = 1 << 30

    def prepare(self) -> None:
        (self.folder / "attacked.op").write_text(SPEC)
        spec = load(self.folder / "attacked.op")
        self.kernels = []
        for name, words in (("Product", {}), ("Windows", {"order": "NLC"}), ("Shares", {})):
            op = spec.op(name)
            kernel = lower(spec, op, Variant({"T": "float32"}, dict(words))).kernel
            sizes = {p.name: 12 + 4 * k for k, p in enumerate(kernel.parameters) if not p.dtype.is_float}
            sizes |= {n: 1 for n in sizes if n.startswith(("factor", "strides", "reach"))}
            self.kernels.append(simplify(bind(kernel, sizes)))

    def attempt(self, choose: random.Random) -> None:
        kernel = choose.choice(self.kernels)
        lines = str(default_schedule(kernel, "cpu", toolchain.host().machine)).splitlines()
        lines = lines[: choose.randrange(len(lines) + 1)] if choose.random() < 0.7 else []
        while choose.random() < 0.7:
            if lines and choose.random() < 0.3:
                at = choose.randrange(len(lines))
                lines[at] = re.sub(r"\d+", lambda m: str(choose.choice(NUMBERS)), lines[at], count=1)
                continue
            before, after = kernel, _applied(kernel, lines)
            lines.append(_step(after or before, choose, len(lines)))
        text = "\n".join(lines)
        try:
            changed = apply(kernel, parse_schedule(text))
            found = _run(kernel, legalize(changed), choose)
        except Exception as error:
            if is_typed(error) and isinstance(error, UserError):
                return
            raise FoundError(described(error), text) from error
        right = _run(kernel, legalize(kernel), choose)
        if not all(np.array_equal(a, b) for a, b in zip(found, right, strict=True)):
            raise FoundError(f"{kernel.name}: another result", text)


def _applied(kernel: Kernel, lines: list[str]) -> Kernel | None:
    try:
        return apply(kernel, parse_schedule("\n".join(lines)), check=False)
    except UserError:
        return None


def _step(kernel: Kernel, choose: random.Random, number: int) -> str:
    """A random step of a CPU with names that the kernel has."""
    loops = [s.var for s in loops_in(kernel.body)] or ["none"]
    buffers = [b.name for b in (*kernel.buffers, *buffers_in(kernel.body))]
    made = (f"made_{number}_{n}" for n in count())
    drawn = Drawn(choose, loops, buffers, ["n"], lambda: next(made), lambda: choose.choice(NUMBERS))
    return next(str(step) for step in iter(drawn.step, None) if step.target != "cuda")


def _run(interface: Kernel, kernel: Kernel, choose: random.Random) -> list[AnyArray]:
    """The results of a kernel on whole numbers that depend on its interface alone: sums of them are exact."""
    compiled = compile_kernel(kernel, toolchain.host())
    source = np.random.default_rng(1)
    inputs = [empty_aligned(buffer_shape(b, {}), b.dtype) for b in interface.inputs]
    outputs = [empty_aligned(buffer_shape(b, {}), b.dtype) for b in interface.outputs]
    for array in inputs:
        array[...] = source.choice([-2.0, -1.0, 1.0, 2.0, 4.0], array.shape)
    for array in outputs:
        poison(array)
    compiled.bind([0.5 for p in kernel.parameters if p.dtype.is_float])([*(address(a) for a in (*inputs, *outputs))])
    return outputs
