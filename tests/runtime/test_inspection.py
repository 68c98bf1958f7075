"""`opgen.inspect` and `model.inspect`: the kernel that a call takes, at every stage."""

from __future__ import annotations

import numpy as np
import pytest

import opgen
from generated import nn_ops as nn
from generated import onnx_ops as onnx
from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentError

IMAGE = np.ones((1, 14, 14, 8), np.float32)
TAPS = np.ones((3, 3, 8, 16), np.float32)
ONES = [1, 1, 1, 1]


@pytest.fixture(scope="module")
def found() -> opgen.Inspection:
    return opgen.inspect(nn.conv2d, IMAGE, TAPS, ONES, "SAME")


def test_every_stage_is_text(found: opgen.Inspection) -> None:
    assert "op Conv2D" in found.spec
    assert found.loop.startswith("kernel conv2d_float32_NHWC(")
    assert found.scheduled.startswith("kernel conv2d_float32_NHWC(")
    assert "vectorize" in found.schedule
    assert "us" in found.why
    assert "define" in found.llvm
    assert "conv2d_float32_NHWC" in found.asm
    assert "__global__" in found.cuda


def test_what_is_shown_is_what_runs() -> None:
    """Also by an algorithm that the call takes."""
    big, taps = np.ones((1, 28, 28, 64), np.float32), np.ones((3, 3, 64, 64), np.float32)
    for image, weights in ((IMAGE, TAPS), (big, taps)):
        shown = opgen.inspect(nn.conv2d, image, weights, ONES, padding="SAME")
        with opgen.record() as calls:
            nn.conv2d(image, weights, ONES, "SAME")
        (kernel,) = calls.kernels
        assert (shown.artifact.code_hash, shown.algorithm) == (kernel.code_hash, kernel.algorithm)
    assert shown.algorithm == "minimal_filtering"
    assert "minimal_filtering" in shown.reason
    with opgen.algorithms("off"):
        assert opgen.inspect(nn.conv2d, big, taps, ONES, "SAME").algorithm is None


def test_types_and_shapes_may_be_in_place_of_arrays(found: opgen.Inspection) -> None:
    shapes = (("float32", (1, 14, 14, 8)), ("float32", [3, 3, 8, 16]))
    assert opgen.inspect(nn.conv2d, *shapes, ONES, "SAME").artifact.request == found.artifact.request
    half = opgen.inspect(nn.conv2d, input=("half", (1, 14, 14, 8)), filter=("half", (3, 3, 8, 16)), strides=ONES,
                         padding="SAME")  # fmt: skip
    assert half.loop.startswith("kernel conv2d_float16_NHWC(")


def test_a_prepared_call_is_inspected(found: opgen.Inspection) -> None:
    shown = opgen.inspect(nn.prepare.conv2d(IMAGE, TAPS, ONES, "SAME"))
    assert (shown.call, shown.asm) == (found.call, found.asm)


def test_a_size_below_zero_is_refused_as_such() -> None:
    with pytest.raises(UserError, match=r"expected sizes that are integers >= 0, given the shape \[1, 14, 14, -8\]"):
        opgen.inspect(nn.conv2d, ("float32", (1, 14, 14, -8)), TAPS, ONES, "SAME")


def test_the_summary_says_what_a_reader_looks_for_first(found: opgen.Inspection) -> None:
    lines = str(found).splitlines()
    assert lines[0] == ("Conv2D of input float32[1, 14, 14, 8], filter float32[3, 3, 8, 16]: "
                        "output float32[1, 14, 14, 16]")  # fmt: skip
    assert lines[1].startswith("algorithm: the definition; ")
    assert lines[2].startswith("schedule: ")
    assert "vector registers" in lines[3]
    assert "multiply-adds" in lines[4]
    assert "estimated " in lines[5]
    assert "; measured " in lines[5]
    assert lines[-1].startswith(("nearest limit: ", "more than 100%"))
    assert max(map(len, lines)) <= 120
    assert repr(found) == f"<the kernel of {lines[0]}: print shows a summary>"
    page = found._repr_html_()
    assert page.count("<details>") == page.count("</details>") == 3
    assert "<pre>" in page


