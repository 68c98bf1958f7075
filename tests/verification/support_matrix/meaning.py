"""What the standard says of calls beyond its declarations: which have no meaning, and which are taken all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opgen.dtypes import DTYPES
from tests.verification.support_matrix.cells import Cell
from tests.verification.support_matrix.nodes import Array

Arrays = Mapping[str, Array]
Rule = Callable[[Cell, Arrays], bool]


def _attr(cell: Cell, name: str, default: Any) -> Any:
    value = cell.attributes.get(name, default)
    return default if value in ([], None) else value


def _shape(cell: Cell, at: int) -> tuple[int, ...]:
    given = cell.inputs[at] if at < len(cell.inputs) else None
    return () if given is None else given.shape


def _dtype(cell: Cell, at: int) -> str:
    given = cell.inputs[at] if at < len(cell.inputs) else None
    return "" if given is None else given.dtype


def _axis_outside(cell: Cell, default: int) -> bool:
    axis, rank = int(_attr(cell, "axis", default)), len(_shape(cell, 0))
    return not -rank <= axis < rank


def _stretches(cell: Cell, arrays: Arrays) -> bool:
    """Whether scale and bias of a normalisation do not stretch to the input alone."""
    shape = _shape(cell, 0)
    for at in range(1, len(cell.inputs)):
        if cell.inputs[at] is not None:
            try:
                if np.broadcast_shapes(shape, _shape(cell, at)) != shape:
                    return True
            except ValueError:
                return True
    return False


def _updates_fit(cell: Cell) -> bool:
    data, indices, updates = (_shape(cell, at) for at in range(3))
    depth = indices[-1] if indices else 0
    return bool(indices) and depth <= len(data) and updates == (*indices[:-1], *data[depth:])


def _lengths_fit(cell: Cell, arrays: Arrays) -> bool:
    time, batch = int(_attr(cell, "time_axis", 0)), int(_attr(cell, "batch_axis", 1))
    shape, lengths = _shape(cell, 0), arrays["i1"]
    fits = {time, batch} == {0, 1} and len(shape) >= 2 and lengths.shape == (shape[batch],)
    return fits and bool(((lengths >= 0) & (lengths <= shape[time])).all())


def _padding(cell: Cell, arrays: Arrays) -> bool:
    """Whether a window may lie in the padding alone."""
    pads = _attr(cell, "pads", [0])
    dilated = any(d > 1 for d in _attr(cell, "dilations", [1])) and bool(cell.attributes.get("ceil_mode"))
    return len(_shape(cell, 0)) > 2 and (max(pads) >= min(_attr(cell, "kernel_shape", [1])) or dilated)


def _layers(cell: Cell, arrays: Arrays) -> bool:
    x, r = _shape(cell, 0), _shape(cell, 2)
    hidden = int(_attr(cell, "hidden_size", r[-1] if r else 0))
    return len(x) != 3 or len(r) != 3 or hidden != r[-1] or float(_attr(cell, "clip", 1.0)) <= 0


WITHOUT_MEANING: dict[str, tuple[Rule, str]] = {
    "ReverseSequence": (lambda c, a: not _lengths_fit(c, a), "time and batch are 0 and 1; lengths are sizes at most"),
    "LayerNormalization": (lambda c, a: _axis_outside(c, -1) or _stretches(c, a), "scales stretch to the input"),
    "RMSNormalization": (lambda c, a: _axis_outside(c, -1) or _stretches(c, a), "scales stretch to the input"),
    "ScatterND": (lambda c, _: not _updates_fit(c), "updates have the shape that indices and data tell"),
    "STFT": (
        lambda c, a: int(a["i1"].reshape(-1)[0]) < 1 or len(_shape(c, 0)) != 3,
        "signals have three dimensions, and frames are at least 1 apart",
    ),
    "MelWeightMatrix": (
        lambda _, a: int(a["i2"].reshape(-1)[0]) < 1 or a["i3"].reshape(-1)[0] >= a["i4"].reshape(-1)[0],
        "there is a sample in a second, and the lower edge is below the upper",
    ),
    "TopK": (lambda c, a: "i1" in a and int(a["i1"].reshape(-1)[0]) < 1, "K is positive"),
    "Dropout": (lambda _, a: "i2" in a and a["i2"].size != 1, "training_mode is one"),
    "GridSample": (
        lambda c, _: not DTYPES[_dtype(c, 0)].is_float and c.attributes.get("mode", "linear") != "nearest",
        "only numbers are interpolated",
    ),
    "RNN": (_layers, "hidden_size is that of R, and a clip positive"),
    "GRU": (_layers, "hidden_size is that of R, and a clip positive"),
    "LSTM": (_layers, "hidden_size is that of R, and a clip positive"),
    "MaxPool": (_padding, "a window has an element of the image"),
    "AveragePool": (_padding, "a window has an element of the image"),
    "LpPool": (_padding, "a window has an element of the image"),
    "BatchNormalization": (
        lambda c, _: c.opset >= 14 and c.outputs > 1 and not c.attributes.get("training_mode"),
        "there are statistics of training alone",
    ),
    "Resize": (lambda c, _: _no_size(c), "scales are of sizes above 0; how integers between others round is not said"),
    "Upsample": (
        lambda c, a: any(s <= 0 for s in (*_attr(c, "scales", ()), *a.get("i1", np.ones(1)).reshape(-1))),
        "scales are above 0",
    ),
    "TensorScatter": (
        lambda c, a: c.attributes.get("mode") != "circular" and not _written_inside(c, a),
        "what is written fits behind its place",
    ),
    "RoiAlign": (
        lambda c, a: bool(((a["i2"] < 0) | (a["i2"] >= _shape(c, 0)[0])).any()),
        "the images of regions are there",
    ),
    "InstanceNormalization": (lambda c, _: len(_shape(c, 0)) < 2, "there are batch and channels"),
    "Gather": (lambda c, a: _axis_outside(c, 0) or _places_outside(c, a), "places are those of the axis"),
    "GatherElements": (lambda c, a: _axis_outside(c, 0) or _places_outside(c, a), "places are those of the axis"),
    "Slice": (lambda c, _: _repeats(c), "each axis is sliced once"),
    "LpNormalization": (lambda c, _: _axis_outside(c, -1), "the axis is one of the tensor"),
    "GlobalAveragePool": (lambda c, _: len(_shape(c, 0)) < 2, "there are batch and channels"),
    "GlobalMaxPool": (lambda c, _: len(_shape(c, 0)) < 2, "there are batch and channels"),
    "MaxUnpool": (lambda _, a: bool((a["i1"] < 0).any()), "places count from 0"),
    "MatMulInteger": (
        lambda c, _: any(len(_shape(c, at + 2)) == 1 and len(_shape(c, at)) != 2 for at in (0, 1)),
        "vectors of zero points are those of matrices",
    ),
    "Squeeze": (
        lambda c, _: any(
            not -len(_shape(c, 0)) <= a < len(_shape(c, 0))
            for a in (*_attr(c, "axes", ()), *((c.inputs[1].value or ()) if len(c.inputs) > 1 and c.inputs[1] else ()))
        ),
        "axes are those of the tensor",
    ),
    "Pow": (
        lambda c, a: not DTYPES[_dtype(c, 0)].is_float and bool((a["i1"].astype(np.float64) < 0).any()),
        "powers of integers are integers",
    ),
    "Cast": (lambda c, a: _beyond(a["i0"], str(c.attributes.get("to"))), "the type has no such number"),
    "CastLike": (lambda c, a: _beyond(a["i0"], _dtype(c, 1)), "the type has no such number"),
    "HannWindow": (lambda _, a: int(a["i0"].reshape(-1)[0]) < 2, "a window has two places"),
    "HammingWindow": (lambda _, a: int(a["i0"].reshape(-1)[0]) < 2, "a window has two places"),
    "BlackmanWindow": (lambda _, a: int(a["i0"].reshape(-1)[0]) < 2, "a window has two places"),
    "ScatterElements": (
        lambda c, _: (
            _axis_outside(c, 0) or (_dtype(c, 0) == "bool" and c.attributes.get("reduction", "none") != "none")
        ),
        "the axis is one of the tensor; bools are not added, multiplied or compared",
    ),
    "Pad": (lambda c, a: _pads_differ(c, a), "there are two numbers for each axis"),
    "ConvInteger": (lambda c, _: len(_shape(c, 2)) > 0, "x_zero_point is a scalar"),
    "CumSum": (lambda c, a: not _has_axis(c, a), "the axis is one of the tensor"),
    "CumProd": (lambda c, a: not _has_axis(c, a), "the axis is one of the tensor"),
    "DynamicQuantizeLinear": (lambda _, a: not a["i0"].any(), "a scale is that of an element that is not 0"),
    "DequantizeLinear": (
        lambda c, a: _dtype(c, 0).startswith("float") and "i2" in a and bool(a["i2"].astype(np.float64).any()),
        "the zero point of floats is 0",
    ),
    "QuantizeLinear": (lambda _, a: bool((a["i1"].astype(np.float64) <= 0).any()), "scales are above 0"),
    "QLinearMatMul": (lambda c, a: _scales(a, (1, 4, 6)), "scales are above 0"),
    "QLinearConv": (lambda c, a: _scales(a, (1, 4, 6)), "scales are above 0"),
}
"""By operator: calls for which this holds have no meaning, for the reason; implementations may do as they like."""


def _places_outside(cell: Cell, arrays: Arrays) -> bool:
    """Whether an index is not one of the axis along which it counts."""
    size = _shape(cell, 0)[int(_attr(cell, "axis", 0))]
    return bool(((arrays["i1"] < -size) | (arrays["i1"] >= size)).any())


def _pads_differ(cell: Cell, arrays: Arrays) -> bool:
    """Whether pads are not two for each axis that is padded."""
    axes = len(arrays["i3"]) if "i3" in arrays else len(_shape(cell, 0))
    pads = arrays["i1"].size if "i1" in arrays else len(_attr(cell, "pads", ()))
    return pads != 2 * axes


def _has_axis(cell: Cell, arrays: Arrays) -> bool:
    """Whether the second input is one of the tensor's axes."""
    rank = len(_shape(cell, 0))
    return arrays["i1"].size == 1 and -rank <= int(arrays["i1"].reshape(-1)[0]) < rank


