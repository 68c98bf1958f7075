"""The oracle: a scheduled kernel against the unscheduled one, in the interpreter, on random data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Const, Kernel
from opgen.loop.walk import substitute_expr
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify

Arrays = dict[str, npt.NDArray[np.generic]]
Sizes = Mapping[str, int]


def specialised(kernel: Kernel, sizes: Sizes) -> Kernel:
    """The kernel with parameters bound, simplified."""
    return simplify(bind(kernel, dict(sizes)))


def shape(kernel: Kernel, name: str, sizes: Sizes) -> tuple[int, ...]:
    """A buffer's shape for given parameters."""
    values = {n: Const(v) for n, v in sizes.items()}
    (buffer,) = (b for b in kernel.buffers if b.name == name)
    folded = [fold_all(substitute_expr(e, values)) for e in buffer.shape]
    assert all(isinstance(e, Const) for e in folded)
    return tuple(int(e.value) for e in folded if isinstance(e, Const))


def numpy_type(name: str) -> npt.DTypeLike:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def random_inputs(kernel: Kernel, sizes: Sizes, seed: int) -> Arrays:
    """Small integers and eighths: sums of their products are exact in float32, so an order cannot hide a mistake... or
    make one: results are compared bit by bit.
    """
    rng = np.random.default_rng(seed)
    arrays: Arrays = {}
    for buffer in kernel.inputs:
        dims = shape(kernel, buffer.name, sizes)
        arrays[buffer.name] = (rng.integers(-16, 17, dims) / (1 if buffer.dtype.is_int else 8)).astype(
            numpy_type(buffer.dtype.name)
        )
    return arrays


def run(kernel: Kernel, inputs: Arrays, sizes: Sizes, seed: int | None = None) -> Arrays:
    """The results of a kernel; `seed` draws the order of iterations that are said to be independent."""
    wanted = {p.name for p in kernel.parameters}
    return interpret(kernel, inputs, {n: v for n, v in sizes.items() if n in wanted}, seed=seed)


def assert_same(before: Kernel, after: Kernel, sizes: Sizes, seed: int, story: str = "", roundings: int = 0) -> None:
    """Both kernels give the same bits; the message has what is needed to see it again.

    Where sums of positive float32 terms are taken in another order: as many roundings of 2**-24 apart.
    """
    inputs = random_inputs(before, sizes, seed)
    expected, found = run(before, inputs, sizes), run(after, inputs, sizes, seed)
    for name, reference in expected.items():
        assert reference.shape == found[name].shape
        same = reference.tobytes() == found[name].tobytes()
        if roundings and not same:
            same = bool(np.all(np.abs(found[name] - reference) <= roundings * 2.0**-24 * np.abs(reference)))
        assert same, f"'{name}' of '{before.name}' differs: seed {seed}, sizes {dict(sizes)}\n{story}"