def test_a_call_with_one_of_too_many_sizes_shows_the_generic_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opgen.runtime.call.specialize.SPECIALIZATIONS", 0)
    image = np.ones((1, 3, 17, 2), np.float32)
    shown = opgen.inspect(nn.conv2d, image, TAPS[:, :, :2], ONES, "SAME")
    with opgen.record() as calls:
        nn.conv2d(image, TAPS[:, :, :2], ONES, "SAME")
    (kernel,) = calls.kernels
    assert not kernel.specialized
    assert shown.artifact.code_hash == kernel.code_hash
    assert "cost: not known, since the kernel is for all sizes" in str(shown)


def test_the_inner_loop_is_that_of_the_products(found: opgen.Inspection) -> None:
    loop = found.inner_loop
    assert loop is not None
    assert 0 < loop.registers <= 32
    assert any(word in str(loop) for word in ("vfmadd", "fmla", "vmulps", "mulps"))
    assert str(loop).strip() in found.asm.replace("\n\n", "\n")


def test_the_inner_loop_is_one_that_runs_often() -> None:
    """A loop of another stage has more arithmetic, and runs a few times only."""
    shown = opgen.inspect(nn.conv2d, ("float32", (1, 28, 28, 64)), ("float32", (3, 3, 64, 64)), ONES, "SAME")
    assert shown.algorithm == "minimal_filtering"
    assert shown.inner_loop is not None
    assert shown.inner_loop.name == "products_c"
    assert "inner loop products_c: " in str(shown)


def test_a_wrong_call_is_the_same_error_as_the_calls() -> None:
    for arguments in ((IMAGE, TAPS, ONES, "SMAE"), (IMAGE, TAPS[:, :, :3], ONES, "SAME"), (IMAGE, TAPS)):
        with pytest.raises(ArgumentError) as expected:
            nn.conv2d(*arguments)
        with pytest.raises(ArgumentError) as raised:
            opgen.inspect(nn.conv2d, *arguments)
        assert str(raised.value) == str(expected.value)


def test_what_is_not_a_generated_function_is_refused() -> None:
    with pytest.raises(UserError, match="expected a function of a generated module, given"):
        opgen.inspect(np.add, IMAGE, IMAGE)
    model = opgen.compile(lambda x: onnx.relu(x))
    model(IMAGE)
    for compiled in (model, model.model(IMAGE)):
        with pytest.raises(UserError, match=r"`inspect` of a compiled model .* shows its nodes"):
            opgen.inspect(compiled, IMAGE)


def test_an_op_by_its_registered_name_and_a_gradient_are_inspected(found: opgen.Inspection) -> None:
    raw = opgen.inspect(nn.raw_ops.Conv2D, input=IMAGE, filter=TAPS, strides=ONES, padding="SAME")
    assert raw.artifact.request == found.artifact.request
    by_filter = opgen.gradient(nn.conv2d, wrt="filter")
    shown = opgen.inspect(by_filter, IMAGE, TAPS, ("float32", (1, 14, 14, 16)), strides=ONES, padding="SAME")
    assert shown.call.startswith("gradient of Conv2D with respect to 'filter' of ")


def test_generic_ops_and_ops_with_several_results_are_inspected() -> None:
    assert "k" in opgen.inspect(onnx.softmax, IMAGE).schedule
    several = opgen.inspect(onnx.top_k, np.arange(6, dtype=np.float32), [2])
    assert several.cost.measured is not None


def test_a_node_of_a_model_is_inspected_by_number_and_name() -> None:
    @opgen.compile
    def two(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return onnx.relu(nn.conv2d(x, w, ONES, "SAME"))

    with pytest.raises(UserError, match="has not run yet"):
        opgen.compile(lambda x: onnx.relu(x)).model(IMAGE).inspect(0)
    two(IMAGE, TAPS)
    model = two.model(IMAGE, TAPS)
    first = model.inspect(0)
    assert str(first).startswith("node ")
    name = str(first).split()[1].rstrip(":")
    assert model.inspect(name).artifact.request == first.artifact.request
    with pytest.raises(UserError, match="node 7: there is no such node; they are 0 to 0: 0 "):
        model.inspect(7)
    text = model.explain(times=True)
    assert "limit: what takes longest at least on one core" in text
    assert any(word in text for word in ("arithmetic ", "L1 ", "L2 "))
