"""PyTorch as a contestant, with its images in either memory format.

Work that depends on the filter only (its order in memory) is done before the clock starts.  So is padding where SAME
differs between the sides, which PyTorch's convolution cannot do itself: both are in PyTorch's favour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tools.bench.workers.protocol import Call, Given, Library, RefusalError, grouped, same_padding

FORMATS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}


class PyTorch(Library):
    name = "PyTorch"
    version = str(torch.__version__)
    variants = tuple(FORMATS)

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        if case["data_format"] == "NCHW" and variant == "channels_last":
            raise RefusalError("the images lie with their channels first")
        layout, dtype = FORMATS[variant], DTYPES[case["dtype"]]
        before, padding = padded(case)

        def images(x: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(x).permute(0, 3, 1, 2).to(dtype).contiguous(memory_format=layout)

        weights, groups = grouped(case, given.filter)
        kernel = torch.from_numpy(weights).permute(3, 2, 0, 1).to(dtype).contiguous(memory_format=layout)
        named = {"stride": [case["stride"]] * 2, "padding": list(padding), "groups": groups}
        if case["direction"] == "forward":
            x = F.pad(images(given.images), before).contiguous(memory_format=layout)
            return Call(inference(lambda: F.conv2d(x, kernel, **named)), lambda y: nhwc(y, case))
        shape = images(given.images) if case["direction"] == "filter" else torch.empty(images_shape(case), dtype=dtype)
        x = F.pad(shape, before).contiguous(memory_format=layout)
        return self._gradient(case, images(given.gradient), x, kernel, named)

    def _gradient(
        self, case: dict[str, Any], g: torch.Tensor, x: torch.Tensor, kernel: torch.Tensor, named: dict[str, Any]
    ) -> Call:
        by_input = case["direction"] == "input"
        common = (None, named["stride"], named["padding"], [1, 1], False, [0, 0], named["groups"])
        backward, mask = torch.ops.aten.convolution_backward, [by_input, not by_input, False]
        run = inference(lambda: backward(g, x, kernel, *common, mask)[0 if by_input else 1])
        return Call(run, (lambda y: nhwc(crop(y, case), case)) if by_input else (lambda y: hwio(y, case)))


def inference(work: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    def run() -> torch.Tensor:
        with torch.inference_mode():
            return work()

    return run


def padded(case: dict[str, Any]) -> tuple[list[int], tuple[int, int]]:
    """Return the padding of images in advance (as `F.pad` takes it), and the padding left to the convolution."""
    (top, bottom), (left, right) = same_padding(case)
    return ([0, 0, 0, 0], (top, left)) if (top, left) == (bottom, right) else ([left, right, top, bottom], (0, 0))


def images_shape(case: dict[str, Any]) -> list[int]:
    batch, height, width, channels = case["input_shape"]
    return [batch, channels, height, width]


def crop(images: torch.Tensor, case: dict[str, Any]) -> torch.Tensor:
    """Return the images without the padding added in advance."""
    left, _, top, _ = padded(case)[0]
    return images[:, :, top : top + case["in_height"], left : left + case["in_width"]]


def nhwc(images: torch.Tensor, case: dict[str, Any]) -> np.ndarray:
    return np.ascontiguousarray(plain(images, case).permute(0, 2, 3, 1).numpy())


def hwio(kernel: torch.Tensor, case: dict[str, Any]) -> np.ndarray:
    taps: np.ndarray = plain(kernel, case).permute(2, 3, 1, 0).numpy()
    shape: tuple[int, ...] = tuple(case["filter_shape"])
    return np.ascontiguousarray(taps).reshape(shape)


def plain(tensor: torch.Tensor, case: dict[str, Any]) -> torch.Tensor:
    return tensor if case["dtype"] == "float64" else tensor.float()


def library(threads: int) -> Library:
    return PyTorch(threads)
