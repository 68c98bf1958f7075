"""Layers that are in no table, made from a seed: anyone can measure them again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import cycle, islice

from tools.bench.layers import Layer

PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 53)
FEW_OR_ODD = (3, 5, 7, 12, 19, 21, 33, 51, 65, 89, 97, 131)
"""Channels that fill no whole number of vectors."""
OFTEN = (8, 16, 24, 40, 64)
"""Channels, or filters, that do."""


def odd_layers(count: int, seed: int) -> list[Layer]:
    """Return `count` layers, six sorts of them in turn; for any count, those of a seed begin alike."""
    rng = random.Random(seed)
    return [_named(number, sort(rng)) for number, sort in enumerate(islice(_sorts(), count))]


def _sorts() -> Iterator[Callable[[random.Random], Layer]]:
    return cycle((_prime, _thin, _grouped, _multiplied, _large_window, _large_stride))


def _named(number: int, layer: Layer) -> Layer:
    """Return a name that shows the sizes: image, channels, filters (m: for each channel), window, stride, groups."""
    outputs = f"m{layer['channel_multiplier']}" if layer["kind"] == "depthwise" else str(layer["out_channels"])
    image, window = (f"{layer['in_height']}x{layer['in_width']}", f"{layer['filter_height']}x{layer['filter_width']}")
    groups = f"g{layer['groups']}" if "groups" in layer else ""
    layer["name"] = f"odd{number}_{image}_{layer['in_channels']}_{outputs}_{window}s{layer['stride']}{groups}"
    return layer


def _sized(rng: random.Random, height: int, width: int, taps: tuple[int, int], stride: int) -> Layer:
    """Return a layer whose image is large enough for a window of these taps."""
    return {
        "in_height": max(height, taps[0]),
        "in_width": max(width, taps[1]),
        "filter_height": taps[0],
        "filter_width": taps[1],
        "stride": stride,
        "padding": rng.choice(("SAME", "VALID")),
    }


def _dense(sized: Layer, channels: int, outputs: int) -> Layer:
    return {**sized, "kind": "dense", "in_channels": channels, "out_channels": outputs}


def _depthwise(sized: Layer, channels: int, multiplier: int) -> Layer:
    return {**sized, "kind": "depthwise", "in_channels": channels, "channel_multiplier": multiplier}


def _prime(rng: random.Random) -> Layer:
    """All sizes odd or prime."""
    taps = rng.choice(((1, 1), (3, 3), (3, 1), (5, 3), (5, 5)))
    sized = _sized(rng, rng.choice(PRIMES), rng.choice(PRIMES), taps, rng.choice((1, 1, 2, 3)))
    return _dense(sized, rng.choice(FEW_OR_ODD), rng.choice(FEW_OR_ODD))


def _thin(rng: random.Random) -> Layer:
    """A long window of one row or one column."""
    taps = rng.choice((7, 9, 11, 13, 15))
    sized = _sized(rng, rng.randrange(16, 96), rng.randrange(16, 64), rng.choice(((1, taps), (taps, 1))), 1)
    return _dense(sized, rng.choice(OFTEN), rng.choice((*OFTEN, *FEW_OR_ODD)))


def _grouped(rng: random.Random) -> Layer:
    """Groups of few channels, as many filters a group or twice as many."""
    group, groups, taps = rng.choice((2, 3, 4, 6, 8, 12)), rng.choice((4, 8, 13, 16)), rng.choice((1, 3, 3, 5))
    sized = _sized(rng, rng.choice((14, 27, 28, 35)), rng.choice((14, 28, 33)), (taps, taps), rng.choice((1, 1, 2)))
    return {**_dense(sized, group * groups, group * groups * rng.choice((1, 1, 2))), "groups": groups}


def _multiplied(rng: random.Random) -> Layer:
    """Several filters for each channel."""
    taps = rng.choice((3, 3, 5, 7))
    sized = _sized(rng, rng.choice(PRIMES), rng.choice(PRIMES), (taps, taps), rng.choice((1, 1, 2)))
    return _depthwise(sized, rng.choice((*OFTEN, *FEW_OR_ODD)), rng.choice((2, 2, 3, 4)))


def _large_window(rng: random.Random) -> Layer:
    """A window of hundreds of taps, for each channel by itself or over few of them."""
    taps, sides = rng.choice((13, 17, 21, 31)), (rng.randrange(32, 64), rng.randrange(32, 64))
    if rng.random() < 0.7:
        return _depthwise(_sized(rng, *sides, (taps, taps), 1), rng.choice((16, 32, 33, 64)), 1)
    return _dense(_sized(rng, *sides, (11, 11), 1), rng.choice((1, 3, 4, 8)), rng.choice((8, 16, 19, 32)))


def _large_stride(rng: random.Random) -> Layer:
    """A stride of three and more, by windows that meet, overlap or leave places out."""
    stride = rng.choice((3, 4, 5, 8))
    taps = max(1, stride + rng.choice((0, 0, 1, 3, -2)))
    sized = _sized(rng, rng.randrange(32, 96), rng.randrange(32, 96), (taps, taps), stride)
    return _dense(sized, rng.choice((3, *OFTEN, *FEW_OR_ODD)), rng.choice((*OFTEN, 96, *FEW_OR_ODD)))
