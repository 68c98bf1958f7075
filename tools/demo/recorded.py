"""The results that were recorded from TensorFlow (`tests/golden`), against the generated ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track

from tests.golden.load import Case, cases, compare
from tools.demo.agreement import Agreement

Array = npt.NDArray[Any]


def agreements(ops: Mapping[str, Callable[..., Any]]) -> list[Agreement]:
    """One row an op and type: how many cases, how many within the tight tolerance of the float64 reference."""
    rows: dict[tuple[str, str], Agreement] = {}
    for case in track(list(cases()), "recorded cases", console=Console(stderr=True), transient=True):
        row = rows.setdefault((case.op, case.dtype), Agreement(case.op, case.dtype, "TensorFlow cases"))
        result = getattr(ops["raw_ops"], case.op.removeprefix("tf.nn."))(**case.tensors, **case.attrs)
        right, _ = compare(case, result)
        row.add(right, worst_error(case, result))
    return list(rows.values())


def worst_error(case: Case, result: Array) -> float:
    """Return the largest error over the allowed one, where the reference is finite; 0 if no value can be compared."""
    found = result.astype(np.float64)
    if case.positions is not None:
        found = found.reshape(-1)[case.positions]
    if found.shape != case.reference.shape:
        return 0.0
    finite = np.isfinite(case.reference) & np.isfinite(found)
    error = np.abs(found[finite] - case.reference[finite])
    limit = case.relative * np.abs(case.reference[finite]) + case.absolute
    return float(np.max(error / np.maximum(limit, np.finfo(np.float64).tiny), initial=0.0))
