"""`opgen run` and `opgen inspect` of models, and every way to ask wrongly."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opgen import compiling
from opgen.cli import inspect_model, models
from opgen.dtypes import FLOAT32
from opgen.graph.build.model import Call, Input, Model
from opgen.graph.ir.nodes import Data
from opgen.graph.ir.text import parse_graph
from opgen.loop.parse import parse_kernel
from opgen.spec.loading import load_text
from tests.cli.conftest import Run
from tests.graph.random_graphs import MODULE
from tests.onnx.models import constant, float_input, node
from tests.onnx.models import model as onnx_model

X = np.arange(6, dtype=np.float32).reshape(2, 3)
C = np.full((1, 3), 2, np.float32)


def call(op: str, inputs: tuple[str, ...], output: str) -> Call:
    return Call(output, MODULE, op, inputs, (output,), {}, f"model small.onnx, node '{output}' ({op})")


SMALL = Model(
    "small",
    (Input("x", FLOAT32, ("rows", "columns")), Input("a=b", FLOAT32, ("rows", 3))),
    {"c": Data(C)},
    (
        call("Add", ("x", "c"), "shifted"),
        call("Add", ("x", "c"), "again"),
        call("Add", ("shifted", "a=b"), "sum"),
        call("Add", ("sum", "again"), "both"),
        call("Turn", ("both",), "y"),
    ),
    ("y", "sum"),
    "small.onnx",
)


@pytest.fixture
def small(here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`opgen ...` where `small.onnx` is `SMALL`."""
    (tmp_path / "small.onnx").touch()
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr(compiling, "of_source", lambda path, progress: compiling.of_model(SMALL, progress))
    monkeypatch.setattr(inspect_model, "read_model", lambda path: SMALL)
    return here


def test_a_run_prints_shapes_time_and_memory(small: Run) -> None:
    result = small("run", "small.onnx", "--random", "--shape", "x=2,3", "--threads", 1)
    assert (result.returncode, result.stderr) == (0, "")
    assert [
        re.sub(r"\d+\.\d+|\d+ (?=steps|kernels|bytes (are|for))", "#", line) for line in result.stdout.splitlines()
    ] == [
        "input    x: float32[2, 3]",
        "input    a=b: float32[2, 3]",
        "output   y: float32[3, 2]",
        "output   sum: float32[2, 3]",
        "ready    # s: 5 calls of the model became #steps by #kernels",
        "time     # ms by 1 thread (median of 20 runs)",
        "weights  12 bytes in 1 constant",
        "arena    #bytes for 1 thread; #bytes are needed at once at most",
    ]


def test_values_come_from_files_and_go_to_files(small: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", 10 * X)
    given = ("--input", "x=x.npy", "--input", "a=b=a.npy")
    result = small("run", "small.onnx", *given, "--output", "y.npy", "--output", "sum=s.npy")
    assert (result.returncode, result.stderr) == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), (12 * X + 2 * C).T)
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), 11 * X + C)


def test_a_default_is_replaced_by_a_file(small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defaulted = replace(SMALL, defaults=(Input("c", FLOAT32, (1, 3)),))
    monkeypatch.setattr(compiling, "of_source", lambda path, progress: compiling.of_model(defaulted, progress))
    np.save(tmp_path / "c.npy", 3 * C)
    for more, factor in (((), 1), (("--input", "c=c.npy"), 3)):
        given = ("--input", "x=x.npy", "--input", "a=b=x.npy", *more)
        result = small("run", "small.onnx", *given, "--output", "y.npy")
        assert (result.returncode, result.stderr) == (0, "")
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), ((X + C * factor) * 2 + X).T)
    assert "input    c: float32[1, 3]\n" in result.stdout


def test_random_numbers_are_the_same_for_a_seed(small: Run, tmp_path: Path) -> None:
    found = []
    for seed in (1, 1, 2):
        small("run", "small.onnx", "--random", "--dim", "columns=3", "--seed", seed, "--output", "y.npy")
        found.append(np.load(tmp_path / "y.npy"))
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].shape == (3, 1)
    assert not np.array_equal(found[0], found[2])


def test_json_for_programs(small: Run) -> None:
    result = small("run", "small.onnx", "--input", "x=x.npy", "--random", "--json", "--threads", 1)
    found = json.loads(result.stdout)
    assert found["inputs"] == [
        {"name": "x", "dtype": "float32", "shape": [2, 3]},
        {"name": "a=b", "dtype": "float32", "shape": [2, 3]},
    ]
    assert found["outputs"][0] == {"name": "y", "dtype": "float32", "shape": [3, 2]}
    assert (found["threads"], found["weight_bytes"]) == (1, 12)
    assert 1 <= found["kernels"] <= found["steps"] <= 4
    assert found["seconds"] > 0
    shown = json.loads(small("inspect", "small.onnx", "--shape", "x=2,3", "--stage", "plan", "--json").stdout)
    assert (shown["model"], shown["stage"], shown["node"]) == ("small", "plan", None)