def _no_size(cell: Cell) -> bool:
    """Whether an image has nothing of which a scale could be told, or nothing that could lie between its elements."""
    told = 0 not in _shape(cell, 0) or cell.attributes.get("keep_aspect_ratio_policy", "stretch") == "stretch"
    between = not DTYPES[_dtype(cell, 0)].is_float and (cell.attributes.get("mode") or "nearest") != "nearest"
    return not told or between


def _written_inside(cell: Cell, arrays: Arrays) -> bool:
    axis = int(_attr(cell, "axis", -2))
    most = _shape(cell, 0)[axis] - _shape(cell, 1)[axis]
    return "i2" not in arrays or bool(((arrays["i2"] >= 0) & (arrays["i2"] <= most)).all())


def _repeats(cell: Cell) -> bool:
    """Whether an axis is given twice, as an attribute or the fourth input."""
    given = cell.inputs[3] if len(cell.inputs) > 3 else None
    rank, axes = len(_shape(cell, 0)), _attr(cell, "axes", given.value if given and given.value else ())
    return len({a % max(rank, 1) for a in axes}) < len(axes)


def _beyond(array: Array, dtype: str) -> bool:
    """Whether a number is negative, and the type has no such; nor has one of powers of two 0."""
    to = DTYPES[dtype]
    if dtype == "float8_e8m0fnu":
        return bool((array.astype(np.float64) <= 0).any())
    unsigned = not to.signed or (to.small is not None and not to.small.signed)
    return unsigned and to.kind != "bool" and bool((array.astype(np.float64) < 0).any())


