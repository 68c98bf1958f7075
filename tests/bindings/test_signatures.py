"""Several signatures of one op: how calls are read, what stays unclear, and what generated functions say of both."""

from __future__ import annotations

import functools
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opgen
from opgen.bindings.python.live import module_of
from opgen.bindings.python.render import render_module
from opgen.diagnostics.calls import ArgumentError, UnknownArgumentError
from opgen.spec.loading import load_text
from opgen.spec.unparse import write_op
from tests.bindings.modules import OPS, execute, generated

SPEC = '''
op Resize {
  """The first elements, repeated."""
  signature "version 3" (x, size, shift, mode, edge, align, name)
  signature "version 2" resample(x, size as length, edge, mode, name)
  signature "version 1" (x, size = 2, mode, shift, name)
  type T in {float32, float64}
  input x: T[count]
  attr size: int >= 1
  attr shift: int[2] = [0, 0]
  attr mode: enum {FAST, EXACT} = FAST
  attr edge: enum {NONE, EXACT} = NONE
  attr align: bool = false
  output y: T[count]
  y[i] = x[i] * T(size + 10 * shift[0] + 100 * shift[1]
    + (if mode == EXACT then 1000 else 0) + (if edge == EXACT then 2000 else 0) + (if align then 4000 else 0))
}
'''
X = np.ones(3, np.float32)
SUM = np.ones((1, 1, 4, 1), np.float32)
"""A filter that adds four channels."""


@functools.cache
def ops() -> Any:
    return module_of(load_text(SPEC, "resized.op"), "resized.op")


def _value(call: str) -> float:
    return float(eval(f"ops.{call}", {"ops": ops(), "X": X, "np": np})[0])


RIGHT = {
    "resize(X, 3)": 3,
    "resize(X)": 2,  # version 1 alone has a default
    "resize(X, 3, [1, 2])": 213,
    "resize(X, 3, 'FAST', [1, 2])": 213,
    "resize(X, 3, 'FAST')": 3,
    "resize(X, 3, 'NONE', 'EXACT')": 1003,
    "resize(X, 3, None, 'EXACT')": 1003,
    "resize(X, 3, None, [1, 0])": 13,
    "resize(X, 3, [0, 0], 'EXACT', 'EXACT', True, 'layer')": 7003,
    "resize(X, 3, [0, 0], None, 'EXACT')": 2003,
    "resize(X, length=3, edge='EXACT')": 2003,
    "resize(X, 3, edge='EXACT', align=True)": 6003,
    "resample(X, 3, 'NONE', 'EXACT', 'layer')": 1003,
    "prepare.resize(X, 3, 'NONE', 'EXACT')(X)": 1003,
    "prepare.resample(X, 3, shift=[1, 2])(X)": 213,
    "raw_ops.Resize(x=X, size=3, edge=b'EXACT')": 2003,
    "resize(X, 3, 'FAST', [1, 2], name='EXACT')": 213,
}


@pytest.mark.parametrize("call", RIGHT)
def test_right_calls(call: str) -> None:
    for _ in range(3):  # checked, remembered, and by the short way
        assert _value(call) == RIGHT[call]


