"""The recorded TensorFlow cases (`data/README.md` says how they were made), as arrays that the generated ops take.

for case in cases():
    ok, why = compare(case, op(**case.tensors, **case.attrs))
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

DATA = Path(__file__).parent / "data"
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One recorded call; `tensors` has its vector of sizes too.

    `reference` is the float64 (int32) result, at the flat positions `positions` only if those are given; `care` marks
    where the class of a NaN or infinity counts.
    """

    id: str
    op: str
    dtype: str
    category: str
    attrs: dict[str, Any]
    tensors: dict[str, Array]
    result_shape: tuple[int, ...]
    reference: Array
    positions: Array | None
    care: Array | None
    relative: float
    absolute: float


def cases(folder: Path = DATA) -> Iterator[Case]:
    """Every case, in the order recorded; the tolerances are the tight ones."""
    opened: dict[str, Any] = {}
    for record in json.loads((folder / "cases.json").read_text())["cases"]:
        file = record["op"].replace("tf.nn.", "nn_")
        if file not in opened:
            opened[file] = np.load(folder / f"{file}.npz")
        yield _case(record, opened[file])


def _case(record: dict[str, Any], stored: Any) -> Case:
    key = record["id"]

    def find(what: str) -> Array | None:
        name = f"{key}__{what}"
        return stored[name] if name in stored.files else None

    tensors = _stored(record, stored) if record["inputs_stored"] else _drawn(record)
    sizes = {} if record["sizes"] is None else {_sizes_name(record["op"]): np.array(record["sizes"], np.int32)}
    blob = b"".join(np.ascontiguousarray(tensors[t["name"]]).tobytes() for t in record["tensors"])
    assert hashlib.sha256(blob).hexdigest()[:16] == record["inputs_sha256"], f"the inputs of {key} came out differently"
    reference = find("ref")
    assert reference is not None, key
    tight = record["tol"]["tight"]
    return Case(
        id=key,
        op=record["op"],
        dtype=record["dtype"],
        category=record["category"],
        attrs=_attrs(record),
        tensors={**tensors, **sizes},
        result_shape=tuple(record["result_shape"]),
        reference=reference,
        positions=find("idx"),
        care=find("care"),
        relative=tight["rtol"],
        absolute=tight["atol"],
    )


def _sizes_name(op: str) -> str:
    return "input_sizes" if op.endswith("Input") else "filter_sizes"


def _attrs(record: dict[str, Any]) -> dict[str, Any]:
    """The attributes as a caller writes them: the public op takes explicit padding as pairs in place of the word."""
    attrs = dict(record["attrs"])
    if record["op"].startswith("tf.nn.") and attrs["padding"] == "EXPLICIT":
        attrs["padding"] = np.reshape(attrs["explicit_paddings"], (4, 2)).tolist()
    if record["op"].startswith("tf.nn."):
        attrs.pop("explicit_paddings", None)
    return attrs


def _stored(record: dict[str, Any], stored: Any) -> dict[str, Array]:
    found = {t["name"]: stored[f"{record['id']}__in_{t['name']}"] for t in record["tensors"]}
    if record["dtype"] == "bfloat16":
        return {name: a.view(ml_dtypes.bfloat16) for name, a in found.items()}
    return found


def _drawn(record: dict[str, Any]) -> dict[str, Array]:
    """The inputs again, from their seed."""
    rng = np.random.default_rng(record["seed"])
    tensors: dict[str, Array] = {}
    for t in record["tensors"]:
        if record["dtype"] == "int32":
            tensors[t["name"]] = rng.integers(-8, 9, t["shape"]).astype(np.int32)
        elif record["dtype"] == "bfloat16":
            tensors[t["name"]] = rng.standard_normal(t["shape"]).astype(np.float32).astype(ml_dtypes.bfloat16)
        else:
            tensors[t["name"]] = rng.standard_normal(t["shape"]).astype(record["dtype"])
    return tensors


def compare(case: Case, result: Array) -> tuple[bool, str]:
    """Whether a result is within the tight tolerance of the reference, and if not, why."""
    if result.shape != case.result_shape:
        return False, f"shape {result.shape}, expected {case.result_shape}"
    if result.dtype.name != case.dtype:
        return False, f"type {result.dtype}, expected {case.dtype}"
    found = result if case.dtype == "int32" else result.astype(np.float64)
    if case.positions is not None:
        found = found.reshape(-1)[case.positions]
    if found.size == 0:
        return True, ""
    if case.dtype == "int32":
        return (True, "") if np.array_equal(found, case.reference) else (False, "integers differ")
    return _close(case, found)


def _close(case: Case, found: Array) -> tuple[bool, str]:
    care = np.ones(case.reference.shape, bool) if case.care is None else case.care.astype(bool)
    largest = 65520 if case.dtype == "float16" else np.inf
    big = np.abs(case.reference) >= largest
    expected = np.where(big, np.copysign(np.inf, case.reference), case.reference)
    wrong_class = care & (_class(found) != _class(expected))
    if wrong_class.any():
        return False, f"NaN or infinity differs at {wrong_class.sum()} positions"
    finite = care & np.isfinite(expected) & np.isfinite(found)
    error = np.abs(np.where(finite, found, 0) - np.where(finite, expected, 0))
    limit = case.relative * np.abs(np.where(finite, expected, 0)) + case.absolute
    excess = error - limit
    worst = excess.argmax()
    return bool((excess <= 0).all()), f"error {error.flat[worst]:.3g}, allowed {limit.flat[worst]:.3g}"


def _class(a: Array) -> Array:
    return np.asarray(np.isnan(a) * 1 + np.isposinf(a) * 2 + np.isneginf(a) * 3)
