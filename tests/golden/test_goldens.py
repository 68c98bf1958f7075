"""The recorded TensorFlow cases, through the generated module, within the tight tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from tests.bindings.modules import OPS, generated
from tests.golden.load import Case, cases, compare

CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=[f"{c.id}-{c.op.split('.')[-1]}-{c.dtype}-{c.category}" for c in CASES])
def test_golden(case: Case) -> None:
    ops = generated(OPS)
    name = case.op.removeprefix("tf.nn.")
    result = getattr(ops.raw_ops, name)(**case.tensors, **case.attrs)
    ok, why = compare(case, result)
    assert ok, f"{case.id} {case.op} {case.attrs}: {why}"


def test_all_kinds_are_recorded() -> None:
    """What the cases cover, so that a lost file is noticed."""
    assert len(CASES) == 88
    assert {c.dtype for c in CASES} == {"float16", "bfloat16", "float32", "float64", "int32"}
    for op in ("Conv2D", "DepthwiseConv2dNative", "tf.nn.depthwise_conv2d"):
        mine = [c for c in CASES if c.op == op]
        assert {c.attrs["data_format"] for c in mine} == {"NHWC", "NCHW"}
        paddings = {"EXPLICIT" if isinstance(c.attrs["padding"], list) else c.attrs["padding"] for c in mine}
        assert paddings == {"SAME", "VALID", "EXPLICIT"}


def test_the_comparison_can_fail() -> None:
    case = next(c for c in CASES if c.dtype == "float32" and c.reference.size > 4 and c.positions is None)
    right = case.reference.astype(np.float32).reshape(case.result_shape)
    assert compare(case, right) == (True, compare(case, right)[1])
    wrong = right.copy()
    wrong.flat[wrong.size // 2] += np.float32(100 * case.absolute + 1e-3)
    assert not compare(case, wrong)[0]
    assert not compare(case, right.astype(np.float64))[0]
    assert not compare(case, right[..., :1])[0]
    nan = right.copy()
    nan.flat[0] = np.nan
    assert not compare(case, nan)[0]
