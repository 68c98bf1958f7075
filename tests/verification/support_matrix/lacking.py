"""References in numpy for calls that ONNX's evaluator does not take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from tests.verification.support_matrix.cells import Cell
from tests.verification.support_matrix.nodes import Array, model_of

Inputs = Mapping[str, Array]
Lacking = Callable[[Cell, Inputs], "Sequence[Array] | None"]
"""The results of a cell, None where there are none either."""


def _flattened(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    x, axis = inputs["i0"], int(cell.attributes.get("axis", 1))
    if not -x.ndim <= axis <= x.ndim:
        return None
    axis = axis + x.ndim if axis < 0 else axis
    return [x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))]


def _mean(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    arrays = np.broadcast_arrays(*(a.astype(np.float64) for a in inputs.values()))
    return [np.asarray(sum(arrays) / len(arrays))]


def _scalar_itself(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Nothing is put around a scalar, and the logarithm of the one exponential is it."""
    return [inputs["i0"]] if not inputs["i0"].ndim else None


def _drawn(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Of chance, shape and type count."""
    x, kind = inputs["i0"], cell.attributes.get("dtype")
    dtype = x.dtype if kind is None else onnx.helper.tensor_dtype_to_np_dtype(_type_number(kind))
    if cell.operator != "Multinomial":
        return [np.zeros(x.shape, dtype)]
    dtype = np.dtype(np.int32) if kind is None else dtype
    return [np.zeros((x.shape[0], int(cell.attributes.get("sample_size", 1))), dtype)]


def _type_number(kind: object) -> int:
    named = {"half": "FLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}
    return kind if isinstance(kind, int) else onnx.TensorProto.DataType.Value(named.get(str(kind), str(kind).upper()))


def _nearest(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Images enlarged by the nearest element before each place; one without elements, however that is."""
    x = inputs["i0"]
    given = {g.name: g.value for g in cell.inputs if g is not None and g.value is not None}
    sizes = given.get("sizes")
    if sizes and 0 in sizes and cell.attributes.get("keep_aspect_ratio_policy", "stretch") == "stretch":
        return [np.zeros([int(n) for n in sizes], x.dtype)]
    if cell.operator == "Resize" and cell.opset > 10:
        return None  # where the places lie is an attribute
    scales = given.get("scales", cell.attributes.get("scales"))
    if scales is None or len(scales) != x.ndim or cell.attributes.get("mode", "nearest") != "nearest" or sizes:
        return None
    for axis, scale in enumerate(scales):
        count = int(np.floor(x.shape[axis] * scale))
        places = np.minimum(np.floor(np.arange(count) / scale).astype(int), max(0, x.shape[axis] - 1))
        x = np.take(x, places, axis=axis)
    return [x]


def _largest_of_regions(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    x, rois = inputs["i0"].astype(np.float64), inputs["i1"].astype(np.float64)
    bins, scale = cell.attributes["pooled_shape"], float(cell.attributes.get("spatial_scale", 1.0))
    found = np.zeros((len(rois), x.shape[1], *bins))
    for n, (image, *corners) in enumerate(rois):
        x1, y1, x2, y2 = np.floor(np.asarray(corners) * scale + 0.5)
        if not 0 <= image < len(x):
            return None
        extents = max(y2 - y1 + 1, 1) / bins[0], max(x2 - x1 + 1, 1) / bins[1]
        for at in np.ndindex(*bins):
            ends = (
                (first + np.floor(k * extent), first + np.ceil((k + 1) * extent))
                for first, k, extent in zip((y1, x1), at, extents, strict=True)
            )
            rows, columns = (
                slice(*(int(e) for e in np.clip(end, 0, size))) for end, size in zip(ends, x.shape[2:], strict=True)
            )
            part = x[int(image), :, rows, columns]
            if part.size:
                found[n, :, at[0], at[1]] = part.max(axis=(1, 2))
    return [found]


def _evaluated(cell: Cell, inputs: Inputs) -> Sequence[Array]:
    """What ONNX's evaluator gives for another cell."""
    return [np.asarray(a) for a in ReferenceEvaluator(model_of(cell, inputs)).run(None, dict(inputs))]


def _cast_like(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """As a cast to the type of the second input."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(inputs["i1"].dtype)
    cast = replace(cell, operator="Cast", inputs=cell.inputs[:1], attributes={**cell.attributes, "to": kind})
    return _evaluated(cast, {"i0": inputs["i0"]})


def _without_norm(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    return _evaluated(replace(cell, attributes={"norm_coefficient": 0.0, **cell.attributes}), inputs)


LACKING: dict[str, Lacking] = {
    "CastLike": _cast_like,
    "ai.onnx.preview.training.Momentum": _without_norm,
    "Flatten": _flattened,
    "Mean": _mean,
    "Pad": _scalar_itself,
    "ReduceLogSumExp": _scalar_itself,
    "RandomUniformLike": _drawn,
    "RandomNormalLike": _drawn,
    "Bernoulli": _drawn,
    "Multinomial": _drawn,
    "Resize": _nearest,
    "Upsample": _nearest,
    "MaxRoiPool": _largest_of_regions,
}
