"""Models that ask for what nobody should give them: a typed error that names the node, soon, and with little memory."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

import opgen
from opgen.diagnostics import UserError
from opgen.graph.ir.problems import ModelError
from opgen.onnx.load import load
from tests.onnx.models import constant, float_input, model, node
from tests.onnx.mutate import NUMBERS, changed_bytes, changed_field

SEED = int(os.environ.get("OPGEN_SEED", 1))
COUNT = int(os.environ.get("OPGEN_HOSTILE", 30))
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
"""The longest that a model may take, on a machine that does other work as well."""

HUGE = 10**12
X = [float_input("x", (3,))]
IMAGE = [float_input("x", (1, 1, 4, 4))]


def made_by(*nodes: NodeProto, inputs: Sequence[Any] = X, **constants: Any) -> ModelProto:
    return model(nodes, inputs, initialisers=[constant(name, value) for name, value in constants.items()])


def doubled(times: int, first: str, **constants: Any) -> ModelProto:
    """A tensor that is put beside itself again and again."""
    nodes = [node("Concat", [first if i == 0 else f"d{i}"] * 2, [f"d{i + 1}"], axis=0) for i in range(times)]
    return made_by(*nodes, node("ReduceSum", [f"d{times}"], ["y"]), **constants)


def filled(*nodes: NodeProto, **constants: Any) -> ModelProto:
    """A tensor whose shape is worked out."""
    zero = constant("", np.float32([0]))
    return made_by(*nodes, node("ConstantOfShape", ["s"], ["y"], value=zero), **constants)


def alive_at_once(count: int) -> ModelProto:
    """Results of 400 MiB each."""
    nodes = [node("Expand", ["x", "s"], ["big"]), node("Softmax", ["big"], ["m0"], axis=0)]
    nodes += [node("Softmax", [f"m{i}"], [f"m{i + 1}"], axis=0) for i in range(count)]
    shape = constant("s", np.int64([35_000_000, 3]))
    return model(nodes, X, [f"m{i}" for i in range(count)], [shape])


TOO_LARGE = {
    "ConstantOfShape": filled(s=np.int64([10**6, 10**6])),
    "Expand": made_by(node("Expand", ["x", "s"], ["z"]), node("ReduceSum", ["z"], ["y"]), s=np.int64([HUGE, 3])),
    "Tile": made_by(node("Tile", ["x", "s"], ["y"]), s=np.int64([HUGE])),
    "Pad": made_by(node("Pad", ["x", "p"], ["y"]), p=np.int64([HUGE, 0])),
    "Range": made_by(node("Range", ["a", "b", "c"], ["y"]), a=np.int64(0), b=np.int64(HUGE), c=np.int64(1)),
    "OneHot": made_by(node("OneHot", ["i", "d", "v"], ["y"]), i=np.int64([1]), d=np.int64(HUGE), v=np.float32([0, 1])),
    "Resize": made_by(node("Resize", ["x", "", "", "z"], ["y"]), inputs=IMAGE, z=np.int64([1, 1, 10**6, 10**6])),
    "MaxPool": made_by(node("MaxPool", ["x"], ["y"], kernel_shape=[10**9] * 2, pads=[10**9 - 1] * 4), inputs=IMAGE),
    "Concat.27": doubled(60, "x"),
    "Concat.28": doubled(60, "c", c=np.float32([1, 2])),
}
"""Models by the node that makes too large a value."""

OTHERWISE = {
    r"its result 'y' of int64\[9223372036854775807\] takes": made_by(  # steps of 0 never end
        node("Range", ["a", "b", "c"], ["y"]), a=np.int64(0), b=np.int64(9), c=np.int64(0)
    ),
    "does not fit in 64 bits": made_by(node("Tile", ["x", "s"], ["y"]), s=np.int64([2**62])),
    "nan is no number of float32": made_by(
        node("Resize", ["x", "", "s"], ["y"]), inputs=IMAGE, s=np.float32([1, 1, np.nan, np.inf])
    ),
    "1e39 is no number of float32|is out of range": made_by(
        node("Resize", ["x", "", "s"], ["y"]), inputs=IMAGE, s=np.float32([1, 1, 3e38, 3e38])
    ),
    "at most 32 are taken": made_by(node("Unsqueeze", ["x", "a"], ["y"]), a=np.int64(range(60))),
    "operations; a node of this model may take": made_by(
        node("AveragePool", ["x"], ["y"], kernel_shape=[30_000] * 2, pads=[20_000] * 4),
        inputs=[float_input("x", (1, 1, 4, 4))],
    ),
    "shapes that depend on it take more than": filled(
        *(node("Add", [f"a{i}" if i else "a", "a"], [f"a{i + 1}"]) for i in range(400)),
        node("ReduceSum", ["a400"], ["s"], keepdims=1),
        a=np.ones(60_000, np.int64),
    ),
    "its values take .* at once; values of this model may take 1.00 GiB": alive_at_once(3),
}
"""Models by what is said of them."""


def refusal(hostile: ModelProto) -> str:
    """What is said of a model, which may take little memory and time before."""
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    given = [np.ones([int(str(size)) for size in i.shape or ()], np.float32) for i in load(hostile).inputs]
    compiled = opgen.compile(hostile.SerializeToString())
    with pytest.raises(ModelError) as refused:
        compiled(*given)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 1 << 28
    assert time.monotonic() - begin < SECONDS
    return str(refused.value)


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_value_that_is_too_large_is_refused_before_there_is_memory_for_it(name: str) -> None:
    said = refusal(TOO_LARGE[name])
    assert f"node '{name}" in said
    assert "values of this model may take 1.00 GiB at once (OPGEN_MODEL_MIB)" in said


@pytest.mark.parametrize("said", OTHERWISE)
def test_other_refusals(said: str) -> None:
    assert re.search(f"node '.*{said}", refusal(OTHERWISE[said]))


def test_a_model_is_given_more_if_its_user_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    small = made_by(node("Tile", ["x", "s"], ["y"]), s=np.int64([100_000])).SerializeToString()
    x = np.ones(3, np.float32)
    assert opgen.compile(small)(x).shape == (300_000,)
    monkeypatch.setenv("OPGEN_MODEL_MIB", "1")
    with pytest.raises(ModelError, match=r"takes 1.1 MiB; values of this model may take 1.0 MiB at once"):
        opgen.compile(small)(x)
    monkeypatch.setenv("OPGEN_MODEL_MIB", "2")
    assert opgen.compile(small)(x).shape == (300_000,)
    monkeypatch.setenv("OPGEN_MODEL_GOPS", "0")
    with pytest.raises(ModelError, match=r"takes about 3.0e\+05 operations; a node of this model may take 0.0e\+00"):
        opgen.compile(small)(x)
    monkeypatch.setenv("OPGEN_MODEL_GOPS", "all")
    with pytest.raises(UserError, match=r"OPGEN_MODEL_GOPS: expected a whole number, given 'all'"):
        opgen.compile(small)(x)


LONG = "n" * 100_000
SAID = {
    "names of nodes and operators": model([node("R" * 100_000, ["x"], ["y"], name=LONG)]),
    "the name of a domain": model([NodeProto(op_type="Relu", domain=LONG, input=["x"], output=["y"])]),
    "many bad nodes": model([node(f"Bad{i}", ["x"], [f"v{i}"]) for i in range(3000)], outputs=["v0"]),
    "many attributes": model([node("Relu", ["x"], ["y"], **{f"a{i}": i for i in range(2000)})]),
    "the name of an attribute": model([node("Relu", ["x"], ["y"], **{LONG: 1})]),
    "an attribute's text": model([node("Conv", ["x", "x"], ["y"], auto_pad=LONG)]),
    "the name of an initialiser": model(
        [node("Relu", ["x"], ["y"])], initialisers=[TensorProto(name=LONG, data_type=99)]
    ),
    "the name of an input": model([node("Relu", [LONG], ["y"])], [float_input(LONG, (3, 3))]),
    "the name of a dimension": model([node("Relu", ["x"], ["y"])], [float_input("x", (LONG, 2))]),
    "names of values": model([node("Add", [LONG, "x"], ["y"])]),
    "an equation": model([node("Einsum", ["x"], ["y"], equation="," * 100_000)]),
    "many calls": model([node("Concat", ["x"], [f"y{i}"], axis=7) for i in range(1000)], outputs=["y0"]),
}
"""Models by what in them is long."""


@pytest.mark.parametrize("what", SAID)
def test_messages_are_short_and_name_no_file_of_specs(what: str) -> None:
    with pytest.raises(UserError) as refused:
        opgen.compile(SAID[what].SerializeToString())(np.ones(3, np.float32))
    said = str(refused.value)
    assert len(said) < 2000
    assert ".op" not in said


# Many models ---------------------------------------------------------------------------------------------------------


def changed_numbers(proto: ModelProto, chance: random.Random) -> ModelProto:
    """A model with a number among its integer constants, or in a list of an attribute, that nobody would write."""
    changed = ModelProto()
    changed.CopyFrom(proto)
    lists = [a.ints for n in changed.graph.node for a in n.attribute if a.ints]
    tensors = [t for t in changed.graph.initializer if t.data_type == TensorProto.INT64 and np.prod(t.dims)]
    if lists and (not tensors or chance.random() < 0.5):
        numbers = chance.choice(lists)
        numbers[chance.randrange(len(numbers))] = chance.choice(NUMBERS)
    elif tensors:
        tensor = chance.choice(tensors)
        values = numpy_helper.to_array(tensor).copy()
        values.reshape(-1)[chance.randrange(values.size)] = chance.choice((*NUMBERS, HUGE, 3, 4))
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return changed


def bases(chance: random.Random) -> list[ModelProto]:
    """Models that run: those above, with numbers that are not too large, and some of ONNX's own tests."""
    own = [
        made_by(node("Expand", ["x", "s"], ["z"]), node("ReduceSum", ["z"], ["y"]), s=np.int64([4, 3])),
        made_by(node("Tile", ["x", "s"], ["y"]), s=np.int64([2])),
        made_by(node("Pad", ["x", "p"], ["y"]), p=np.int64([1, 2])),
        made_by(node("Range", ["a", "b", "c"], ["y"]), a=np.int64(0), b=np.int64(9), c=np.int64(2)),
        made_by(node("Resize", ["x", "", "", "z"], ["y"]), inputs=IMAGE, z=np.int64([1, 1, 5, 6])),
        made_by(node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[1, 1, 1, 1]), inputs=IMAGE),
        made_by(
            node("Slice", ["x", "a", "b", "c", "d"], ["z"]),
            node("Softmax", ["z"], ["y"]),
            a=np.int64([0]),
            b=np.int64([9]),
            c=np.int64([0]),
            d=np.int64([2]),
        ),
        made_by(
            node("Conv", ["x", "w"], ["y"], pads=[1] * 4, strides=[2, 1]),
            inputs=IMAGE,
            w=np.ones((2, 1, 3, 3), np.float32),
        ),
        made_by(node("Reshape", ["x", "s"], ["z"]), node("Transpose", ["z"], ["y"], perm=[1, 0]), s=np.int64([3, -1])),
        filled(
            node("Div", ["a", "b"], ["c"]),
            node("Gather", ["c", "i"], ["s"]),
            a=np.int64([6, 8]),
            b=np.int64([2, 3]),
            i=np.int64([1, 0, 1]),
        ),
    ]
    others = [t.model for t in load_model_tests(kind="node") if t.model is not None]
    return own + chance.sample(others, 20)


