"""What the windowed sums of `specs/nn_ops.op` should give: an independent answer in float64, in numpy alone.

Written from the published meaning of the ops and not from the specs, so that an error in a spec shows.  A call
that has no meaning raises `Refused`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]


class Refused(Exception):
    """The call must be refused."""


@dataclass(frozen=True)
class Window:
    """A window along one dimension: places before and after it are padding."""

    stride: int
    dilation: int
    before: int
    count: int


def window(size: int, taps: int, stride: int, dilation: int, padding: str, pads: tuple[int, int]) -> Window:
    """SAME: ceil(size / stride) windows, the odd place of padding last; VALID: none; EXPLICIT: as given."""
    extent = (taps - 1) * dilation + 1
    if padding == "SAME":
        count = (size + stride - 1) // stride
        total = max(0, (count - 1) * stride + extent - size)
        return Window(stride, dilation, total // 2, count)
    before, after = pads if padding == "EXPLICIT" else (0, 0)
    if size + before + after < extent:
        raise Refused("the window does not fit")
    return Window(stride, dilation, before, max(0, (size + before + after - extent) // stride + 1))


@dataclass(frozen=True)
class Call:
    """Images in `data_format`, a filter [height, width, ...]; lists of integers in the order of `data_format`."""

    strides: Sequence[int]
    dilations: Sequence[int]
    padding: str
    paddings: Sequence[int]
    data_format: str

    def windows(self, images: Array, weights: Array) -> tuple[Window, Window]:
        """Those along height and width; refuses lists that reach into the batch or the channels."""
        at = self.data_format.index
        if any(values[at(letter)] != 1 for values in (self.strides, self.dilations) for letter in "NC"):
            raise Refused("strides and dilations of the batch and the channels are 1")
        if (self.padding == "EXPLICIT") != bool(self.paddings):
            raise Refused("paddings belong to EXPLICIT")
        pads = [(self.paddings[2 * i], self.paddings[2 * i + 1]) if self.paddings else (0, 0) for i in range(4)]
        if pads[at("N")] != (0, 0) or pads[at("C")] != (0, 0):
            raise Refused("the batch and the channels are not padded")
        height, width = (
            window(
                images.shape[at(letter)],
                weights.shape[axis],
                self.strides[at(letter)],
                self.dilations[at(letter)],
                self.padding,
                pads[at(letter)],
            )
            for axis, letter in enumerate("HW")
        )
        return height, width


def dense(images: Array, weights: Array, call: Call) -> tuple[Doubles, Doubles]:
    """Sums over windows and the channels of a group, and the same sums of absolute values (for tolerances)."""
    nhwc, taps, windows = _prepare(images, weights, call)
    depth, outputs = taps.shape[2:]
    if depth == 0 or nhwc.shape[3] % depth or outputs % (nhwc.shape[3] // depth):
        raise Refused("channels do not make groups")
    groups = nhwc.shape[3] // depth
    sums = []
    for g in range(groups):
        mine = nhwc[..., g * depth : (g + 1) * depth]
        its = taps[..., g * (outputs // groups) : (g + 1) * (outputs // groups)]
        sums.append(_sum(mine, its, windows, "nyxc,ck->nyxk"))
    return _join(sums, call)


def channelwise(images: Array, weights: Array, call: Call) -> tuple[Doubles, Doubles]:
    """Sums over windows, channel by channel; output c * multiplier + q.  As `dense`, with the absolute sums."""
    nhwc, taps, windows = _prepare(images, weights, call)
    if taps.shape[2] != nhwc.shape[3]:
        raise Refused("a filter for each channel")
    values, magnitudes = _sum(nhwc, taps, windows, "nyxc,cq->nyxcq")
    shape = (*values.shape[:3], -1)
    return _join([(values.reshape(shape), magnitudes.reshape(shape))], call)


def _prepare(images: Array, weights: Array, call: Call) -> tuple[Doubles, Doubles, tuple[Window, Window]]:
    windows = call.windows(images, weights)
    order = [call.data_format.index(letter) for letter in "NHWC"]
    return images.astype(np.float64).transpose(order), weights.astype(np.float64), windows


def _sum(nhwc: Doubles, taps: Doubles, windows: tuple[Window, Window], product: str) -> tuple[Doubles, Doubles]:
    """One tap after the other: the images shifted by it, times its weights."""
    rows, columns = windows
    batch, in_height, in_width, _ = nhwc.shape
    tall, wide = taps.shape[:2]
    canvas = np.zeros((batch, _reach(rows, tall, in_height), _reach(columns, wide, in_width), nhwc.shape[3]))
    canvas[:, rows.before : rows.before + in_height, columns.before : columns.before + in_width] = nhwc
    empty = np.zeros((batch, rows.count, columns.count, nhwc.shape[3]))
    total = np.einsum(product, empty, np.zeros(taps.shape[2:]))
    magnitude = total.copy()
    for r in range(tall):
        for s in range(wide):
            seen = canvas[:, _steps(rows, r), _steps(columns, s)]
            total += np.einsum(product, seen, taps[r, s])
            magnitude += np.einsum(product, np.abs(seen), np.abs(taps[r, s]))
    return total, magnitude


def _reach(w: Window, taps: int, size: int) -> int:
    """How far the last window goes, or the input if that is further."""
    return max(w.before + size, (w.count - 1) * w.stride + (taps - 1) * w.dilation + 1)


def _steps(w: Window, tap: int) -> slice:
    begin = tap * w.dilation
    return slice(begin, begin + (w.count - 1) * w.stride + 1 if w.count else begin, w.stride)


def _join(sums: Sequence[tuple[Doubles, Doubles]], call: Call) -> tuple[Doubles, Doubles]:
    order = ["NHWC".index(letter) for letter in call.data_format]
    values = np.concatenate([s[0] for s in sums], axis=3).transpose(order)
    return values, np.concatenate([s[1] for s in sums], axis=3).transpose(order)
