"""Classifiers and a segmenter of pictures, in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d


def join(
    inputs: int, outputs: int, size: int = 1, stride: int = 1, groups: int = 1, act: type | None = nn.ReLU
) -> nn.Module:
    """Return a convolution that keeps the size except for its stride, batch statistics, and an activation."""
    layers = [
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        *([act()] if act else []),
    ]
    return nn.Sequential(*layers)


class Around(nn.Module):
    """The sum of a block and its shortcut, and an activation."""

    def __init__(self, block: nn.Module, way: nn.Module | None = None, then: nn.Module | None = None) -> None:
        super().__init__()
        self.block, self.way, self.then = block, way or nn.Identity(), then or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.then(self.block(x) + self.way(x))
        return result


def head(width: int, classes: int = 1000) -> list[nn.Module]:
    """Return the mean over the picture, and a class for it."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(width, classes)]


def resnet50() -> nn.Module:
    """ResNet-50, with the stride in the 3x3 layer."""

    def blocks() -> Iterator[nn.Module]:
        inputs = 64
        for level, depth in enumerate((3, 4, 6, 3)):
            inner, outer = 64 << level, 256 << level
            for number in range(depth):
                stride = 2 if level and not number else 1
                block = [join(inputs, inner), join(inner, inner, 3, stride), join(inner, outer, act=None)]
                way = None if number else join(inputs, outer, 1, stride, act=None)
                yield Around(nn.Sequential(*block), way, nn.ReLU())
                inputs = outer

    return nn.Sequential(join(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), *blocks(), *head(2048))


class Squeeze(nn.Module):
    """Channels scaled by factors computed from the whole picture."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), nn.SiLU(), nn.Conv2d(inner, width, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x * self.layers(x)
        return result


def _mobile(inputs: int, outputs: int, grow: int, size: int, stride: int, act: type, squeeze: bool) -> nn.Module:
    inner = inputs * grow
    block = [join(inputs, inner, act=act)] if grow > 1 else []
    block += [join(inner, inner, size, stride, groups=inner, act=act)]
    block += [Squeeze(inner, max(1, inputs // 4))] if squeeze else []
    layers = nn.Sequential(*block, join(inner, outputs, act=None))
    return Around(layers) if stride == 1 and inputs == outputs else layers


Row = tuple[int, int, int, int, int]
"""The growth of the width, the size, the stride of the first, the width, and the number of repeats."""

MOBILE: tuple[Row, ...] = (
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 3, 2, 32, 3), (6, 3, 2, 64, 4), (6, 3, 1, 96, 3), (6, 3, 2, 160, 3),
    (6, 3, 1, 320, 1),
)  # fmt: skip
EFFICIENT: tuple[Row, ...] = (
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)  # fmt: skip


def _of_rows(rows: tuple[Row, ...], act: type, squeeze: bool) -> nn.Module:
    def blocks(inputs: int) -> Iterator[nn.Module]:
        for grow, size, first, outputs, count in rows:
            for number in range(count):
                yield _mobile(inputs, outputs, grow, size, 1 if number else first, act, squeeze)
                inputs = outputs

    return nn.Sequential(join(3, 32, 3, 2, act=act), *blocks(32), join(320, 1280, act=act), *head(1280))


def mobilenet_v2() -> nn.Module:
    """MobileNetV2."""
    return _of_rows(MOBILE, nn.ReLU6, squeeze=False)


def efficientnet_b0() -> nn.Module:
    """EfficientNet-B0."""
    return _of_rows(EFFICIENT, nn.SiLU, squeeze=True)


class Turned(nn.Module):
    """Layers that have the channels last, between ones that have them first."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layers(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return result


class Scale(nn.Module):
    """A number for each channel, the last dimension."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def convnext_tiny() -> nn.Module:
    """ConvNeXt-T."""

    def norm(width: int) -> nn.Module:
        return nn.LayerNorm(width, eps=1e-6)

    def block(width: int) -> nn.Module:
        layers = [norm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), Scale(width)]
        return Around(nn.Sequential(nn.Conv2d(width, width, 7, padding=3, groups=width), Turned(*layers)))

    widths = (96, 192, 384, 768)
    layers: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), Turned(norm(96))]
    for level, (width, depth) in enumerate(zip(widths, (3, 3, 9, 3), strict=True)):
        if level:
            layers += [Turned(norm(widths[level - 1])), nn.Conv2d(widths[level - 1], width, 2, 2)]
        layers += [block(width) for _ in range(depth)]
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), norm(768), nn.Linear(768, 1000)]
    return nn.Sequential(*layers, *pooled)


class UNet(nn.Module):
    """Four levels down and up, each of two convolutions, with the way across joined to the way up."""

    def __init__(self, width: int = 64, levels: int = 4, classes: int = 2) -> None:
        super().__init__()
        sizes = [width << level for level in range(levels + 1)]
        self.down = nn.ModuleList(_twice(a, b) for a, b in zip([3, *sizes], sizes, strict=False))
        self.widen = nn.ModuleList(nn.ConvTranspose2d(2 * n, n, 2, stride=2) for n in reversed(sizes[:-1]))
        self.up = nn.ModuleList(_twice(2 * n, n) for n in reversed(sizes[:-1]))
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        across: list[Tensor] = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else max_pool2d(x, 2))
            across.append(x)
        across.pop()
        for widen, block in zip(self.widen, self.up, strict=True):
            x = block(torch.cat([across.pop(), widen(x)], 1))
        result: Tensor = self.last(x)
        return result


def _twice(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(join(inputs, outputs, 3), join(outputs, outputs, 3))
