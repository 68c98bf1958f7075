"""Every feature of the language through every compiled face: the ops of tests/specs in one library, called with random
arguments, right and wrong, from Python, C, C++ and both faces of Java: the same results bit for bit, the same messages.

Seeds come from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from opgen.bindings.java.names import class_names, legacy_class_names
from opgen.diagnostics.calls import ArgumentError
from opgen.dtypes import DTYPES
from opgen.loop.arithmetic import NUMPY
from opgen.spec.model.model import Module
from tests.bindings.c import library as c
from tests.bindings.calls import plain
from tests.bindings.cpp import library as cpp
from tests.bindings.cpp.library import COMPILERS, Answer, Call
from tests.bindings.java import library as java
from tests.bindings.merged import merged, named, random_call, same
from tests.bindings.modules import ROOT, generated, spec

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
CALLS = int(os.environ.get("OPGEN_TEST_CALLS", "24"))
"""Of each op."""
TYPES = int(os.environ.get("OPGEN_TEST_TYPES", "1"))
"""Of each type variable."""

NAMES = [
    "generic",
    "attribute_lists",
    "bits",
    "bools",
    "counted",
    "elements",
    "float_sizes",
    "formulas",
    "indices",
    "ops_in_ops",
    "orders",
    "places",
    "random_numbers",
    "scalars",
    "small_types",
    "steps",
    "updates",
]
WITHOUT = [op.name for op in spec(ROOT / "specs" / "nn_ops.op").ops] + ["Net"]
"""What is tested elsewhere, and what uses it."""

FORMS = """AttributeListsChosen:x=?,?:places=1,0
CountedAboveOfRank:x=?,?:found=1
FloatSizesHalved:x=?,?
FormulasEvery:x=?,?
OpsInOpsAnyHeads:q=?,?,?:k=?,?,?:v=?,?,?
OpsInOpsAnySoftmax:x=?,?,?:axis=1
GenericAdd:A=?,?:B=?
GenericConcat:inputs=?,?:inputs=?,?:axis=1
GenericConv:X=?,?,?:W=?,?,?
GenericSplit:input=?,?:split=1,2:axis=1:results=2
GenericGemm:A=?,?:B=?,?:transB=true
GenericReduceMean:data=?,?:axes=1
"""
"""Forms of generic ops, which Python has no functions of: of these C is what the others are compared with."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The spec of all of them."""
    found = tmp_path_factory.mktemp("faces") / "every_face.op"
    found.write_text(merged([ROOT / "tests" / "specs" / f"{n}.op" for n in NAMES], TYPES, WITHOUT))
    found.with_suffix(".forms").write_text(FORMS)
    return found


@pytest.fixture(scope="module")
def calls(path: Path) -> list[Call]:
    rng = Random(f"faces {SEED}")
    drawn = [random_call(rng, op) for op in spec(path).ops for _ in range(CALLS)]
    return [call for call in drawn if call is not None]