def _scales(arrays: Arrays, places: tuple[int, ...]) -> bool:
    return any((arrays[f"i{at}"].astype(np.float64) <= 0).any() for at in places if f"i{at}" in arrays)


TAKEN = {
    "pads attribute cannot be used simultaneously with auto_pad": "pads are left out, as ONNX Runtime has it",
    "Neither 'split' input nor 'num_outputs' attribute": "the parts are as many as the results, as before version 18",
    "This number of op outputs should be": "results of training are there if they are asked for",
    "has unsupported type tensor(double)": "it is a type more",
    "Required attribute 'norm_coefficient'": "it is 0 if it is absent, as of the other optimisers",
    "training_mode of Dropout must be a scalar": "a list of one is its element",
    "must not be specified for 4D inputs": "1 head is what there is without",
    "3D inputs expected to have kv_num_heads": "1 head is what there is without",
    "nonpad_kv_seqlen cannot be combined with past or present": "the present keys are those that are given",
    "Providing `scales` is incompatible with a": "of scales there is nothing to keep",
}
"""What is taken though inference refuses it, and what it means."""

CHANCE = (
    "RandomUniform",
    "RandomUniformLike",
    "RandomNormal",
    "RandomNormalLike",
    "Bernoulli",
    "Multinomial",
    "Dropout",
)
"""Operators whose results are told by shape and type alone."""

IN_FLOAT32 = ("LinearAttention", "Adagrad", "Adam", "Momentum", "Erf",
              "Gelu", "HardSwish", "GroupNormalization", "LayerNormalization", "BatchNormalization",
              "InstanceNormalization", "Attention", "Celu", "Mish", "RMSNormalization",
              "HardSigmoid", "LRN")  # fmt: skip
"""Operators that the reference evaluator, or their definition, computes in float32 in parts, as defaults are."""


LEFT_OUT: dict[str, str] = {
    "QuantizeLinear": "quotients in int32 or float8_e8m0fnu, which scales of these types would ask for",
}
"""What the standard allows and opgen refuses, by operator, with the reason; it is told by a typed error."""


def meaningless(cell: Cell, arrays: Arrays) -> str:
    """Why a cell has no meaning, or nothing."""
    rule, reason = WITHOUT_MEANING.get(cell.operator, (None, ""))
    try:
        return reason if rule is not None and rule(cell, arrays) else ""
    except (IndexError, KeyError):
        return reason
