"""Tables of calls, right and wrong, that every compiled binding makes; and what each must say of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opgen.spec.model.model import OpSpec, Sizes
from tests.bindings.c import library as c
from tests.bindings.cpp.library import Answer, Call, expressible
from tests.bindings.modules import OPS, generated, spec
from tests.golden.load import DATA, Case, compare
from tests.support.random_calls import by_check, by_solve, random_arguments

MODES = ("eager", "const", "feed", "late")
"""At once; a graph of constants; one that is fed, with shapes known, or unknown until it runs."""


def op_of(name: str) -> OpSpec:
    """The op of a recorded case."""
    return spec(OPS).op(name.removeprefix("tf.nn."))


def golden_calls(recorded: Sequence[Case]) -> list[Call]:
    """The calls of recorded cases."""
    return [
        Call(op_of(case.op), tuple(np.asarray(case.tensors[i.name]) for i in op_of(case.op).inputs), case.attrs)
        for case in recorded
    ]


def check_goldens(recorded: Sequence[Case], answers: Sequence[Answer]) -> None:
    """Every answer is within the tight tolerance of what was recorded."""
    wrong = []
    for case, answer in zip(recorded, answers, strict=True):
        ok, why = compare(case, answer.results[0]) if not answer.message else (False, answer.message)
        if not ok:
            wrong.append(f"{case.id} {case.op} {case.attrs}: {why}")
    assert not wrong, "\n".join(wrong)
    assert {case.op for case in recorded} == {
        f"tf.nn.{op.name}" if op.name.islower() else op.name for op in spec(OPS).ops
    }


def plain(answer: Answer, mode: str, op: OpSpec, node: str | None = None) -> str:
    """A message without the node's name, which a graph's has; `node` is the name that calls get."""
    if mode == "eager":
        return answer.message
    end = f" (node '{node or op.name}')"
    assert answer.message.endswith(end), answer.message
    return answer.message.removesuffix(end)


_MALFORMED = json.loads((DATA / "invalid.json").read_text())["calls"]


def malformed_calls() -> list[Call]:
    """The recorded malformed calls that would compile."""
    calls = [call for record in _MALFORMED if (call := _malformed(record)) is not None]
    assert len(calls) > len(_MALFORMED) // 2
    return calls


def _tensor(value: Any, vector: bool) -> np.ndarray | None:
    """An input as the file spells it; None where no tensor can be that."""
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
    op = op_of(record["op"])
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


def check_malformed(calls: Sequence[Call], answers: Sequence[Answer], said: Sequence[str]) -> None:
    """Each is refused with the message that Python raises, or is a valid call there too; `said` are the messages."""
    refused = 0
    for call, answer, found in zip(calls, answers, said, strict=True):
        expected = _by_python(call)
        if answer.results:
            assert str(answer.results[0].shape) == expected, call.attrs
            continue
        refused += 1
        assert answer.code == 3
        if any(isinstance(i, Sizes) and a.dtype.kind != "i" for i, a in zip(call.op.inputs, call.inputs, strict=True)):
            found, expected = found.split(", given")[0], expected.split(", given")[0]  # the values are no integers
        assert found == expected, (call.attrs, [(a.shape, a.dtype) for a in call.inputs])
    assert refused > len(calls) * 3 // 4


def random_calls(path: Path, seed: int) -> tuple[list[Call], list[str]]:
    """Calls, valid and invalid, and what Python and C say of each: the shapes, or the message."""
    rng = random.Random(f"languages {seed}")
    calls, expected = [], []
    library = c.Library(spec(path), c.built(path))
    for op in spec(path).ops:
        for _ in range(120):
            shapes, vectors, attrs = random_arguments(rng, op)
            required = {a.name for a in op.attrs if not (a.has_default or a.optional) and a.carried_by is None}
            if not all(expressible(op, n, v) for n, v in attrs.items()) or not required <= attrs.keys():
                continue
            if any(t.dtype not in {v.name for v in op.type_variables} for t in op.tensors):
                continue
            python = by_check(generated(path), op, shapes, vectors, attrs)
            if "or a list of integers: " in python:  # what is wrong in a list in place of a word is said at more length
                python = by_solve(path, op, shapes, vectors, attrs)
            found = library.shape(op, c.inputs_of(op, shapes, vectors), attrs)
            assert found == python, (seed, op.name, shapes, vectors, attrs)
            inputs = tuple(
                np.array(vectors[i.name], np.int32) if isinstance(i, Sizes) else np.zeros(shapes[i.name], np.float32)
                for i in op.inputs
            )
            calls.append(Call(op, inputs, attrs))
            expected.append(python)
    assert sum(e.startswith("{") for e in expected) > 20
    assert sum(not e.startswith("{") for e in expected) > 20
    return calls, expected


def check_random(
    calls: Sequence[Call], answers: Sequence[Answer], said: Sequence[str], expected: Sequence[str]
) -> None:
    """The answers are what Python and C say; `said` are the messages."""
    for call, answer, message, shown in zip(calls, answers, said, expected, strict=True):
        names = [o.name for o in call.op.outputs]
        shapes = {n: r.shape for n, r in zip(names, answer.results, strict=False)}
        found = message if answer.message else str(shapes)
        assert found == shown, (call.op.name, call.attrs, [a.shape for a in call.inputs])