class Worker:
    """Another process that runs models, as far as it lives."""

    def __init__(self, cache: Path, seed: int) -> None:
        settings = {"OPGEN_MODEL_MIB": "256", "OPGEN_MODEL_GOPS": "20", "OPGEN_CACHE_DIR": str(cache)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.onnx.hostile_worker", str(seed)],
            cwd=ROOT,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def outcome(self, path: Path) -> tuple[str, str]:
        """What became of a model: `result`, `refused`, `wrong`, `late` or `ended`, and what is said of it."""
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None
        assert taken is not None
        given.write(f"{path}\n")
        given.flush()
        if not select.select([taken], [], [], SECONDS)[0]:
            return "late", ""
        line = taken.readline()
        if not line:
            return "ended", f"by signal or exit {self._process.wait()}"
        what, said = json.loads(line)
        return what, said

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def test_mutated_models_run_or_are_refused(tmp_path: Path) -> None:
    print(f"OPGEN_SEED={SEED} OPGEN_HOSTILE={COUNT}")
    chance = random.Random(SEED)
    models = bases(chance)
    worker = Worker(tmp_path / "cache", SEED)
    found = {"result": 0, "refused": 0}
    try:
        for number in range(COUNT):
            base = chance.choice(models)
            how = number % 4
            if how == 0:
                data = changed_bytes(base.SerializeToString(), chance)
            else:
                data = (changed_field if how == 1 else changed_numbers)(base, chance).SerializeToString()
            path = tmp_path / f"{number}.onnx"
            path.write_bytes(data)
            what, said = worker.outcome(path)
            assert what in found, f"model {number} of seed {SEED}: {what}: {said}"
            found[what] += 1
            path.unlink()
    finally:
        worker.end()
    print(found)
    assert min(found.values()) > COUNT // 8, found
