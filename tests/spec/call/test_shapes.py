"""Calls worked out: dimensions, padding arithmetic against a plain loop, layouts, and every refusal's message."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from opgen.spec import CallError, CallTypeError, Environment, evaluate, load, load_text, solve
from opgen.spec.call.arguments import AttrArgument
from opgen.spec.model import model as m

ROOT = Path(__file__).parents[3]
NN = load(ROOT / "specs/nn_ops.op")
SAMPLES = load(ROOT / "tests/specs/samples.op")
Shape = tuple[int, ...]

RESIZE = """
import "window.op"

op Resize {
  type T in {half, bfloat16, float32, float64}
  sizes input_sizes: [batch, in_height, in_width, groups * group_channels] layout data_format
      or [in_height, in_width] where groups = 1
  input filter: T[filter_height, filter_width, group_channels, groups * group_outputs] shape_only
  input windows: T[batch, out_height, out_width, groups * group_outputs] layout data_format
  use Window2D
  output output: T[batch, in_height, in_width, groups * group_channels] layout data_format
  output[n, y, x, g * group_channels + c] = windows[n, y + top, x + left, g] else 0
}
"""


def conv(
    shapes: tuple[Shape, Shape] = ((1, 5, 5, 4), (3, 3, 2, 6)), op: str = "Conv2D", **attrs: AttrArgument
) -> Environment:
    given: dict[str, AttrArgument] = {"strides": [1, 1, 1, 1], "padding": "VALID", **attrs}
    return solve(NN.op(op), NN, {"input": shapes[0], "filter": shapes[1]}, {}, given)


def windows(size: int, taps: int, stride: int, dilation: int, before: int, after: int) -> int:
    """How many windows fit, by trying them one after the other."""
    starts = range(0, size + before + after, stride)
    return sum(1 for start in starts if start + (taps - 1) * dilation < size + before + after)


@pytest.mark.parametrize("seed", range(200))
def test_window_arithmetic(seed: int) -> None:
    rng = random.Random(seed)
    size, taps, stride, dilation = rng.randint(1, 20), rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 3)
    effective = (taps - 1) * dilation + 1
    padding = rng.choice(["SAME", "VALID", "EXPLICIT"])
    before, after = rng.randint(0, 5), rng.randint(0, 5)
    if padding == "VALID":
        before = after = 0
    elif padding == "SAME":
        total = max(0, (-(-size // stride) - 1) * stride + effective - size)
        before, after = total // 2, total - total // 2
    if size + before + after < effective:
        return
    explicit = [0, 0, before, after, 0, 0, 0, 0] if padding == "EXPLICIT" else []
    found = conv(
        ((2, size, 7, 3), (taps, 1, 3, 5)),
        padding=padding,
        explicit_paddings=explicit,
        strides=[1, stride, 1, 1],
        dilations=[1, dilation, 1, 1],
    )
    assert found.output_shapes["output"] == (2, windows(size, taps, stride, dilation, before, after), 7, 5)
    assert found.lets["top"] == before


def test_layout_permutes_shapes_and_lists_alike() -> None:
    nhwc = conv(((2, 9, 7, 4), (3, 2, 2, 6)), strides=[1, 2, 3, 1], dilations=[1, 1, 2, 1])
    nchw = conv(((2, 4, 9, 7), (3, 2, 2, 6)), strides=[1, 1, 2, 3], dilations=[1, 1, 1, 2], data_format="NCHW")
    assert nhwc.symbols == nchw.symbols
    assert nhwc.attrs["strides"] == nchw.attrs["strides"] == (1, 2, 3, 1)
    n, h, w, c = nhwc.output_shapes["output"]
    assert nchw.output_shapes["output"] == (n, c, h, w)
    padded = conv(
        ((2, 4, 9, 7), (3, 2, 2, 6)), padding="EXPLICIT", explicit_paddings=[0, 0, 0, 0, 1, 2, 3, 4], data_format="NCHW"
    )
    assert padded.attrs["explicit_paddings"] == (0, 0, 1, 2, 3, 4, 0, 0)


def test_products_are_solved() -> None:
    assert conv().dims["groups"] == 2
    assert conv().dims["group_outputs"] == 3


def test_a_product_with_a_factor_of_zero() -> None:
    found = conv(((1, 5, 5, 0), (3, 3, 0, 6)))
    assert (found.dims["groups"], found.dims["group_outputs"]) == (1, 6)
    assert found.output_shapes["output"] == (1, 3, 3, 6)
    # No group at all leaves room for no output channel.
    with pytest.raises(
        CallError, match=r"'filter': expected dimension 3 to be 0 \(groups is 0\), given shape \[3, 3, 2, 6\]"
    ):
        conv(((1, 5, 5, 0), (3, 3, 2, 6)))


def test_broadcasting() -> None:
    op = SAMPLES.op("ScaledAdd")

    def out(x: Shape, y: Shape) -> Shape:
        return solve(op, SAMPLES, {"x": x, "y": y}).output_shapes["z"]

    assert out((3, 1), (1, 4)) == (3, 4)
    assert out((1, 1), (1, 1)) == (1, 1)
    assert out((0, 1), (1, 4)) == (0, 4)
    environment = solve(op, SAMPLES, {"x": (3, 1), "y": (1, 4)})
    assert evaluate(m.SizeOf("x", 1), environment) == 1
    with pytest.raises(CallError) as caught:
        out((3, 2), (4, 2))
    assert str(caught.value) == (
        "ScaledAdd: argument 'y': expected dimension 0 to be 3 or 1 (rows), given shape [4, 2]"
    )


def test_payload_and_alias() -> None:
    op = NN.op("depthwise_conv2d")

    def call(**attrs: AttrArgument) -> Environment:
        shapes = {"input": (1, 5, 5, 2), "filter": (3, 3, 2, 1)}
        return solve(op, NN, shapes, {}, {"strides": [1, 1, 1, 1], "padding": "VALID", **attrs})

    listed = call(padding=[[0, 0], [1, 1], [2, 2], [0, 0]])
    assert listed.attrs["padding"] == "EXPLICIT"
    assert listed.output_shapes["output"] == (1, 5, 7, 2)
    assert call(dilations=[2, 2]).output_shapes["output"] == (1, 1, 1, 2)
    assert call(rate=None, dilations=None).output_shapes["output"] == (1, 3, 3, 2)
    messages = {
        "padding": (
            {"padding": "EXPLICIT"},
            "expected a list in place of 'EXPLICIT', given 'EXPLICIT'",
        ),
        "dilations": ({"rate": [1, 1], "dilations": [1, 1]}, "expected only one of 'rate' and 'dilations', given both"),
    }
    for argument, (attrs, message) in messages.items():
        with pytest.raises(CallError) as caught:
            call(**attrs)  # type: ignore[arg-type]
        assert str(caught.value) == f"depthwise_conv2d: argument '{argument}': {message}"
    with pytest.raises(CallError) as caught:
        call(padding=[[1, 0], [1, 1], [2, 2], [0, 0]])
    assert str(caught.value) == (
        "depthwise_conv2d: argument 'padding': expected 0 for the batch and channel dimensions, "
        "given [[1, 0], [1, 1], [2, 2], [0, 0]]"
    )


def test_sizes_and_dimensions_that_lets_fix() -> None:
    module = load_text(RESIZE, "resize", ROOT / "specs")
    op = module.op("Resize")

    def out(sizes: Shape, given: Shape = (1, 3, 3, 6), **attrs: AttrArgument) -> Shape:
        shapes = {"filter": (3, 3, 2, 6), "windows": given}
        every: dict[str, AttrArgument] = {"strides": [1, 1, 1, 1], "padding": "VALID", **attrs}
        return solve(op, module, shapes, {"input_sizes": sizes}, every).output_shapes["output"]

    assert out((1, 5, 5, 4)) == (1, 5, 5, 4)
    assert out((5, 5)) == (1, 5, 5, 2)
    assert out((1, 4, 5, 5), (1, 6, 3, 3), data_format="NCHW") == (1, 4, 5, 5)
    refusals = {
        (1, 5, 5): "argument 'input_sizes': expected 4 or 2 integers, given [1, 5, 5]",
        (1, 5, -5, 4): "argument 'input_sizes': expected sizes that are not negative, given [1, 5, -5, 4]",
        (
            1,
            5,
            5,
            3,
        ): "argument 'input_sizes': expected element 3 to be a multiple of 2 (group_channels), given [1, 5, 5, 3]",
        (1, 6, 5, 4): "argument 'windows': expected dimension 1 to be 4 (out_height), given shape [1, 3, 3, 6]",
        (2, 5, 5, 4): "argument 'windows': expected dimension 0 to be 2 (batch), given shape [1, 3, 3, 6]",
    }
    for sizes, message in refusals.items():
        with pytest.raises(CallError) as caught:
            out(sizes)
        assert str(caught.value) == f"Resize: {message}"


REFUSALS: list[tuple[dict[str, AttrArgument], tuple[Shape, Shape] | None, str]] = [
    ({"strides": [2, 1, 1, 1]}, None, "'strides': expected 1 for the batch and channel dimensions, given [2, 1, 1, 1]"),
    ({"strides": [1, 1, 1]}, None, "'strides': expected a list of 4, each a 32-bit integer >= 1, given [1, 1, 1]"),
    (
        {"strides": [1, 0, 1, 1]},
        None,
        "'strides': expected a list of 4, each a 32-bit integer >= 1, given [1, 0, 1, 1]",
    ),
    (
        {"strides": [1, 1.5, 1, 1]},
        None,
        "'strides': expected a list of 4, each a 32-bit integer >= 1, given [1, 1.5, 1, 1]",
    ),
    (
        {"strides": [1, True, 1, 1]},
        None,
        "'strides': expected a list of 4, each a 32-bit integer >= 1, given [1, True, 1, 1]",
    ),
    ({"strides": 2}, None, "'strides': expected a list of 4, each a 32-bit integer >= 1, given 2"),
    ({"strides": None}, None, "'strides': expected a list of 4, each a 32-bit integer >= 1, given nothing"),
    (
        {"padding": "same"},
        None,
        "'padding': expected one of SAME, VALID, EXPLICIT (did you mean 'SAME'?), given 'same'",
    ),
    ({"padding": 1}, None, "'padding': expected one of SAME, VALID, EXPLICIT, given 1"),
    ({"data_format": "NCWH"}, None, "'data_format': expected one of NHWC, NCHW (did you mean 'NCHW'?), given 'NCWH'"),
    ({"padding": "EXPLICIT"}, None, "'explicit_paddings': expected 8 integers, because padding is EXPLICIT, given []"),
    (
        {"explicit_paddings": [0] * 8},
        None,
        "'explicit_paddings': expected empty, because padding is not EXPLICIT, given [0, 0, 0, 0, 0, 0, 0, 0]",
    ),
    (
        {"padding": "EXPLICIT", "explicit_paddings": [0, 0]},
        None,
        "'explicit_paddings': expected a list of 8, each a 32-bit integer >= 0, or an empty one, given [0, 0]",
    ),
    ({"use_cudnn_on_gpu": 3}, None, "'use_cudnn_on_gpu': expected true or false, given 3"),
    ({"stride": 1}, None, "'stride': expected no such argument (did you mean 'strides'?), given 1"),
    ({}, ((1, 5, 5), (3, 3, 2, 6)), "'input': expected a tensor of rank 4, given shape [1, 5, 5]"),
    (
        {},
        ((1, 5, 5, 3), (3, 3, 2, 6)),
        "'input': expected dimension 3 to be a multiple of 2 (group_channels), given shape [1, 5, 5, 3]",
    ),
    (
        {"data_format": "NCHW"},
        ((1, 3, 5, 5), (3, 3, 2, 6)),
        "'input': expected dimension 1 to be a multiple of 2 (group_channels), given shape [1, 3, 5, 5]",
    ),
    (
        {},
        ((1, 5, 5, 4), (3, 3, 2, 5)),
        "'filter': expected dimension 3 to be a multiple of 2 (groups), given shape [3, 3, 2, 5]",
    ),
    (
        {},
        ((1, 2, 5, 4), (4, 3, 2, 6)),
        "'filter': expected a window no taller than the padded input (height 2), given shape [4, 3, 2, 6]",
    ),
    (
        {},
        ((2**40, 2**40, 5, 4), (3, 3, 2, 6)),
        "'input': expected sizes that give 'output' a shape (computed [1099511627776, 1099511627774, 3, 6]), "
        "given shape [1099511627776, 1099511627776, 5, 4]",
    ),
]


@pytest.mark.parametrize(("attrs", "shapes", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusal(attrs: dict[str, AttrArgument], shapes: tuple[Shape, Shape] | None, message: str) -> None:
    with pytest.raises(CallError) as caught:
        conv(shapes or ((1, 5, 5, 4), (3, 3, 2, 6)), **attrs)
    assert str(caught.value) == f"Conv2D: argument {message}"


def test_kinds_of_refusals() -> None:
    """Callers catch ValueError, or TypeError where the type of an argument is wrong."""
    assert issubclass(CallError, ValueError)
    assert issubclass(CallTypeError, TypeError)
    with pytest.raises(TypeError):
        conv(strides=2)
    with pytest.raises(CallTypeError, match="'filter': expected a tensor of rank 4, given nothing"):
        solve(NN.op("Conv2D"), NN, {"input": (1, 1, 1, 1)}, {}, {"strides": [1] * 4, "padding": "SAME"})


LANGUAGE = """
function parts(n, mode: {UP, DOWN}) -> (most, rest) {
  let most = if mode == UP then ceildiv(n, 3) else n // 3
  return most, n - most * 2
}

