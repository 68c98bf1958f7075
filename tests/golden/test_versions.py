"""Calls as the pages of TensorFlow's versions write them: by position, by keyword and mixed they are the raw ops'."""

from __future__ import annotations

import inspect
import random
from typing import Any

import numpy as np
import pytest

from opgen.diagnostics.calls import ArgumentError
from tests.bindings.modules import OPS, generated

VERSIONS = {
    "the operator": {
        "conv2d": "input filter strides padding use_cudnn_on_gpu explicit_paddings data_format dilations name",
        "conv2d_backprop_input": "input_sizes filter out_backprop strides padding use_cudnn_on_gpu explicit_paddings "
        "data_format dilations name",
        "conv2d_backprop_filter": "input filter_sizes out_backprop strides padding use_cudnn_on_gpu explicit_paddings "
        "data_format dilations name",
        "depthwise_conv2d_native": "input filter strides padding explicit_paddings data_format dilations name",
        "depthwise_conv2d_native_backprop_input": "input_sizes filter out_backprop strides padding explicit_paddings "
        "data_format dilations name",
        "depthwise_conv2d_native_backprop_filter": "input filter_sizes out_backprop strides padding explicit_paddings "
        "data_format dilations name",
    },
    "1.0": {
        "conv2d": "input filter strides padding use_cudnn_on_gpu data_format name",
        "conv2d_backprop_input": "input_sizes filter out_backprop strides padding use_cudnn_on_gpu data_format name",
        "conv2d_backprop_filter": "input filter_sizes out_backprop strides padding use_cudnn_on_gpu data_format name",
    },
    "1.3": {
        "depthwise_conv2d_native": "input filter strides padding data_format name",
        "depthwise_conv2d_native_backprop_input": "input_sizes filter out_backprop strides padding data_format name",
        "depthwise_conv2d_native_backprop_filter": "input filter_sizes out_backprop strides padding data_format name",
    },
    "1.15": {
        "conv2d": "input filter strides padding* use_cudnn_on_gpu data_format dilations name",
        "conv2d_backprop_input": "input_sizes filter out_backprop strides padding* use_cudnn_on_gpu data_format "
        "dilations name",
        "conv2d_backprop_filter": "input filter_sizes out_backprop strides padding* use_cudnn_on_gpu data_format "
        "dilations name",
        "depthwise_conv2d": "input filter strides padding* rate name data_format dilations",
        "depthwise_conv2d_native": "input filter strides padding* data_format dilations name",
        "depthwise_conv2d_native_backprop_input": "input_sizes filter out_backprop strides padding* data_format "
        "dilations name",
        "depthwise_conv2d_native_backprop_filter": "input filter_sizes out_backprop strides padding* data_format "
        "dilations name",
    },
    "1.15, filters": {
        "conv2d": "input filters strides* padding* use_cudnn_on_gpu data_format dilations* name",
        "conv2d_backprop_input": "input_sizes filters out_backprop strides padding* use_cudnn_on_gpu data_format "
        "dilations name",
    },
    "2": {
        "conv2d": "input filters strides* padding* data_format dilations* name",
        "depthwise_conv2d": "input filter strides padding* data_format dilations name",
        "depthwise_conv2d_backprop_input": "input_sizes filter out_backprop strides padding* data_format dilations "
        "name",
        "depthwise_conv2d_backprop_filter": "input filter_sizes out_backprop strides padding* data_format dilations "
        "name",
    },
}
"""The arguments in order; those with a star may be given in another form: lists of pairs, one number or two."""

RAW = {
    "conv2d": "Conv2D",
    "conv2d_backprop_input": "Conv2DBackpropInput",
    "conv2d_backprop_filter": "Conv2DBackpropFilter",
    "depthwise_conv2d": "depthwise_conv2d",
    "depthwise_conv2d_native": "DepthwiseConv2dNative",
    "depthwise_conv2d_native_backprop_input": "DepthwiseConv2dNativeBackpropInput",
    "depthwise_conv2d_native_backprop_filter": "DepthwiseConv2dNativeBackpropFilter",
    "depthwise_conv2d_backprop_input": "DepthwiseConv2dNativeBackpropInput",
    "depthwise_conv2d_backprop_filter": "DepthwiseConv2dNativeBackpropFilter",
}
CASES = [(version, function) for version, of in VERSIONS.items() for function in of]
PAIRS = {"NHWC": [[0, 0], [1, 2], [3, 0], [0, 0]], "NCHW": [[0, 0], [0, 0], [1, 2], [3, 0]]}


def _ordered(layout: str, height: int, width: int) -> list[int]:
    return [1, height, width, 1] if layout == "NHWC" else [1, 1, height, width]