def test_explain_says_what_passes_did_and_what_nodes_cost(small: Run) -> None:
    result = small("run", "small.onnx", "--random", "--shape", "x=2,3", "--explain")
    assert result.returncode == 0
    assert "common: " in result.stdout
    rows = re.findall(
        r"^ +\d+ +\d+\.\d+ +\d+\.\d+ +\d+\.\d+ +\w+ \d+\.\d+ +(\d+\.\d+) +\d+%  \w+ -> ", result.stdout, re.MULTILINE
    )
    assert 2 <= len(rows) <= 4
    table = result.stdout[result.stdout.index(" node ") :]
    times = {name: float(re.search(rf"^ +{name} +(\d+\.\d) +by ", table, re.MULTILINE)[1])
             for name in ("sum", "run", "call")}  # fmt: skip
    assert times["sum"] == pytest.approx(sum(map(float, rows)), abs=0.1 * len(rows))
    assert times["sum"] <= times["run"] + 0.1
    assert "MMAC: million multiply-adds" in result.stdout
    told = json.loads(small("run", "small.onnx", "--random", "--shape", "x=2,3", "--explain", "--json").stdout)
    assert any(line.startswith(" node ") for line in told["explanation"])
    without = small("inspect", "small.onnx", "--shape", "x=2,3", "--explain")
    assert re.search(r"^ +0 +\d\.\d+ +0\.\d +\d+\.\d +\w+ \d+\.\d +\w+ -> ", without.stdout, re.MULTILINE)


def test_graphs_after_each_pass(small: Run) -> None:
    result = small("inspect", "small.onnx", "--shape", "x=2,3")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("# resolved\ngraph small {\n  input x: float32[2, 3]\n")
    names = re.findall(r"^# (\w+)", result.stdout, re.MULTILINE)
    assert names[0] == "resolved"
    assert "dead" in names
    one = small("inspect", "small.onnx", "--shape", "x=2,3", "--after", "resolved").stdout
    data = {Data(C).digest: Data(C)}
    assert len(parse_graph(one, data).nodes) == 5
    assert one in result.stdout


def test_plan_and_program(small: Run) -> None:
    plan = small("inspect", "small.onnx", "--shape", "x=2,3", "--stage", "plan").stdout
    assert re.match(r"\d steps by \d kernels; 0 views\n", plan)
    assert "weight 0: c: float32[1, 3]\n" in plan
    program = small("inspect", "small.onnx", "--shape", "x=2,3", "--stage", "program").stdout
    assert "define i32 @opgen_program(ptr %kernels" in program


@pytest.mark.parametrize("stage", ["spec", "model", "loop", "schedule", "scheduled", "legal", "llvm", "asm", "cuda"])
def test_every_stage_of_a_node(small: Run, stage: str) -> None:
    result = small("inspect", "small.onnx", "--shape", "x=2,3", "--node", 0, "--stage", stage)
    assert (result.returncode, result.stderr) == (0, "")
    if stage == "spec":
        assert load_text(result.stdout).ops
    if stage == "loop":
        assert parse_kernel(result.stdout).parameters == ()


