"""References in numpy, for operators that ONNX's evaluator computes otherwise than their definition says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from tests.verification.support_matrix.cells import Cell
from tests.verification.support_matrix.nodes import Array

Inputs = Mapping[str, Array]
EACH = (slice(None), slice(None))
"""All images and channels."""
Own = Callable[[Cell, Inputs], "Sequence[Array] | None"]
"""The results of a cell in float64, None where ONNX's evaluator is right."""


def _rows(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Before version 13 a row of softmax is all that lies at an axis and behind."""
    if cell.opset >= 13:
        return None
    x = inputs["i0"].astype(np.float64)
    axis = int(cell.attributes.get("axis", 1))
    if not -x.ndim <= axis < x.ndim:
        raise ValueError("an axis outside")
    rows = x.reshape(int(np.prod(x.shape[: axis % x.ndim])), -1)
    if not rows.size:
        return [x]
    if cell.operator == "Hardmax":
        found = (np.arange(rows.shape[1]) == rows.argmax(axis=1)[:, None]).astype(np.float64)
    else:
        found = rows - rows.max(axis=1, keepdims=True)
        found -= np.log(np.exp(found).sum(axis=1, keepdims=True))
        found = np.exp(found) if cell.operator == "Softmax" else found
    return [found.reshape(x.shape)]


def _by_statistics(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Before version 14 a node of one result normalises by the statistics that it is given."""
    if cell.opset >= 14 or cell.outputs != 1:
        return None
    x, scale, bias, mean, var = (inputs[f"i{at}"].astype(np.float64) for at in range(5))
    if x.ndim < 2 or any(a.shape != x.shape[1:2] for a in (scale, bias, mean, var)):
        raise ValueError("statistics of other channels")
    scale, bias, mean, var = (a.reshape(-1, *[1] * (x.ndim - 2)) for a in (scale, bias, mean, var))
    epsilon = float(cell.attributes.get("epsilon", 1e-5))
    return [(x - mean) / np.sqrt(var + epsilon) * scale + bias]


def _recurrent(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Recurrent networks with activations as they are by default, of any direction, layout and lengths."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[cell.operator]
    given = [inputs[f"i{at}"].astype(np.float64) if f"i{at}" in inputs else None for at in range(8)]
    x, w, r, bias, lengths, state, memory, peepholes = given
    if x is None or w is None or r is None:
        raise ValueError("no weights")
    first = bool(cell.attributes.get("layout_", False))
    if first:
        x = x.swapaxes(0, 1)
        state, memory = (None if a is None else a.swapaxes(0, 1) for a in (state, memory))
    steps, batch, _ = x.shape
    ways, hidden = r.shape[0], r.shape[2]
    direction = cell.attributes.get("direction") or "forward"
    if ways != (2 if direction == "bidirectional" else 1) or w.shape[1] != gates * hidden:
        raise ValueError("weights of other gates")
    counts = np.full(batch, steps) if lengths is None else lengths.astype(np.int64)
    if counts.shape != (batch,) or (counts < 0).any() or (counts > steps).any():
        raise ValueError("lengths outside")
    y = np.zeros((steps, ways, batch, hidden))
    last = np.zeros((2, ways, batch, hidden))
    for way in range(ways):
        for b in range(batch):
            h = np.zeros(hidden) if state is None else state[way, b]
            c = np.zeros(hidden) if memory is None else memory[way, b]
            wb, rb = (np.zeros(gates * hidden),) * 2 if bias is None else np.split(bias[way], 2)
            p = np.zeros(3 * hidden) if peepholes is None else peepholes[way]
            order = range(counts[b])
            for t in reversed(order) if direction == "reverse" or way == 1 else order:
                h, c = _step(cell, w[way] @ x[t, b] + wb, r[way], rb, h, c, p)
                y[t, way, b] = h
            last[0, way, b], last[1, way, b] = h, c
    results = [y.transpose(2, 0, 1, 3) if first else y, *(a.swapaxes(0, 1) if first else a for a in last)]
    return results[: cell.outputs]


def _step(cell: Cell, from_x: Array, r: Array, rb: Array, h: Array, c: Array, p: Array) -> tuple[Array, Array]:
    """The state and the cell after a step; gates are in the order of ONNX."""
    bound = float(cell.attributes.get("clip", np.inf))

    def clipped(a: Array) -> Array:
        return np.clip(a, -bound, bound)

    def sigmoid(a: Array) -> Array:
        return np.asarray(1 / (1 + np.exp(-clipped(a))))

    if cell.operator == "RNN":
        return np.tanh(clipped(from_x + r @ h + rb)), c
    if cell.operator == "GRU":
        (xz, xr, xh), (rz, rr, rh), (bz, br, bh) = np.split(from_x, 3), np.split(r, 3), np.split(rb, 3)
        z, reset = sigmoid(xz + rz @ h + bz), sigmoid(xr + rr @ h + br)
        after = cell.attributes.get("linear_before_reset", False)
        fresh = np.tanh(clipped(xh + (reset * (rh @ h + bh) if after else rh @ (reset * h) + bh)))
        return (1 - z) * fresh + z * h, c
    i, o, f, g = np.split(from_x + r @ h + rb, 4)
    pi, po, pf = np.split(p, 3)
    entry = sigmoid(i + pi * c)
    kept = 1 - entry if cell.attributes.get("input_forget", False) else sigmoid(f + pf * c)
    c = kept * c + entry * np.tanh(clipped(g))
    return sigmoid(o + po * c) * np.tanh(c), c


def _one_hot(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Indices are cast to integers first."""
    indices, depth, values = inputs["i0"].astype(np.int64), _known(cell, 1), inputs["i2"]
    axis = int(cell.attributes.get("axis", -1))
    if not indices.ndim or values.shape != (2,) or not -indices.ndim - 1 <= axis <= indices.ndim:
        raise ValueError("no axis for vectors")
    places = np.expand_dims(np.where(indices < 0, indices + depth, indices), axis)
    line = np.arange(depth).reshape([-1 if d == axis % places.ndim else 1 for d in range(places.ndim)])
    return [np.where(places == line, values[1], values[0])]


def _known(cell: Cell, at: int) -> int:
    """The number that an input is."""
    given = cell.inputs[at]
    if given is None or not given.value:
        raise ValueError("no number")
    return int(given.value[0])


def _global_max(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    x = inputs["i0"]
    if x.ndim < 2:
        raise ValueError("no channels")
    return [x.max(axis=tuple(range(2, x.ndim)), keepdims=True, initial=-np.inf).astype(np.float64)]


def _norm(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    x = inputs["i0"].astype(np.float64)
    p = int(cell.attributes.get("p", 2))
    sums = (np.abs(x) ** p).sum(axis=int(cell.attributes.get("axis", -1)), keepdims=True)
    return [np.divide(x, sums ** (1 / p), out=np.zeros_like(x), where=sums != 0)]


def _pooled(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Windows over any number of dimensions; of the largest elements, also where the first one is."""
    x = inputs["i0"]
    if x.ndim < 3:
        return None
    x = x.astype(np.float64) if x.dtype.kind not in "iu" else x.astype(object)
    space, attrs = x.ndim - 2, cell.attributes
    taps, strides, dilations = (attrs.get(n) or [1] * space for n in ("kernel_shape", "strides", "dilations"))
    pads = attrs.get("pads") or [0] * 2 * space
    each = zip(x.shape[2:], taps, strides, dilations, pads[:space], pads[space:], strict=True)
    whole = [_windows(cell, *along) for along in each]
    counts, heads, tails = zip(*whole, strict=True)
    if min(counts) < 0:
        raise ValueError("a window larger than the image")
    found, where = np.zeros((*x.shape[:2], *counts)), np.zeros((*x.shape[:2], *counts), np.int64)
    order: Literal["C", "F"] = "F" if attrs.get("storage_order") else "C"
    images = np.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2]) * int(np.prod(x.shape[2:]))
    for at in np.ndindex(*counts):
        inside: list[Array] = []
        flat: list[int] = []
        padded = 0
        for tap in np.ndindex(*taps):
            place = [a * s + r * d - h for a, s, r, d, h in zip(at, strides, tap, dilations, heads, strict=True)]
            if all(0 <= p < n for p, n in zip(place, x.shape[2:], strict=True)):
                inside.append(x[EACH + tuple(place)])
                flat.append(int(np.ravel_multi_index(place, x.shape[2:], order=order)))
            padded += all(p < n + t for p, n, t in zip(place, x.shape[2:], tails, strict=True))
        found[EACH + at] = _value(cell, inside, padded, x.shape[:2])
        if cell.outputs > 1:
            where[EACH + at] = images + np.array(flat)[np.stack(inside).argmax(axis=0)]
    return [found, where][: cell.outputs]


def _value(cell: Cell, inside: Sequence[Array], padded: int, shape: tuple[int, ...]) -> Array:
    """The result of a window with these elements, and so many places in the padded image."""
    if not inside:
        raise ValueError("a window in the padding alone")
    values = np.stack(inside)
    if cell.operator == "MaxPool":
        return np.asarray(values.max(axis=0).astype(np.float64))
    if cell.operator == "LpPool":
        p = int(cell.attributes.get("p", 2))
        return np.asarray((np.abs(values) ** p).sum(axis=0) ** (1 / p))
    return np.asarray(values.sum(axis=0) / (padded if cell.attributes.get("count_include_pad") else len(inside)))


def _windows(
    cell: Cell, size: int, taps: int, stride: int, dilation: int, before: int, after: int
) -> tuple[int, int, int]:
    """How many windows there are along a dimension, and how many places are padded before and behind."""
    extent = (taps - 1) * dilation + 1
    pad = cell.attributes.get("auto_pad") or "NOTSET"
    if pad.startswith("SAME"):
        count = -(-size // stride)
        total = max(0, (count - 1) * stride + extent - size)
        head = total // 2 if pad == "SAME_UPPER" else total - total // 2
        return count, head, total - head
    if pad == "VALID":
        before = after = 0
    places = size + before + after - extent
    count = places // stride + 1
    if cell.attributes.get("ceil_mode") and places % stride and count * stride < size + before:
        count += 1
    return count, before, after


def _integer_product(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Vectors of zero points are one for each row of the first matrix, and each column of the second."""
    a, b = inputs["i0"].astype(np.int64), inputs["i1"].astype(np.int64)
    zeros = [inputs[n].astype(np.int64) if n in inputs else np.zeros((), np.int64) for n in ("i2", "i3")]
    if zeros[0].ndim == 1 and zeros[0].size > 1:
        zeros[0] = zeros[0][:, None]
    return [np.matmul(a - zeros[0], b - zeros[1]).astype(np.int32)]


def _local_response(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Of any rank: channels are the second dimension.  The evaluator takes as many channels as there are images."""
    x, attrs = inputs["i0"].astype(np.float64), cell.attributes
    size, channels = int(attrs["size"]), x.shape[1]
    total = np.zeros_like(x)
    for c in range(channels):
        window = x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1]
        total[:, c] = (window**2).sum(axis=1)
    bias, alpha, beta = (float(attrs.get(n, d)) for n, d in (("bias", 1.0), ("alpha", 1e-4), ("beta", 0.75)))
    return [x / (bias + alpha / size * total) ** beta]


def _quantised_product(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """With factors of float8, which the evaluator takes for integers: the exact sum over the scale, held within the
    type and rounded once.
    """
    types, to = [inputs[f"i{at}"].dtype.name for at in (0, 3)], inputs["i7"].dtype
    if not any(t.startswith("float8") for t in (*types, to.name)):
        return None
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = (inputs[f"i{at}"].astype(np.float64) for at in range(8))
    a_scale, a_zero = (v[:, None] if v.ndim == 1 and v.size > 1 else v for v in (a_scale, a_zero))
    exact = np.matmul((a - a_zero) * a_scale, (b - b_zero) * b_scale) / scale
    if to.kind in "iu":
        limits = np.iinfo(to)
        return [np.clip(np.rint(exact) + zero, limits.min, limits.max)]
    numbers = np.arange(256, dtype=np.uint8).view(to).astype(np.float64)
    most = numbers[np.isfinite(numbers)].max()
    return [np.clip(exact + zero, -most, most).astype(to)]


def _spread(cell: Cell, inputs: Inputs) -> Sequence[Array] | None:
    """Each element times the taps, added up; of that the part that pads, or a size that is asked for, leave.  ONNX's
    evaluator takes other sizes where there are groups, and splits otherwise what a size leaves out.
    """
    x, w, attrs = inputs["i0"].astype(np.float64), inputs["i1"].astype(np.float64), cell.attributes
    space, groups = x.ndim - 2, int(attrs.get("group", 1))
    strides, dilations = (attrs.get(n) or [1] * space for n in ("strides", "dilations"))
    more, auto = attrs.get("output_padding") or [0] * space, attrs.get("auto_pad") or "NOTSET"
    if (attrs.get("kernel_shape") or list(w.shape[2:])) != list(w.shape[2:]):
        raise ValueError("a window of another shape")
    steps = list(zip(x.shape[2:], strides, dilations, strict=True))
    whole = [s * (n - 1) + o + (k - 1) * d + 1
             for (n, s, d), o, k in zip(steps, more, w.shape[2:], strict=True)]  # fmt: skip
    full = np.zeros((x.shape[0], groups * w.shape[1], *whole))
    channels = x.shape[1] // groups
    parts = x.reshape(x.shape[0], groups, channels, *x.shape[2:])
    for tap in np.ndindex(*w.shape[2:]):
        taps = w[EACH + tap].reshape(groups, channels, w.shape[1])
        at = tuple(slice(d * k, d * k + s * (n - 1) + 1, s) for (n, s, d), k in zip(steps, tap, strict=True))
        full[EACH + at] += np.einsum("ngc...,gcm->ngm...", parts, taps).reshape(full[EACH + at].shape)
    same = [n * s for n, s, _ in steps] if auto.startswith("SAME") else None
    asked = attrs.get("output_shape") or same
    pads = attrs.get("pads") if auto == "NOTSET" and not asked else None
    heads, tails = (pads[:space], pads[space:]) if pads else ([0] * space, [0] * space)
    for axis, n in enumerate(whole):
        count, head = n - heads[axis] - tails[axis], heads[axis]
        if asked:
            count = asked[axis]
            head = (n - count) // 2 if auto == "SAME_UPPER" else n - count - (n - count) // 2
        if count < 0:
            raise ValueError("pads leave less than nothing")
        places = np.arange(count) + head
        inside = ((places >= 0) & (places < n)).reshape([-1 if d == axis + 2 else 1 for d in range(x.ndim)])
        full = np.where(inside, np.take(full, np.clip(places, 0, n - 1), axis + 2), 0)
    bias = inputs["i2"].astype(np.float64) if "i2" in inputs else np.zeros(full.shape[1])
    return [full + bias.reshape(-1, *[1] * space)]


OWN: dict[str, Own] = {
    "ConvTranspose": _spread,
    "QLinearMatMul": _quantised_product,
    "LRN": _local_response,
    "Hardmax": _rows,
    "Softmax": _rows,
    "LogSoftmax": _rows,
    "BatchNormalization": _by_statistics,
    "MatMulInteger": _integer_product,
    "OneHot": _one_hot,
    "GlobalMaxPool": _global_max,
    "LpNormalization": _norm,
    "MaxPool": _pooled,
    "AveragePool": _pooled,
    "LpPool": _pooled,
    "RNN": _recurrent,
    "GRU": _recurrent,
    "LSTM": _recurrent,
}