class Case:
    """The arguments of one call: `given` as the version writes them, `raw` as the raw op takes them."""

    def __init__(self, version: str, function: str, rng: random.Random) -> None:
        self.order = VERSIONS[version][function].split()
        self.names = [n.rstrip("*") for n in self.order]
        self.function = function
        self.rng = rng
        self.given: dict[str, Any] = {}
        self.raw: dict[str, Any] = {}
        layout = rng.choice(["NHWC", "NCHW", None])
        self.layout = layout or "NHWC"
        for name in self.order:
            self._add(name.rstrip("*"), name.endswith("*"), layout)
        self._tensors()

    def _add(self, name: str, otherwise: bool, layout: str | None) -> None:
        rng, depthwise = self.rng, self.function == "depthwise_conv2d"
        match name:
            case "strides":
                side = rng.randint(1, 2)
                self._set(name, _ordered(self.layout, side, side if depthwise else rng.randint(1, 3)), otherwise)
            case "padding":
                self._padding(otherwise, depthwise)
            case "data_format":
                self.given[name] = layout if rng.random() < 0.8 or layout is None else layout.encode()
                self.raw[name] = self.layout
            case "dilations" if depthwise:
                self.given[name] = None if self.given.get("rate") else rng.choice([None, [1, 2], (2, 2)])
                self.raw["rate"] = self.given.get("rate") or self.given[name] or [1, 1]
            case "dilations":
                self._set(name, _ordered(self.layout, rng.randint(1, 2), rng.randint(1, 2)), otherwise)
            case "rate":
                self.given[name] = rng.choice([None, [2, 1]])
            case "use_cudnn_on_gpu":
                self.given[name] = rng.choice([True, False, None])
            case "name":
                self.given[name] = rng.choice([None, "layer"])

    def _set(self, name: str, values: list[int], otherwise: bool) -> None:
        """A list of four; in another form one number or two, where these say the same."""
        spatial = [v for letter, v in zip(self.layout, values, strict=True) if letter in "HW"]
        forms: list[Any] = [values, tuple(values), np.array(values)]
        if otherwise:
            forms += [spatial, tuple(spatial)]
            if spatial[0] == spatial[1]:
                forms += [spatial[0], spatial[:1], np.int64(spatial[0])]
            forms = forms[3:]
        self.given[name], self.raw[name] = self.rng.choice(forms), values

    def _padding(self, otherwise: bool, depthwise: bool) -> None:
        pairs, explicit = PAIRS[self.layout], "explicit_paddings" in self.names
        flat = [n for pair in pairs for n in pair]
        choice = self.rng.choice(["SAME", "VALID", *(["list"] if otherwise or explicit else [])])
        if choice != "list":
            self.given["padding"] = self.raw["padding"] = choice
            if explicit:
                self.given["explicit_paddings"] = self.rng.choice([None, []])
        elif otherwise:
            self.given["padding"] = pairs
            self.raw |= {"padding": pairs} if depthwise else {"padding": "EXPLICIT", "explicit_paddings": flat}
        else:
            self.given |= {"padding": "EXPLICIT", "explicit_paddings": flat}
            self.raw |= {"padding": "EXPLICIT", "explicit_paddings": flat}

    def _tensors(self) -> None:
        ops, rng = generated(OPS), np.random.default_rng(self.rng.randrange(2**32))
        shape = (2, 7, 6, 3) if self.layout == "NHWC" else (2, 3, 7, 6)
        tensors = {
            "input": rng.integers(-4, 5, shape).astype(np.float32),
            "filter": rng.integers(-4, 5, (2, 3, 3, 4)).astype(np.float32),
        }
        forward = ops.raw_ops.DepthwiseConv2dNative if "depthwise" in self.function else ops.raw_ops.Conv2D
        if "backprop" in self.function:
            tensors["out_backprop"] = forward(**{n: tensors[n] for n in ("input", "filter")}, **self.raw)
            tensors |= {"input_sizes": np.array(shape, np.int32), "filter_sizes": np.array((2, 3, 3, 4), np.int32)}
        tensors["filters"] = tensors["filter"]
        self.given = {n: tensors[n] if n in tensors else self.given.get(n) for n in self.names}
        raw = {n.replace("filters", "filter") for n in self.names if n in tensors}
        self.raw = {n: tensors[n] for n in raw} | self.raw

    def call(self, positional: int) -> Any:
        """The result of the call with so many arguments by position, and the others by keyword where they are given."""
        rest = {n: self.given[n] for n in self.names[positional:] if self.given[n] is not None}
        return getattr(generated(OPS), self.function)(*[self.given[n] for n in self.names[:positional]], **rest)

    def expected(self) -> Any:
        return getattr(generated(OPS).raw_ops, RAW[self.function])(**self.raw)


def _agrees(case: Case, positional: int) -> None:
    written = [f"{n}={case.given[n]!r}" for n in case.names if not isinstance(case.given[n], np.ndarray)]
    print(f"{case.function} with {positional} of {len(case.names)} by position: {', '.join(written)}")
    np.testing.assert_array_equal(case.call(positional), case.expected())