def test_the_parts_of_a_node(here: Run, tmp_path: Path) -> None:
    """A kernel that the program has taken apart is shown so."""
    weights = np.random.default_rng(1).standard_normal((16, 16, 3, 3)).astype(np.float32)
    nodes = [node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
    images = onnx_model(nodes, [float_input("x", (1, 16, 20, 20))], initialisers=[constant("w", weights)])
    (tmp_path / "images.onnx").write_bytes(images.SerializeToString())
    inspect = ("inspect", "images.onnx", "--node", "0", "--stage")
    for stage in ("legal", "llvm", "asm"):
        each, once = here(*inspect, stage), here(*inspect, stage, "--part", "first")
        assert each.stderr == once.stderr == "note: work on W alone runs once, as a kernel of its own\n"
        assert "first_" in once.stdout
        assert "first_" not in each.stdout
    wrong = here(*inspect, "loop", "--part", "first")
    assert wrong.stderr == "error: --part first: expected --stage legal, llvm, asm, got loop\n"


WRONG = [
    (("run", "small.onnx"), "no values for x: float32[rows, columns], a=b: float32[rows, 3]; give --input x=FILE.npy "
     "--input a=b=FILE.npy, or --random"),
    (("run", "small.onnx", "--random"), "input 'x' has open sizes (float32[rows, columns]); give them with --shape "
     "x=... or --dim columns=..."),
    (("run", "small.onnx", "--random", "--dim", "column=3"),
     "--dim column=3: the model has no dimension 'column'; did you mean 'columns'?"),
    (("run", "small.onnx", "--random", "--dim", "columns=x"),
     "--dim columns=x: expected sizes: integers of at most 18 digits, with commas between them"),
    (("run", "small.onnx", "--random", "--shape", "z=1"),
     "--shape z=1: the model has no input 'z'; there is x, a=b"),
    (("run", "small.onnx", "--random", "--shape", "x"), "--shape x: expected NAME=VALUE"),
    (("run", "small.onnx", "--random", "--shape", "x=2,3", "--shape", "x=2,3"), "--shape x is given twice"),
    (("run", "small.onnx", "--random", "--shape", "x=2,4"),
     "model small.onnx, node 'shifted' (Add): Add: argument"),
    (("run", "small.onnx", "--input", "y=x.npy"),
     "--input y=x.npy: expected NAME=FILE.npy with the name of an input; there is x, a=b"),
    (("run", "small.onnx", "--random", "--input", "x=none.npy"), "none.npy: No such file or directory"),
    (("run", "small.onnx", "--random", "--input", "x=small.onnx"),
     "small.onnx: expected an array in numpy's format (.npy): "),
    (("run", "small.onnx", "--random", "--input", "x=x.npy", "--output", "z=y.npy"),
     "--output z=y.npy: the model has no output 'z'; there is y, sum"),
    (("inspect", "small.onnx", "--shape", "x=2,3", "--node", "nobody"),
     "--node nobody: there is no such node; they are 0 to "),
    (("inspect", "small.onnx", "--shape", "x=2,3", "--stage", "asm"), "--stage asm is of nodes: name one with --node"),
    (("inspect", "small.onnx", "--shape", "x=2,3", "--node", "0", "--stage", "plan"),
     "--stage plan is of whole models"),
    (("inspect", "small.onnx", "--shape", "x=2,3", "--after", "deed"),
     "--after deed: no such pass; did you mean 'dead'?"),
    (("inspect", "small.onnx", "--attr", "a=1"), "--attr cannot be given: small.onnx is a model"),
    (("inspect", "small.onnx", "--shape", "x=2,3", "--node", "0", "--stage", "asm", "--part", "first"),
     "--part first: nothing that this kernel computes depends on constants alone"),
    (("inspect", "small.onnx", "--shape", "x=2,3", "--part", "first"),
     "--part cannot be given: it is of nodes (--node)"),
    (("inspect", "Conv2D", "--part", "first"), "--part cannot be given: Conv2D is an op"),
    (("inspect", "Conv2D", "--node", "0"), "--node cannot be given: Conv2D is an op"),
    (("inspect", "Conv2D", "--stage", "plan"), "--stage plan is of models (files named *.onnx); 'Conv2D' is an op"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_is_asked_wrongly_is_said(small: Run, arguments: tuple[str, ...], message: str) -> None:
    result = small(*arguments)
    assert result.returncode == 1
    assert result.stderr.startswith(f"error: {message}")


def test_a_node_by_its_name(small: Run) -> None:
    graph = small("inspect", "small.onnx", "--shape", "x=2,3", "--stage", "graph", "--after", "dead").stdout
    name = re.findall(r"^  (\w+): \w+: float32", graph, re.MULTILINE)[0]
    named = small("inspect", "small.onnx", "--shape", "x=2,3", "--node", name)
    assert named.stdout == small("inspect", "small.onnx", "--shape", "x=2,3", "--node", 0).stdout


def test_an_input_that_does_not_fit_is_refused(small: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", X.astype(np.float64))
    result = small("run", "small.onnx", "--random", "--input", "x=wide.npy")
    assert result.returncode == 1
    assert result.stderr == "error: small: argument 'x': expected float32, given float64[2, 3]\n"


def test_a_file_with_several_arrays_is_no_input(small: Run, tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.savez(stream, X, X)
    (tmp_path / "x.npz").write_bytes(stream.getvalue())
    result = small("run", "small.onnx", "--random", "--input", "x=x.npz")
    assert result.stderr.startswith("error: x.npz: expected one array in numpy's format (.npy)")


def test_what_is_a_model() -> None:
    assert models.is_model("a/b.onnx")
    assert models.is_model("B.ONNX")
    assert not models.is_model("Conv2D")