WRONG = {
    "resize(X, 3, 'EXACT')": "argument 'edge': expected a keyword, since two signatures fit: edge='EXACT' "
    "('version 2') or mode='EXACT' ('version 1'), given 'EXACT' by position",
    "resize(X, 3, 'SLOW')": "argument 'edge': expected one of NONE, EXACT, or, as 'mode' (version 1), one of FAST, "
    "EXACT, given 'SLOW'",
    "resize(X, 3, [1, 2, 3])": "argument 'shift': expected a list of 2, each a 32-bit integer, given [1, 2, 3]",
    "resize(X, 3, 'FAST', [1, 2], edge='EXACT')": "argument 'edge': expected one value, given 'FAST' by position and "
    "'EXACT' by keyword",
    "resize(X, align=True)": "argument 'size': expected a 32-bit integer >= 1, given nothing",
    "resize(X, 3, length=4)": "argument 'length': expected only one of 'size' and 'length', given both",
    "resize(X, 0)": "argument 'size': expected a 32-bit integer >= 1, given 0",
    "resize(X, 3, 'NONE', 'EXACT', 'layer', 'more')": "argument 'name': expected no argument after it, given 'more'",
    "resize(X, 3, [0, 0], 'FAST', 'NONE', True, 'FAST')": "argument 'name': expected a name that is not a word of an "
    "argument, given 'FAST'",
    "resize(X, 3, 'FAST', [1, 2], 'EXACT')": "argument 'name': expected a name that is not a word of an argument, "
    "given 'EXACT'",
    "resize()": "argument 'x': expected a tensor, given None",
    "raw_ops.Resize(x=X)": "argument 'size': expected a 32-bit integer >= 1, given nothing",
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_calls(call: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        _value(call)
    assert str(caught.value) == f"Resize: {WRONG[call]}"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_list_that_changes_is_read_anew() -> None:
    shift = [1, 2]
    assert _value("resize(X, 3, [1, 2])") == 213
    assert [float(ops().resize(X, 3, shift)[0]) for _ in range(3)] == [213] * 3
    shift[0] = 0
    assert float(ops().resize(X, 3, shift)[0]) == 203
    assert float(ops().resize(X, 3, np.array(shift))[0]) == 203


def test_documentation_shows_all() -> None:
    doc = " ".join((inspect.getdoc(ops().resize) or "").split())
    assert 'version 3: resize(x, size, shift=[0, 0], mode="FAST", edge="NONE", align=False, name=None)' in doc
    assert 'version 2: resample(x, length, edge="NONE", mode="FAST", name=None)' in doc
    assert 'version 1: resize(x, size=2, mode="FAST", shift=[0, 0], name=None)' in doc
    assert "length: Another name for `size`." in doc
    shown = inspect.signature(ops().resize)
    assert list(shown.parameters) == ["x", "size", "shift", "mode", "edge", "align", "name", "out"]
    assert shown.parameters["size"].default is inspect.Parameter.empty
    assert shown.parameters["mode"].default == "FAST"
    assert inspect.signature(functools.partial(ops().resize, size=3)).parameters["size"].default == 3
    assert shown.bind(X, 3, mode="EXACT").arguments["mode"] == "EXACT"


def test_a_spec_keeps_its_signatures() -> None:
    module = load_text(SPEC, "resized.op")
    again = load_text(write_op(module, module.op("Resize")), "resized.op")
    assert again.op("Resize") == module.op("Resize")
    assert len(again.op("Resize").signatures) == 3


def test_captured_and_differentiated() -> None:
    """A captured function's calls are read like any other; a gradient has the op's own signature."""
    nn = generated(OPS)
    x, w = np.ones((1, 5, 5, 2), np.float32), np.ones((3, 3, 2, 4), np.float32)

    @opgen.compile
    def network(x: Any, w: Any) -> Any:
        return nn.conv2d(
            nn.conv2d(x, w, 2, "SAME", "NHWC"),
            filters=w[:, :, :, :1] if False else np.ones((1, 1, 4, 1), np.float32),
            strides=1,
            padding="SAME",
        )

    expected = nn.raw_ops.Conv2D(input=x, filter=w, strides=[1, 2, 2, 1], padding="SAME").sum(axis=3, keepdims=True)
    np.testing.assert_array_equal(network(x, w), expected)
    by_filter = opgen.gradient(nn.depthwise_conv2d, wrt="filter")
    assert "rate" in inspect.signature(by_filter).parameters


UNKNOWN = {
    "box(X, sise=3)": "unknown argument 'sise'; did you mean 'size'?",
    "box(X, 3, mood='A')": "unknown argument 'mood'; did you mean 'mode'?",
    "box(X, zzz=3)": "unknown argument 'zzz'; it takes x, size, mode, name, out",
    "prepare.box(X, sise=3)": "unknown argument 'sise'; did you mean 'size'?",
    "raw_ops.Box(x=X, sise=3)": "unknown argument 'sise'; did you mean 'size'?",
    "box_all(X, sise=3)": "unknown argument 'sise'; did you mean 'size'?",
    "prepare.box_all(X, sise=3)": "unknown argument 'sise'; did you mean 'size'?",
    "raw_ops.BoxAll(x=X, sise=3)": "unknown argument 'sise'; did you mean 'size'?",
}
BOXES = """
op Box {
  type T in {float32}
  input x: T[count]
  attr size: int >= 1
  attr mode: enum {A, B} = A
  output y: T[count]
  y[i] = if mode == A then x[i] * T(size) else x[i]
}

op BoxAll {
  type T in {float32}
  input x: T[count...]
  attr size: int
  output y: T[count...]
  y[i...] = x[i...] * T(size)
}
"""


@functools.cache
def boxes() -> Any:
    return module_of(load_text(BOXES, "boxes.op"), "boxes.op")


@pytest.mark.parametrize("call", UNKNOWN)
def test_an_unknown_keyword_is_told_what_was_meant(call: str) -> None:
    with pytest.raises(UnknownArgumentError) as caught:
        eval(f"ops.{call}", {"ops": boxes(), "X": X})
    assert str(caught.value) == f"{caught.value.op}: {UNKNOWN[call]}"
    assert caught.value.argument in UNKNOWN[call]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_list_in_place_of_a_word() -> None:
    """Of one dimension, too; the word that it means is none there, as no list is then given."""
    text = """
op Pad {
  signature "2" (x, mode, pads, shift, name)
  signature "1" (x, mode {PADDED = pads}, shift, name)
  type T in {float32}
  input x: T[count]
  attr mode: enum {INSIDE, PADDED} = INSIDE
  attr pads: int[2] >= 0 = []
  attr shift: bool = false
  output y: T[count]
  y[i] = x[i] + (if mode == PADDED then T(pads[0] * 10 + pads[1]) else T(0)) + (if shift then T(100) else T(0))
}
"""
    pad = module_of(load_text(text, "pad.op"), "pad.op").pad
    assert pad(X, [1, 2], True)[0] == 113
    assert pad(X, np.array([1, 2]))[0] == 13
    assert pad(X, "PADDED", [1, 2], True)[0] == 113
    for wrong in ([1, 2, 3], []):
        with pytest.raises(ArgumentError, match="argument 'mode': expected one of INSIDE or 2 integers, given"):
            pad(X, wrong, True)
    images, weights = np.ones((1, 4, 4, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
    for word in ("EXPLICIT", b"EXPLICIT"):
        with pytest.raises(ArgumentError, match="argument 'padding': expected one of SAME, VALID or 4 lists of 2 int"):
            generated(OPS).conv2d(images, weights, 1, word)


def test_a_function_whose_argument_has_its_name() -> None:
    """By another name, too, and in an op of any number of dimensions."""
    text = """
op Mask {
  type T in {float32}
  input mask: T[count]
  output y: T[count]
  y[i] = 2 * mask[i]
}
op Shift {
  signature "2" (x, by, name)
  signature "1" (x as shift, by, name)
  type T in {float32}
  input x: T[count]
  attr by: int = 2
  output y: T[count]
  y[i] = x[i] * T(by)
}
op Scale {
  type T in {float32}
  input x: T[count...]
  attr scale: int = 2
  output y: T[count...]
  y[i...] = x[i...] * T(scale)
}
"""
    made = module_of(load_text(text, "own.op"), "own.op")
    calls = (
        "mask(X",
        "raw_ops.Mask(mask=X",
        "shift(shift=X",
        "raw_ops.Shift(x=X",
        "scale(X",
        "raw_ops.Scale(x=X, scale=2",
    )
    for call in calls:
        assert eval(f"ops.{call})", {"ops": made, "X": X}).tolist() == [2, 2, 2], call
        with pytest.raises(UnknownArgumentError, match="unknown argument 'zzz'"):
            eval(f"ops.{call}, zzz=1)", {"ops": made, "X": X})


def test_a_missing_argument_is_named() -> None:
    for call in ("box(X)", "raw_ops.Box(x=X)", "prepare.box(X)", "box_all(X)", "raw_ops.BoxAll(x=X)"):
        with pytest.raises(ArgumentError, match=r"argument 'size': expected .*, given nothing"):
            eval(f"ops.{call}", {"ops": boxes(), "X": X})


def test_a_generated_module_is_the_same(tmp_path: Path) -> None:
    module = load_text(SPEC, "resized.op")
    (tmp_path / "resized.op").write_text(SPEC, encoding="utf-8")
    made = execute("resized", render_module(module), tmp_path)
    assert made.resample is made.resize
    assert float(made.resample(X, 3, "NONE", "EXACT")[0]) == 1003
