"""A node that is shown is the one that runs: equal object code of programs' kernels and their artifacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import onnx
import pytest

import opgen
from opgen.compiler.artifact import Artifact
from opgen.graph.passes import base
from opgen.runtime.kernels.loaded import hash_of, remembered
from tests.onnx.models import constant, float_input, model, node

Floats = npt.NDArray[np.float32]


def uniform(*shape: int) -> Floats:
    return np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32)


def layers() -> onnx.ModelProto:
    nodes = [node("MatMul", ["x", "a"], ["h"]), node("Relu", ["h"], ["r"]), node("MatMul", ["r", "b"], ["y"])]
    weights = [constant("a", uniform(64, 128)), constant("b", uniform(128, 64))]
    return model(nodes, [float_input("x", ("n", 64))], initialisers=weights)


def images() -> onnx.ModelProto:
    nodes = [
        node("Conv", ["x", "w", "b"], ["h"], pads=[1, 1, 1, 1]),
        node("Relu", ["h"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["p"], ["y"]),
    ]
    weights = [constant("w", uniform(16, 16, 3, 3)), constant("b", uniform(16))]
    return model(nodes, [float_input("x", (1, 16, 20, 20))], initialisers=weights)


def attention() -> onnx.ModelProto:
    nodes = [
        node("MatMul", ["q", "k"], ["s"]),
        node("Softmax", ["s"], ["p"], axis=-1),
        node("MatMul", ["p", "v"], ["y"]),
    ]
    return model(nodes, [float_input("q", (20, 32)), float_input("k", (32, 24)), float_input("v", (24, 48))])


def gates() -> onnx.ModelProto:
    """Sums of which one is written over the one before."""
    nodes = [
        node("MatMul", ["x", "x"], ["a"]),
        node("ReduceMean", ["a"], ["m"], axes=[1], keepdims=1),
        node("Sub", ["a", "m"], ["d"]),
        node("ReduceMax", ["d"], ["r"], axes=[1], keepdims=1),
        node("Mul", ["d", "r"], ["y"]),
    ]
    return model(nodes, [float_input("x", (48, 48))])


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], Sequence[Sequence[tuple[int, ...]]]]] = {
    "layers": (layers, [[(3, 64)]]),
    "layers of many sizes": (layers, [[(n, 64)] for n in (3, 70, 71, 75, 80, 90)]),
    "images": (images, [[(1, 16, 20, 20)]]),
    "attention": (attention, [[(20, 32), (32, 24), (24, 48)]]),
    "gates": (gates, [[(48, 48)]]),
}
"""Models, and shapes of their inputs, one run after the other."""


def code_of(shown: Artifact) -> str:
    """The hash of the object code in which the stages that are shown end, whatever the cache has."""
    return hash_of(shown.scheduled_parts.main.code)


@pytest.mark.parametrize("name", MODELS)
def test_nodes(name: str) -> None:
    make, runs = MODELS[name]
    compiled = opgen.compile(make().SerializeToString())
    for shapes in runs[:-1]:
        compiled(*(uniform(*shape) for shape in shapes))
    with opgen.record() as calls:
        compiled(*(uniform(*shape) for shape in runs[-1]))
    ran = {kernel.node: (kernel.code_hash, kernel.algorithm) for kernel in calls.kernels}
    assert ran
    for which, found in ran.items():
        assert which is not None
        shown = compiled.inspect(which).artifact
        assert (code_of(shown), shown.algorithm) == found, which
        assert any("is open, 64 or more" in line for line in shown.in_program) == (len(runs) > 1)
    specialized = {kernel.specialized for kernel in calls.kernels}
    assert specialized == {len(runs) == 1}, "sizes are open after many"


def test_work_on_constants() -> None:
    """The part that runs once is shown as it ran."""
    compiled = opgen.compile(images().SerializeToString())
    compiled(uniform(1, 16, 20, 20))
    program = compiled.programs[0].program
    number, first = next((n, k.first) for n, k in enumerate(program.kernels) if k.first is not None)
    which = next(n for n, x in zip(program.nodes, program.entry.launches, strict=True) if x.kernel == number)
    shown, ran = compiled.inspect(which), remembered(first.key)
    assert shown.first is not None
    assert ran is not None
    assert hash_of(shown.first.code) == ran.code_hash
    assert "alone runs once, as a kernel of its own" in str(shown)
    assert "(median, random data, with what runs once)" in str(shown)


def test_operands_in_place() -> None:
    compiled = opgen.compile(gates().SerializeToString())
    compiled(uniform(48, 48))
    over = compiled.programs[0].program.in_place
    assert over
    for which, pairs in over.items():
        assert compiled.inspect(which).artifact.in_place == pairs


def refused(*_: object, **__: object) -> None:
    raise AssertionError("the passes run again")


def test_explain_shows_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = opgen.compile(layers().SerializeToString())
    compiled(uniform(5, 64))
    monkeypatch.setattr(base, "run_passes", refused)
    assert "of 'MatMul' (MatMul)" in compiled.explain()
    assert compiled.inspect(0).artifact.loop.is_bound
