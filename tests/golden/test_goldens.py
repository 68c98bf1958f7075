"""The recorded TensorFlow cases, through the generated module, within the tight tolerance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from tests.bindings.modules import OPS, generated
from tests.golden.load import Case, cases, compare

CASES = list(cases())
WAYS = ("BackpropInput", "BackpropFilter")
SHAPE_ONLY = {"Conv2DBackpropInputV2": "input", "Conv2DBackpropFilterV2": "filter"}


def policies() -> Iterator[str]:
    """In turn for each op and type: a kernel of the call's own sizes, or the one for all sizes."""
    turns: Counter[tuple[str, str]] = Counter()
    for case in CASES:
        turns[case.op, case.dtype] += 1
        yield ("never", "always")[turns[case.op, case.dtype] % 2]


NUMBERED = [
    pytest.param(c, policy, id=f"{c.id}-{c.op.split('.')[-1]}-{c.dtype}-{c.category}")
    for c, policy in zip(CASES, policies(), strict=True)
]


@pytest.mark.parametrize(("case", "policy"), NUMBERED)
def test_golden(case: Case, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
    ops = generated(OPS)
    name = case.op.removeprefix("tf.nn.")
    result = getattr(ops.raw_ops, name)(**case.tensors, **case.attrs)
    ok, why = compare(case, result)
    assert ok, f"{case.id} {case.op} {case.attrs}: {why}"


@pytest.mark.parametrize("case", [c for c in CASES if c.op in SHAPE_ONLY], ids=lambda c: c.id)
def test_values_of_a_tensor_of_which_only_the_shape_counts(case: Case) -> None:
    raw_ops = generated(OPS).raw_ops
    name = SHAPE_ONLY[case.op]
    right = getattr(raw_ops, case.op)(**case.tensors, **case.attrs)
    poisoned = case.tensors | {name: np.full_like(case.tensors[name], np.nan)}
    assert getattr(raw_ops, case.op)(**poisoned, **case.attrs).tobytes() == right.tobytes()
    unmade = case.tensors | {name: np.broadcast_to(case.tensors[name].reshape(-1)[:1], case.tensors[name].shape)}
    assert getattr(raw_ops, case.op)(**unmade, **case.attrs).tobytes() == right.tobytes()


def test_both_forms_of_sizes() -> None:
    """The height and width alone give the same as the whole shape, where the input is not grouped."""
    op = generated(OPS).raw_ops.Conv2DBackpropInput
    tried = 0
    for case in (c for c in CASES if c.op == "Conv2DBackpropInput"):
        whole = case.tensors["input_sizes"]
        layout = case.attrs["data_format"]
        if len(whole) != 4 or whole[layout.index("C")] != case.tensors["filter"].shape[2]:
            continue
        short = whole[[layout.index("H"), layout.index("W")]]
        found = op(**{**case.tensors, "input_sizes": short}, **case.attrs)
        assert compare(case, found)[0], case.id
        tried += 1
    assert tried > 20


def test_all_kinds_are_recorded() -> None:
    """What the cases cover, so that a lost file is noticed."""
    assert len(CASES) == 256
    assert {c.dtype for c in CASES} == {"float16", "bfloat16", "float32", "float64", "int32"}
    kinds = [f"{op}{way}" for op in ("Conv2D", "DepthwiseConv2dNative") for way in ("", *WAYS)]
    for op in (*kinds, "tf.nn.depthwise_conv2d"):
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