@pytest.mark.parametrize(("version", "function"), CASES)
def test_every_version(version: str, function: str) -> None:
    """In full by position, by keyword, and mixed; with the forms that only some versions have, and without."""
    case = Case(version, function, random.Random(f"{version} {function}"))
    for positional in range(len(case.names) + 1):
        if "filters" not in case.names[positional:] or positional < 2:
            _agrees(case, positional)


@pytest.mark.parametrize("seed", range(40))
def test_any_call_of_a_version(seed: int) -> None:
    """The reproduction is the seed."""
    rng = random.Random(seed)
    version, function = rng.choice(CASES)
    case = Case(version, function, rng)
    _agrees(case, rng.randint(0, len(case.names)))


X, W = np.ones((1, 4, 4, 3), np.float32), np.ones((3, 3, 3, 8), np.float32)
ONE = [1, 1, 1, 1]

WRONG = {
    "conv2d(X, W, ONE, 'SAME', 'NHCW')": "'data_format': expected one of NHWC, NCHW (did you mean 'NHWC'?), given "
    "'NHCW'",
    "conv2d(X, W, ONE, 'SMAE', 'NHWC')": "'padding': expected one of SAME, VALID, EXPLICIT (did you mean "
    "'SAME'?), given 'SMAE'",
    "conv2d(X, W, ONE, 'SAME', 3.5)": "'use_cudnn_on_gpu': expected true or false, or, as 'data_format' "
    "(TensorFlow 2), one of NHWC, NCHW, given 3.5",
    "conv2d(X, W, ONE, 'SAME', 'NHWC', [1, 2, 3])": "'dilations': expected an integer or a list of 1, 2 or 4, "
    "given [1, 2, 3]",
    "conv2d(X, W, ONE, 'SAME', 'NHWC', data_format='NCHW')": "'data_format': expected one value, given 'NHWC' by "
    "position and 'NCHW' by keyword",
    "conv2d(X, W, 2, 'EXPLICIT', explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0])": "'strides': expected a list of 4, each "
    "a 32-bit integer >= 1, given 2",
    "conv2d(X, W, 2.0, 'SAME')": "'strides': expected an integer or a list of 1, 2 or 4, given 2.0",
    "conv2d(X, W, 0, 'SAME')": "'strides': expected a list of 4, each a 32-bit integer >= 1, given [1, 0, 0, 1]",
    "conv2d(X, W, ONE, 'SAME', True, [], 'NHWC', ONE, 'n', 3)": "'name': expected no argument after it, given 3",
    "conv2d(X, W, ONE, [[1, 1], [1, 1]])": "'padding': expected one of SAME, VALID or 4 lists of 2 integers, given "
    "[[1, 1], [1, 1]]",
    "conv2d(X, W, ONE, 'SAME', use_cudnn_on_gpu='NHWC')": "'use_cudnn_on_gpu': expected true or false, given 'NHWC'",
    "conv2d(X, W, filters=W, strides=1, padding='SAME')": "'filters': expected only one of 'filter' and 'filters', "
    "given both",
    "conv2d(X, strides=1, padding='SAME')": "'filter': expected a tensor, given None",
    "conv2d(X, W, padding='SAME')": "'strides': expected an integer or a list of 1, 2 or 4, given nothing",
    "raw_ops.Conv2D(input=X, filter=W, strides=2, padding='SAME')": "'strides': expected a list of 4, each a "
    "32-bit integer >= 1, given 2",
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_calls(call: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        eval(f"ops.{call}", {"ops": generated(OPS), "X": X, "W": W, "ONE": ONE})
    assert str(caught.value) == f"Conv2D: argument {WRONG[call]}"


def test_a_layout_is_not_taken_for_a_name() -> None:
    """Text that is a layout is one wherever a signature has it: in 1.x the seventh place is that, in 2 the name."""
    ops = generated(OPS)
    x, f = np.ones((1, 3, 4, 5), np.float32), np.ones((2, 2, 3, 1), np.float32)
    assert ops.depthwise_conv2d(x, f, ONE, "SAME", None, None, "NCHW").shape == (1, 3, 4, 5)
    assert ops.depthwise_conv2d(X, f, ONE, "SAME", None, None, "layer").shape == (1, 4, 4, 3)


def test_the_second_names_are_the_same_functions() -> None:
    ops = generated(OPS)
    for end in ("input", "filter"):
        native = f"depthwise_conv2d_native_backprop_{end}"
        other = f"depthwise_conv2d_backprop_{end}"
        assert getattr(ops, other) is getattr(ops, native)
        assert getattr(ops.prepare, other) is getattr(ops.prepare, native)
        assert other in ops.__all__
        assert "TensorFlow 1.15 and 2: " + other in " ".join((inspect.getdoc(getattr(ops, native)) or "").split())
