"""Calls of ops whose results go through an epilogue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opgen.machine import typical
from opgen.machine.model import Cache
from opgen.spec import load
from tests.harness import Call

OPS = load(Path(__file__).parents[1] / "specs" / "epilogues.op")
WIDE = typical(64)
SMALL = replace(WIDE, l1=replace(WIDE.l1, size=8 << 10), l2=replace(WIDE.l2, size=64 << 10))
AFAR = replace(WIDE, l2=Cache(16 << 10, 8, 64, 118e9), l3=Cache(32 << 20, 16, 64, 20e9), cores=2)


def call(op: str, dtype: str = "float32", order: str = "NHWC", stride: int = 1, **shapes: tuple[int, ...]) -> Call:
    """One of the ops: images are given with channels last."""
    windows = op.startswith(("Conv", "Depthwise"))

    def turned(shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(shape["NHWC".index(letter)] for letter in order)

    given = {n: turned(s) if windows and len(s) == 4 and n != "filter" else s for n, s in shapes.items()}
    strides = [stride if letter in "HW" else 1 for letter in order]
    attrs = {"strides": strides, "padding": "SAME", "data_format": order} if windows else {}
    return Call(OPS, OPS.op(op), given, attrs, dtype=dtype)


def made(plain: Call) -> Call:
    """The same sums, and what is made of them."""
    shapes = dict(plain.shapes)
    match plain.op.name:
        case "Conv":
            result = tuple(plain.environment.output_shapes["output"])
            shapes |= {"bias": (shapes["filter"][3],), "residue": result}
        case "Depthwise":
            shapes["bias"] = (shapes["filter"][2],)
        case "Slope":
            shapes["weights"] = (shapes["x"][3], shapes["dy"][3])
        case "EachRow":
            shapes["bias"] = (shapes["table"][0],)
    return Call(OPS, OPS.op(f"{plain.op.name}Made"), shapes, plain.attrs, dtype=plain.dtype)


def conv(
    image: tuple[int, ...], outputs: int, taps: int = 1, dtype: str = "float32", order: str = "NHWC", stride: int = 1
) -> Call:
    return call("Conv", dtype, order, stride, input=image, filter=(taps, taps, image[3], outputs))


def slope(image: tuple[int, ...], outputs: int, dtype: str = "float32") -> Call:
    return call("Slope", dtype, x=image, dy=(*image[:3], outputs))


def rows(image: tuple[int, ...], outputs: int, dtype: str = "float32") -> Call:
    return call("EachRow", dtype, x=image, table=(outputs, image[3]))
