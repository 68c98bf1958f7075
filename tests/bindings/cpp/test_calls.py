"""The recorded cases, the malformed calls and random calls through the C++ API, directly and as graphs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgen.spec.model import OpSpec, Sizes
from tests.bindings.c import library as c
from tests.bindings.cpp.library import COMPILERS, SANITIZED, Answer, Call, call_all, expressible
from tests.bindings.modules import OPS, SAMPLES, generated, spec
from tests.bindings.test_agreement import _by_check, _by_solve, _call
from tests.golden.load import DATA, cases, compare

MODES = ("eager", "const", "feed", "late")
pytestmark = pytest.mark.skipif("g++" not in COMPILERS, reason="needs g++")


def _op(name: str) -> OpSpec:
    return spec(OPS).op(name.removeprefix("tf.nn."))


def _is_node(message: str, op: OpSpec) -> bool:
    return message.endswith(f" (node '{op.name}')")


def _plain(answer: Answer, mode: str, op: OpSpec) -> str:
    """A message without the node's name, which a graph's has."""
    if mode == "eager":
        return answer.message
    assert _is_node(answer.message, op), answer.message
    return answer.message.removesuffix(f" (node '{op.name}')")


@pytest.mark.parametrize("options", [("-O1",), SANITIZED], ids=["plain", "sanitized"])
@pytest.mark.parametrize("mode", MODES)
def test_goldens(mode: str, options: tuple[str, ...]) -> None:
    """Every recorded case within the tight tolerance."""
    recorded = list(cases())
    if options is SANITIZED:
        small = [r for r in recorded if r.reference.size < 20_000]
        recorded = [r for op in spec(OPS).ops for r in [s for s in small if _op(s.op) is op][::4]]
    calls = []
    for case in recorded:
        op = _op(case.op)
        calls.append(Call(op, tuple(np.asarray(case.tensors[i.name]) for i in op.inputs), case.attrs))
    answers = call_all(OPS, mode, calls, *options)
    wrong = []
    for case, answer in zip(recorded, answers, strict=True):
        ok, why = compare(case, answer.results[0]) if not answer.message else (False, answer.message)
        if not ok:
            wrong.append(f"{case.id} {case.op} {case.attrs}: {why}")
    assert not wrong, "\n".join(wrong)
    assert {case.op for case in recorded} == {
        f"tf.nn.{op.name}" if op.name.islower() else op.name for op in spec(OPS).ops
    }


MALFORMED = json.loads((DATA / "invalid.json").read_text())["calls"]


def _tensor(value: Any, vector: bool) -> np.ndarray | None:
    """An input as the file spells it; None where no C++ tensor can be that."""
    if vector and isinstance(value, list):
        return np.array(value, np.int32) if all(type(v) is int and abs(v) < 2**31 for v in value) else None
    if not isinstance(value, dict) or value.get("dtype") == "string":
        return None
    shape = value.get("tensor", value.get("numpy"))
    if shape is not None:
        dtype = {"half": "float16", "double": "float64", "float": "float32"}.get(value["dtype"], value["dtype"])
        known = dtype in ("float16", "float32", "float64", "int32", "int64", "bool")
        return np.ones(shape, dtype) if known else None
    return np.array(value["const"], value["dtype"]) if "const" in value else None


def _malformed(record: dict[str, Any]) -> Call | None:
    """A call of the file, or None if it would not compile."""
    op = _op(record["op"])
    arguments = {n: tuple(v["tuple"]) if isinstance(v, dict) and "tuple" in v else v for n, v in record["args"].items()}
    inputs = [_tensor(arguments.get(i.name), isinstance(i, Sizes)) for i in op.inputs]
    names = {i.name for i in op.inputs}
    attrs = {n: v for n, v in arguments.items() if n not in names}
    required = {a.name for a in op.attrs if not (a.has_default or a.optional)}
    if any(i is None for i in inputs) or not required <= attrs.keys():
        return None
    if not all(expressible(op, n, v) for n, v in attrs.items()):
        return None
    return Call(op, tuple(i for i in inputs if i is not None), attrs)


def _by_python(call: Call) -> str:
    """The message of Python's generated function, or the shape of its result."""
    given = {i.name: a for i, a in zip(call.op.inputs, call.inputs, strict=True)}
    try:
        result = getattr(generated(OPS).raw_ops, call.op.name)(**given, **call.attrs)
    except (ValueError, TypeError) as error:
        return str(error)
    return str(result.shape)


@pytest.mark.parametrize("mode", MODES)
def test_malformed_calls(mode: str) -> None:
    """Each gives a status with the message that Python raises, or is a valid call there too."""
    calls = [call for record in MALFORMED if (call := _malformed(record)) is not None]
    assert len(calls) > len(MALFORMED) // 2
    answers = call_all(OPS, mode, calls, *SANITIZED)
    refused = 0
    for call, answer in zip(calls, answers, strict=True):
        expected = _by_python(call)
        if answer.results:
            assert str(answer.results[0].shape) == expected, call.attrs
            continue
        refused += 1
        assert answer.code == 3
        found = _plain(answer, mode, call.op)
        if any(isinstance(i, Sizes) and a.dtype.kind != "i" for i, a in zip(call.op.inputs, call.inputs, strict=True)):
            found, expected = found.split(", given")[0], expected.split(", given")[0]  # the values are no integers
        assert found == expected, (call.attrs, [(a.shape, a.dtype) for a in call.inputs])
    assert refused > len(calls) * 3 // 4


@pytest.mark.parametrize("path", [OPS, SAMPLES], ids=lambda p: p.stem)
@pytest.mark.parametrize("seed", range(2))
def test_three_languages_agree(path: Path, seed: int) -> None:
    """One table of calls, valid and invalid, through Python, C and C++: the same shapes, the same messages."""
    rng = random.Random(f"languages {seed}")
    calls, expected = [], []
    library = c.Library(spec(path), c.built(path))
    for op in spec(path).ops:
        for _ in range(120):
            shapes, vectors, attrs = _call(rng, op)
            required = {a.name for a in op.attrs if not (a.has_default or a.optional) and a.carried_by is None}
            if not all(expressible(op, n, v) for n, v in attrs.items()) or not required <= attrs.keys():
                continue
            if any(t.dtype not in {v.name for v in op.type_variables} for t in op.tensors):
                continue
            python = _by_check(generated(path), op, shapes, vectors, attrs)
            if "or a list of integers: " in python:  # what is wrong in a list in place of a word is said at more length
                python = _by_solve(path, op, shapes, vectors, attrs)
            found = library.shape(op, c.inputs_of(op, shapes, vectors), attrs)
            assert found == python, (seed, op.name, shapes, vectors, attrs)
            inputs = tuple(
                np.array(vectors[i.name], np.int32) if isinstance(i, Sizes) else np.zeros(shapes[i.name], np.float32)
                for i in op.inputs
            )
            calls.append(Call(op, inputs, attrs))
            expected.append(python)
    for mode in ("eager", "const", "late"):
        for call, answer, shown in zip(calls, call_all(path, mode, calls, "-O1"), expected, strict=True):
            names = [o.name for o in call.op.outputs]
            found = (
                _plain(answer, mode, call.op)
                if answer.message
                else str({n: r.shape for n, r in zip(names, answer.results, strict=True)})
            )
            assert found == shown, (seed, mode, call.op.name, call.attrs, [a.shape for a in call.inputs])
    assert sum(e.startswith("{") for e in expected) > 20
    assert sum(not e.startswith("{") for e in expected) > 20
