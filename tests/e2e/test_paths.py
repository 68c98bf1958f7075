"""Every op through the whole path on the CPU: the compiled kernel, generic and specialised, against the interpreter.

Inputs and outputs stand between protected pages, outputs start poisoned (`run_kernel(guarded=True)`).  What is
computed with `exp` and its like may differ in the last bits of each operation; all else is equal bit for bit.
"""

from __future__ import annotations

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
import pytest

from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Call as Function
from opgen.loop.verify import verify
from opgen.loop.walk import walk_exprs
from opgen.lower import variants
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.steps import Divide, Prefix, Relay, Rfactor
from tests.harness import random_arrays
from tests.support.paths import (
    MODULES,
    PLATFORM,
    a_call,
    same,
    sizes_in,
)

CASES = [
    pytest.param(module, op.name, i, id=f"{op.name}-{variant.suffix}")
    for module in MODULES
    for op in MODULES[module].ops
    for i, variant in enumerate(variants(op))
]


@pytest.mark.parametrize(("module", "name", "index"), CASES)
def test_compiled_equals_interpreted(module: str, name: str, index: int) -> None:
    spec = MODULES[module]
    op = spec.op(name)
    variant = list(variants(op))[index]
    kernel, parameters = a_call(spec, op, variant, index)
    shapes = {b.name: tuple(sizes_in(b.shape, parameters)) for b in kernel.inputs}
    arrays = random_arrays(shapes, variant.types["T"], index)
    expected = interpret(kernel, arrays, parameters)
    exact = not any(isinstance(e, Function) and e.function in PLATFORM for e in walk_exprs(kernel.body))
    integers = {n: v for n, v in parameters.items() if not isinstance(v, float)}
    for made in (kernel, simplify(bind(kernel, integers))):
        schedule, after = scheduled(made)
        legal = legalize(after)
        verify(legal, bounds=True)
        left = {p.name: parameters[p.name] for p in legal.parameters}
        found = run_kernel(legal, arrays, left, 2, guarded=True)
        summed_otherwise = any(isinstance(step, Rfactor | Divide | Prefix | Relay) for step in schedule.steps)
        ordered = interpret(after, arrays, left) if summed_otherwise else expected
        for output, want in expected.items():
            why = f"seed {index}, {name} {variant.suffix} {parameters}\n{schedule}"
            same(found[output], ordered[output], exact, why)
            same(found[output], want, exact and not summed_otherwise, why)


def test_the_comparison_can_fail() -> None:
    a = np.ones(3, np.float32)
    with pytest.raises(AssertionError):
        same(a, np.nextafter(a, np.float32(2)), True, "planted")
    with pytest.raises(AssertionError):
        same(a, a * np.float32(1 + 1e-5), False, "planted")
