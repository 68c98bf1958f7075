"""What is made of a sum before it is stored does not change how the sum is scheduled, nor what comes of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from opgen.machine import Machine, typical
from opgen.machine.model import Cache
from tests.harness import Call
from tests.support.convolutions import assert_scheduled_is_the_same
from tests.support.epilogues import AFAR, SMALL, WIDE, call, conv, made, rows, slope

ROWS = replace(WIDE, l1=Cache(48 << 10, 12, 64, 220e9), l2=Cache(288 << 10, 8, 64, 118e9), l3=AFAR.l3)


def depthwise(
    image: tuple[int, ...], taps: int = 3, dtype: str = "float32", order: str = "NHWC", stride: int = 1
) -> Call:
    return call("Depthwise", dtype, order, stride, input=image, filter=(taps, taps, image[3]))


KINDS: Mapping[str, tuple[Call, Machine, str]] = {
    "tiles of a map": (conv((1, 8, 14, 16), 32, 3), WIDE, "vectorize k_l"),
    "products": (conv((1, 12, 12, 64), 128), WIDE, "fill filter_panel in=c"),
    "few results": (conv((1, 6, 20, 16), 3, 3), WIDE, "vectorize x_l"),
    "tiles of a matrix unit": (
        conv((1, 6, 16, 64), 64, dtype="bfloat16"),
        replace(WIDE, tiles=True),
        "tensorize",
    ),
    "pairs": (conv((1, 6, 8, 16), 32, dtype="bfloat16"), replace(WIDE, pairs=True), "pair c"),
    "outer products": (slope((1, 12, 12, 48), 64), WIDE, "vectorize k_l"),
    "outer products in blocks": (slope((1, 12, 28, 128), 128), WIDE, "carry"),
    "windows": (depthwise((1, 8, 14, 32)), WIDE, "vectorize c_l"),
    "windows along rows": (depthwise((1, 9, 20, 8), order="NCHW"), WIDE, "vectorize x_l"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_scheduled_as_without(kind: str) -> None:
    plain, machine, step = KINDS[kind]
    text = assert_scheduled_is_the_same(plain, 0, machine)
    assert step in text
    assert assert_scheduled_is_the_same(made(plain), 1, machine) == text


@pytest.mark.parametrize("machine", [WIDE, SMALL, AFAR, ROWS, replace(SMALL, tiles=True), typical(32)])
@pytest.mark.parametrize("seed", range(8))
def test_any_size(seed: int, machine: Machine) -> None:
    rng = random.Random(seed)
    dtype = rng.choice(["float32", "float32", "float64", "bfloat16", "float16"])
    image = (rng.choice([1, 2]), rng.randint(3, 12), rng.choice([5, 8, 14, 19]), rng.choice([3, 16, 20, 64]))
    outputs, order = rng.choice([3, 16, 40, 64, 128]), rng.choice(["NHWC", "NCHW"])
    taps, stride = rng.choice([1, 3]), rng.choice([1, 2])
    calls = [
        conv(image, outputs, taps, dtype, order, stride),
        depthwise(image, taps, dtype, order, stride),
        slope(image, outputs, dtype),
        rows(image, outputs, dtype),
    ]
    for plain in calls:
        assert_scheduled_is_the_same(made(plain), seed, machine)
