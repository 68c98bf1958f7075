"""One-node folding, each rule by an example."""

from __future__ import annotations

import pytest

from opgen.dtypes import FLOAT32, INT8, INT32, UINT8
from opgen.loop.nodes import INDEX, Type
from opgen.loop.parse import parse_expr
from opgen.loop.print import print_expr
from opgen.passes.fold import fold_all

VARIABLES = {"x": INDEX, "y": INDEX, "i": Type(INT32), "f": Type(FLOAT32), "s": Type(INT8), "u": Type(UINT8)}

FOLDED = {
    "2 + 3*4": "14",
    "1 + x + 2": "x + 3",
    "x + 1 - 4": "x - 3",
    "(x + 1)*3": "x * 3 + 3",
    "x*2*3": "x * 6",
    "5 - x + 1": "6 - x",
    "0 - (0 - x)": "x",
    "x + y*-1": "x - y",
    "x - x": "0",
    "7 // -2": "-4",
    "7 % -2": "-1",
    "x // 1": "x",
    "x % 1": "0",
    "(x*4 + 3 - y*2) % 2": "1",
    "(x*2 - 1) % 4": "(x*2 - 1) % 4",
    "(x*3 + 1) % 3": "(x*3 + 1) % 3",
    "2147483647i32 + 1i32": "-2147483648i32",
    "100i8 + 100i8": "-56i8",
    "200u8 + 100u8": "44u8",
    "u - 1u8": "u + 255u8",
    "u*255u8 + u": "u*255u8 + u",
    "s + -128i8": "s + -128i8",
    "s - -128i8": "s + -128i8",
    "s + s*-128i8": "s + s*-128i8",
    "uint8(300)": "44u8",
    "int8(200u8)": "-56i8",
    "0u8 - (0u8 - u)": "u",
    "3u8 // 2u8": "1u8",
    "255u8 > 1u8": "true",
    "ramp(250u8, 1u8, 8) > 3u8x8": "ramp(250u8, 1u8, 8) > 3u8x8",
    "ramp(200u8, 1u8, 8) > 3u8x8": "true_x8",
    "min(3, 5)": "3",
    "max(x, x)": "x",
    "x < x": "false",
    "3 < x": "x > 3",
    "not x < y": "x >= y",
    "x < y and true": "x < y",
    "x < y or true": "true",
    "f*1.0f32": "f",
    "f + 0.0f32": "f + 0.0f32",
    "f - 0.0f32": "f",
    "0.1f32 + 0.2f32": "0.30000001192092896f32",
    "f*0.0f32": "f * 0.0f32",
    "select(true, x, y)": "x",
    "int32(4294967297)": "1i32",
    "float32(3)": "3.0f32",
    "ramp(x, 0, 4)": "broadcast(x, 4)",
    "ramp(1, 2, 8) < 14i64x8": "ramp(0, 1, 8) < 7i64x8",
    "ramp(2, 3, 4) <= 8i64x4": "ramp(0, 1, 4) < 3i64x4",
    "ramp(-1, 1, 4) >= 0i64x4": "ramp(0, 1, 4) >= 1i64x4",
    "ramp(0, 5, 4) > 9i64x4": "ramp(0, 1, 4) >= 2i64x4",
    "ramp(0, 2, 8) < 16i64x8": "true_x8",
    "ramp(3, 1, 4) > 6i64x4": "false_x4",
    "ramp(2147483644i32, 1i32, 8) < 0i32x8": "ramp(2147483644i32, 1i32, 8) < 0i32x8",
    "ramp(0, -1, 4) < 2i64x4": "ramp(0, -1, 4) < 2i64x4",
}


@pytest.mark.parametrize("text", FOLDED)
def test_fold(text: str) -> None:
    folded = fold_all(parse_expr(text, VARIABLES))
    wanted = parse_expr(FOLDED[text], VARIABLES)
    assert print_expr(folded) == print_expr(wanted)
    assert fold_all(folded) is folded
