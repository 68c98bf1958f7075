"""Reference results of the windowed sums of `specs/nn_ops.op`: an independent answer in float64, in numpy alone.

Written from the published meaning of the ops and not from the specs, so that an error in a spec shows.  A call
that has no meaning raises `Refused`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
_Tap: TypeAlias = tuple[tuple[int, int], tuple[slice, slice, slice], slice, slice]


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
    count = (size + before + after - extent) // stride + 1
    if count < 0:  # 0 is TensorFlow's result for a window that sticks out by less than a step
        raise Refused("the window does not fit")
    return Window(stride, dilation, before, count)


@dataclass(frozen=True)
class Call:
    """Images in `data_format`, a filter [height, width, ...]; lists of integers in the order of `data_format`."""

    strides: Sequence[int]
    dilations: Sequence[int]
    padding: str
    paddings: Sequence[int]
    data_format: str

    def nhwc(self, images: Array) -> Array:
        """Images of the data format, with their dimensions in that order."""
        ordered: Array = images.transpose([self.data_format.index(letter) for letter in "NHWC"])
        return ordered

    def windows(self, images: Sequence[int], weights: Sequence[int]) -> tuple[Window, Window]:
        """Return the windows along height and width, for these shapes; refuses lists that reach into the batch or the
        channels.
        """
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
                images[at(letter)],
                weights[axis],
                self.strides[at(letter)],
                self.dilations[at(letter)],
                self.padding,
                pads[at(letter)],
            )
            for axis, letter in enumerate("HW")
        )
        return height, width


@dataclass(frozen=True)
class Sums:
    """A result in float64, and the same sums over the absolute values of the terms (for tolerances)."""

    values: Doubles
    magnitudes: Doubles


def forward(images: Array, weights: Array, call: Call) -> Sums:
    """Sums over windows and the channels of a group; [batch, height, width, outputs] in the data format."""
    geometry = _Geometry.of(images.shape, weights.shape, call)
    return Sums(*(geometry.to_format(geometry.forward(i, w)) for i, w in _with_absolute(call.nhwc(images), weights)))


def input_gradient(shape: Sequence[int], weights: Array, gradient: Array, call: Call) -> Sums:
    """Return the derivative of the sum of `gradient` times the result by each image element of `shape`."""
    geometry = _Geometry.of(shape, weights.shape, call).checked(gradient.shape)
    pairs = _with_absolute(weights, call.nhwc(gradient))
    return Sums(*(geometry.to_format(geometry.input_gradient(w, g)) for w, g in pairs))


def filter_gradient(images: Array, shape: Sequence[int], gradient: Array, call: Call) -> Sums:
    """Return the derivative of the sum of `gradient` times the result by each weight of `shape`."""
    geometry = _Geometry.of(images.shape, shape, call).checked(gradient.shape)
    pairs = _with_absolute(call.nhwc(images), call.nhwc(gradient))
    return Sums(*(geometry.filter_gradient(i, g) for i, g in pairs))


def channelwise(shape: Sequence[int]) -> tuple[int, int, int, int]:
    """Filters for each channel, [height, width, channels, multiplier], as grouped ones: a group for each channel.

    Channel c gives the outputs c * multiplier and on, which are those of group c.
    """
    height, width, channels, multiplier = shape
    return height, width, 1, channels * multiplier


def _with_absolute(a: Array, b: Array) -> Iterator[tuple[Doubles, Doubles]]:
    yield a.astype(np.float64), b.astype(np.float64)
    yield np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64))


@dataclass(frozen=True)
class _Geometry:
    """The sizes of a call.  Images are NHWC here; a canvas is an image with its padding, or as far as windows reach."""

    batch: int
    size: tuple[int, int]
    taps: tuple[int, int]
    groups: int
    depth: int
    outputs: int
    windows: tuple[Window, Window]
    data_format: str

    @staticmethod
    def of(images: Sequence[int], weights: Sequence[int], call: Call) -> _Geometry:
        batch, height, width, channels = (images[call.data_format.index(letter)] for letter in "NHWC")
        tall, wide, depth, outputs = weights
        if depth == 0 or channels % depth or outputs % (channels // depth):
            raise Refused("channels do not make groups")
        windows = call.windows(images, weights)
        groups = channels // depth
        return _Geometry(batch, (height, width), (tall, wide), groups, depth, outputs, windows, call.data_format)

    def checked(self, gradient: Sequence[int]) -> _Geometry:
        """Refuses a gradient that is not in the shape of the result."""
        if tuple(gradient) != self.output_shape:
            raise Refused("the gradient has the shape of the result")
        return self

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Return the result's shape in the data format."""
        sizes = {"N": self.batch, "H": self.windows[0].count, "W": self.windows[1].count, "C": self.outputs}
        return tuple(sizes[letter] for letter in self.data_format)

    def to_format(self, nhwc: Doubles) -> Doubles:
        ordered: Doubles = nhwc.transpose(["NHWC".index(letter) for letter in self.data_format])
        return ordered

    def forward(self, images: Doubles, weights: Doubles) -> Doubles:
        canvas = self._canvas(images)
        result = np.zeros((self.batch, self.windows[0].count, self.windows[1].count, self.outputs))
        for tap, seen, channels, outputs in self._taps():
            result[..., outputs] += np.einsum("nyxc,ck->nyxk", canvas[seen][..., channels], weights[tap][:, outputs])
        return result

    def input_gradient(self, weights: Doubles, gradient: Doubles) -> Doubles:
        canvas = self._canvas(np.zeros((self.batch, *self.size, self.groups * self.depth)))
        for tap, seen, channels, outputs in self._taps():
            canvas[seen][..., channels] += np.einsum("nyxk,ck->nyxc", gradient[..., outputs], weights[tap][:, outputs])
        return canvas[self._inside()]

    def filter_gradient(self, images: Doubles, gradient: Doubles) -> Doubles:
        canvas = self._canvas(images)
        result = np.zeros((*self.taps, self.depth, self.outputs))
        for tap, seen, channels, outputs in self._taps():
            product = np.einsum("nyxc,nyxk->ck", canvas[seen][..., channels], gradient[..., outputs])
            result[tap][:, outputs] += product
        return result

    def _taps(self) -> Iterator[_Tap]:
        """Yield each tap and group: the tap, its windows' part of the canvas, the group's channels and outputs."""
        each = self.outputs // self.groups
        for r, s, g in itertools.product(range(self.taps[0]), range(self.taps[1]), range(self.groups)):
            seen = (slice(None), _steps(self.windows[0], r), _steps(self.windows[1], s))
            yield (r, s), seen, slice(g * self.depth, (g + 1) * self.depth), slice(g * each, (g + 1) * each)

    def _inside(self) -> tuple[slice, slice, slice]:
        """Return the place of the images on the canvas."""
        rows, columns = (slice(w.before, w.before + n) for w, n in zip(self.windows, self.size, strict=True))
        return slice(None), rows, columns

    def _canvas(self, images: Doubles) -> Doubles:
        reach = (_reach(w, t, n) for w, t, n in zip(self.windows, self.taps, self.size, strict=True))
        canvas = np.zeros((self.batch, *reach, images.shape[3]))
        canvas[self._inside()] = images
        return canvas


def _reach(w: Window, taps: int, size: int) -> int:
    """Return the end of the last window, or that of the image if it is further."""
    return max(w.before + size, (w.count - 1) * w.stride + (taps - 1) * w.dilation + 1)


def _steps(w: Window, tap: int) -> slice:
    begin = tap * w.dilation
    return slice(begin, begin + (w.count - 1) * w.stride + 1 if w.count else begin, w.stride)