@pytest.fixture(scope="module")
def answers(path: Path, calls: list[Call]) -> list[Answer]:
    """What Python says of the calls: about as many are right as are wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPGEN_SPECIALIZE", "never")  # the same kernels as in the library: those for any size
        library, python = c.Library(spec(path), c.built(path)), generated(path)
        generic = {g.name for g in spec(path).generics}
        found = [
            by_c(library, call, Answer()) if call.op.name in generic else by_python(python, call) for call in calls
        ]
    right = Counter(call.op.name for call, a in zip(calls, found, strict=True) if not a.message)
    wrong = Counter(call.op.name for call, a in zip(calls, found, strict=True) if a.message)
    names = {call.op.name for call in calls}
    print(f"OPGEN_TEST_SEED={SEED}: {len(names)} ops, {right.total()} right calls, {wrong.total()} wrong ones")
    assert len(right) > len(names) * 0.95, f"only wrong calls of {names - right.keys()}"
    assert len(wrong) > len(names) * 0.75
    return found


def by_python(module: Any, call: Call) -> Answer:
    function = getattr(module.raw_ops, call.op.name)
    try:
        found = function(**named(call.op, call.inputs, call.attrs))
    except ArgumentError as error:
        return Answer(code=3, message=str(error))
    return Answer(tuple(np.asarray(r) for r in (found if isinstance(found, tuple) else (found,))))


def by_c(library: c.Library, call: Call, expected: Answer) -> Answer:
    """Results are of the types that Python's are of, or (where a call is wrong) that the op says."""
    inputs, op = [c.of(i) for i in call.inputs], call.op
    shapes = library.shape(op, inputs, call.attrs)
    if not shapes.startswith("{"):
        return Answer(code=3, message=shapes)
    types = [r.dtype for r in expected.results] or [element_type(call, o.dtype) for o in op.outputs]
    results = [np.zeros(s, t) for s, t in zip(eval(shapes).values(), types, strict=True)]
    status = library.run(op, inputs, call.attrs, list(map(c.of, results)))
    return Answer(tuple(results)) if status == c.OK else Answer(code=3, message=library.error())


def element_type(call: Call, name: str) -> np.dtype[Any]:
    """The type of a result: a scalar type, or that of the first input that is of the same type variable."""
    if name in DTYPES:
        return NUMPY[DTYPES[name].name]
    variable = call.op.type_variable(name)
    assert variable is not None
    given = zip(call.op.inputs, call.inputs, strict=True)
    return next((a.dtype for i, a in given if getattr(i, "dtype", "") == name), NUMPY[variable.allowed[0].name])


def compared(calls: Sequence[Call], found: Sequence[Answer], said: Sequence[str], expected: Sequence[Answer]) -> None:
    """Fails with a line for each call of which something else is said."""
    wrong = []
    for call, answer, message, right in zip(calls, found, said, expected, strict=True):
        if message == right.message and same(answer.results, right.results):
            continue
        given = [f"{i.dtype}{list(i.shape)}" for i in call.inputs]
        wrong.append(f"{call.op.name}({', '.join(given)}, {dict(call.attrs)}):")
        wrong.append(f"  expected {right.message or right.results}\n  given {message or answer.results}")
    assert not wrong, f"OPGEN_TEST_SEED={SEED}:\n" + "\n".join(wrong)


def test_c(path: Path, calls: list[Call], answers: list[Answer]) -> None:
    library = c.Library(spec(path), c.built(path))
    found = [by_c(library, call, right) for call, right in zip(calls, answers, strict=True)]
    compared(calls, found, [a.message for a in found], answers)


@pytest.mark.skipif("g++" not in COMPILERS, reason="needs g++")
@pytest.mark.parametrize("mode", ["eager", "late"])
def test_cpp(path: Path, mode: str, calls: list[Call], answers: list[Answer]) -> None:
    found = cpp.call_all(path, mode, calls)
    said = [plain(a, mode, call.op) if a.message else "" for call, a in zip(calls, found, strict=True)]
    compared(calls, found, said, answers)


@pytest.mark.skipif(java.JDK is None, reason=java.WHY_NOT)
@pytest.mark.parametrize(("face", "mode"), [("Current", "eager"), ("Legacy", "late")])
def test_java(path: Path, face: str, mode: str, calls: list[Call], answers: list[Answer]) -> None:
    found = java.call_all(path, face, mode, calls)
    classes = node_names(spec(path), face)
    said = [plain(a, mode, call.op, classes[call.op.name]) if a.message else ""
            for call, a in zip(calls, found, strict=True)]  # fmt: skip
    compared(calls, found, said, answers)


def node_names(module: Module, face: str) -> dict[str, str]:
    """What nodes of ops are called in Java: as their classes."""
    return class_names(module.ops) if face == "Current" else legacy_class_names(module.ops)