op Values {
  type T in {float32}
  input x: T[n, 4, 2 * pairs]
  attr way: enum {UP, DOWN} = UP
  attr step: int = -2
  attr scale: float = 0.5
  attr flag: bool = false
  let a, b = parts(n, way)
  let c, d = parts(n, DOWN)
  let e = max(min(n, 3), step) + pow(2, 3) + step // 3 * 100 + step % 3 * 1000
  let f = if flag or not (n > 3 and scale >= 0.5) then -1 else ceildiv(step, 3)
  require n * scale != 3.5 or flag == true : x "n {n}, {{scale}} {a + 1}"
  output y: T[n + a + b + c + d + e * e + f * f + 4]
  y[i] = x[i, 0, 0] else 0
}
"""


def test_the_shape_language() -> None:
    broken = LANGUAGE.replace("n * scale != 3.5", "n != 7 ")
    module = load_text(broken)
    op = module.op("Values")
    found = solve(op, module, {"x": (8, 4, 6)})
    assert found.dims == {"n": 8, "pairs": 3}
    assert found.lets == {"a": 3, "b": 2, "c": 2, "d": 4, "e": 3 + 8 - 100 + 1000, "f": 0}
    down = solve(op, module, {"x": (8, 4, 6)}, {}, {"way": "DOWN", "step": 5, "flag": True})
    assert down.lets == {"a": 2, "b": 4, "c": 2, "d": 4, "e": 5 + 8 + 100 + 2000, "f": -1}
    with pytest.raises(CallError) as caught:
        solve(op, module, {"x": (7, 4, 6)})
    assert str(caught.value) == "Values: argument 'x': expected n 7, {scale} 4, given shape [7, 4, 6]"
    with pytest.raises(CallError, match=r"'x': expected dimension 1 to be 4, given shape \[8, 5, 6\]"):
        solve(op, module, {"x": (8, 5, 6)})


def test_division_by_zero_and_overflow_are_refusals() -> None:
    module = load_text(
        "op Values {\n  type T in {float32}\n  input x: T[n, k]\n  let a = n // k * n * n\n"
        "  output y: T[a]\n  y[i] = x[i, 0] else 0\n}\n"
    )
    op = module.op("Values")
    with pytest.raises(CallError) as caught:
        solve(op, module, {"x": (3, 0)})
    assert str(caught.value) == (
        "Values: argument 'x': expected sizes that 'a' can be computed from (division by zero), given shape [3, 0]"
    )
    with pytest.raises(CallError, match="does not fit in 64 bits"):
        solve(op, module, {"x": (2**40, 1)})
