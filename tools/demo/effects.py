"""Effects on the photograph: each is one call of a generated op."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tools import reference

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Effect:
    """A call: `op` is "dense" (sums over channels too, perhaps in groups) or "channelwise".

    Stride and dilation are the same along both dimensions.

    `show` turns the result [height, width, channels] into the drawn picture.
    """

    title: str
    op: Literal["dense", "channelwise"]
    weights: npt.NDArray[np.float64]
    stride: int = 1
    dilation: int = 1
    padding: Literal["SAME", "VALID"] = "SAME"
    data_format: Literal["NHWC", "NCHW"] = "NHWC"
    show: Callable[[Array], Array] = field(default=lambda result: result)

    @property
    def terms(self) -> int:
        """Return the number of terms of each sum."""
        sizes = self.weights.shape[: 3 if self.op == "dense" else 2]
        return math.prod(int(n) for n in sizes)

    def images(self, photo: Array) -> Array:
        """Return the photograph [height, width, channels] as a batch of one in this effect's format."""
        batch = photo[np.newaxis]
        return np.ascontiguousarray(batch.transpose(0, 3, 1, 2)) if self.data_format == "NCHW" else batch

    def call(self) -> reference.Call:
        """Return the same call, as the float64 reference takes it."""
        return reference.Call(
            self._spatial(self.stride), self._spatial(self.dilation), self.padding, (), self.data_format
        )

    def _spatial(self, value: int) -> list[int]:
        return [1, value, value, 1] if self.data_format == "NHWC" else [1, 1, value, value]

    def picture(self, result: Array) -> Array:
        """Return the drawn picture: the result's one image, [height, width, channels] in 0..1."""
        image = result[0].transpose(1, 2, 0) if self.data_format == "NCHW" else result[0]
        drawn: Array = np.clip(self.show(image.astype(np.float32)), 0, 1)
        return drawn


def gaussian(size: int) -> npt.NDArray[np.float64]:
    """Return a bell of that width, with sum 1."""
    row = np.exp(-0.5 * (np.linspace(-2, 2, size) ** 2))
    bell: npt.NDArray[np.float64] = np.outer(row, row)
    bell /= bell.sum()
    return bell


SOBEL = np.array([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
EMBOSS = np.array([[-2.0, -1.0, 0.0], [-1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
SHARPEN = np.array([[0.0, -1.0, 0.0], [-1.0, 5.0, -1.0], [0.0, -1.0, 0.0]])
SEPIA = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])


def effects() -> list[Effect]:
    """Return all of them, in the order drawn."""
    each = np.ones((1, 1, 3, 1))
    ring = np.full((3, 3), 1 / 9)
    return [
        Effect("blur: channel by channel, 9x9", "channelwise", gaussian(9)[..., None, None] * each),
        Effect("edges: two filters a channel, their length", "channelwise", _sobel_pair(), show=_length),
        Effect("emboss: dense 3x3 over all channels", "dense", EMBOSS[..., None, None] * np.eye(3), data_format="NCHW"),
        Effect("sepia: dense 1x1, colours mixed", "dense", SEPIA.T[None, None]),
        Effect("a quarter: blur 5x5 with stride 4", "channelwise", gaussian(5)[..., None, None] * each, stride=4),
        Effect("echoes: 3x3 taps, 16 apart", "channelwise", ring[..., None, None] * each, dilation=16),
        Effect("stride 2 and dilation 3 together", "dense", ring[..., None, None] * np.eye(3), stride=2, dilation=3),
        Effect("sharpen: dense, a group for each channel", "dense", SHARPEN[..., None, None] * np.ones((1, 1, 1, 3)),
               padding="VALID"),
    ]  # fmt: skip


def _sobel_pair() -> npt.NDArray[np.float64]:
    """[3, 3, channels, 2]: the slope across and the slope down."""
    pair = np.stack([SOBEL, SOBEL.T], axis=-1)[:, :, None, :]
    return np.repeat(pair, 3, axis=2)


def _length(slopes: Array) -> Array:
    """Return the length of the two slopes of each channel, which are neighbours."""
    pairs = slopes.reshape(*slopes.shape[:2], 3, 2)
    length: Array = np.sqrt((pairs**2).sum(axis=-1)) / 2
    return length
