"""PyTorch as a contestant, with its images in either memory format.

What depends on the filter only (its order in memory) is done before the clock starts.  So is padding where SAME is not
the same on both sides, which PyTorch's convolution cannot do itself: both are in PyTorch's favour.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tools.bench.workers.protocol import Library, Run, serve

FORMATS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}


class PyTorch(Library):
    name = "PyTorch"
    version = str(torch.__version__)
    variants = tuple(FORMATS)

    def prepare(self, variant: str, case: dict[str, Any], data: np.ndarray, weights: np.ndarray, threads: int) -> Run:
        torch.set_num_threads(threads)
        memory_format = FORMATS[variant]
        groups = 1
        if case["kind"] == "depthwise":
            groups = case["in_channels"]
            weights = weights.reshape(*weights.shape[:2], 1, case["out_channels"])
        images = torch.from_numpy(data).permute(0, 3, 1, 2)
        images, padding = _pad(images, case)
        images = images.contiguous(memory_format=memory_format)
        kernel = torch.from_numpy(weights).permute(3, 2, 0, 1).contiguous(memory_format=memory_format)
        stride = case["stride"]

        def run() -> torch.Tensor:
            with torch.inference_mode():
                return F.conv2d(images, kernel, stride=stride, padding=padding, groups=groups)

        return run

    def to_numpy(self, result: Any) -> np.ndarray:
        return np.ascontiguousarray(result.permute(0, 2, 3, 1).numpy())


def _pad(images: torch.Tensor, case: dict[str, Any]) -> tuple[torch.Tensor, tuple[int, int]]:
    """The images, and the padding left for the convolution to do: all of it if both sides have the same."""
    if case["padding"] == "VALID":
        return images, (0, 0)
    top, bottom = _same(case["in_height"], case["filter_height"], case["stride"])
    left, right = _same(case["in_width"], case["filter_width"], case["stride"])
    if (top, left) == (bottom, right):
        return images, (top, left)
    return F.pad(images, (left, right, top, bottom)), (0, 0)


def _same(size: int, taps: int, stride: int) -> tuple[int, int]:
    total = max(0, (-(-size // stride) - 1) * stride + taps - size)
    return total // 2, total - total // 2


if __name__ == "__main__":
    serve(PyTorch())
