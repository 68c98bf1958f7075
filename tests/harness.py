"""Running an op from its spec alone: shapes solved, mathematics lowered, loop IR interpreted or compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.lower import Variant, lower, structural_attrs
from opgen.spec.call.shapes import Environment, evaluate, solve
from opgen.spec.model.model import Module, OpSpec

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Kernel, Arrays, Mapping[str, int | float]], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Call:
    """One call of an op: shapes of its tensors, values of its attributes, its type."""

    module: Module
    op: OpSpec
    shapes: Mapping[str, tuple[int, ...]]
    attrs: Mapping[str, object] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dtype: str = "float64"
    algorithm: str | None = None

    @property
    def environment(self) -> Environment:
        return solve(self.op, self.module, self.shapes, self.sizes, self.attrs)

    @property
    def variant(self) -> Variant:
        values = {a.name: self.attrs.get(a.name, a.default) for a in structural_attrs(self.op)}
        return Variant({v.name: self.dtype for v in self.op.type_variables}, values)

    def kernel(self) -> tuple[Kernel, dict[str, int | float]]:
        """The generic kernel, and the value of each of its parameters in this call."""
        algorithm = next((a for a in self.op.algorithms if a.name == self.algorithm), None)
        assert (algorithm is None) == (self.algorithm is None)
        lowered = lower(self.module, self.op, self.variant, algorithm)
        environment = self.environment
        values = [evaluate(a, environment) for a in lowered.arguments]
        return lowered.kernel, {p.name: v for p, v in zip(lowered.kernel.parameters, values, strict=True)}

    def run(self, arrays: Arrays, run: Run = interpret) -> dict[str, np.ndarray]:
        """The outputs, by the interpreter or any function of its shape."""
        kernel, parameters = self.kernel()
        return run(kernel, {b.name: arrays[b.name] for b in kernel.inputs}, parameters)


def random_arrays(shapes: Mapping[str, tuple[int, ...]], dtype: str, seed: int) -> dict[str, np.ndarray]:
    """Standard normal values (integers from -8 to 8 for int32), fresh for each tensor in order of name."""
    rng = np.random.default_rng(seed)
    if dtype == "int32":
        return {n: rng.integers(-8, 9, shapes[n]).astype(np.int32) for n in sorted(shapes)}
    return {n: rng.standard_normal(shapes[n]).astype(dtype) for n in sorted(shapes)}
