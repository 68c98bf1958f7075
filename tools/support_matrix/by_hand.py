"""References in numpy, for operators that ONNX's evaluator computes otherwise than their definition says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tools.support_matrix.cells import Cell
from tools.support_matrix.nodes import Array

Inputs = Mapping[str, Array]
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


OWN: dict[str, Own] = {
    "Hardmax": _rows,
    "Softmax": _rows,
    "LogSoftmax": _rows,
    "BatchNormalization": _by_statistics,
    "RNN": _recurrent,
    "GRU": _recurrent,
    "LSTM": _recurrent,
}
