"""`opgen new`, `--json`, and the specs that come with opgen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import opgen as package
from tests.cli.conftest import ROOT, Run


def test_a_new_spec_is_right_formatted_and_runs(opgen: Run, tmp_path: Path) -> None:
    made = opgen("new", "row_sums")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.splitlines()[0] == "wrote  row_sums.op"
    assert opgen("check", "row_sums.op").stdout == "row_sums.op: 1 op, 0 functions\n"
    assert opgen("fmt", "--check", "row_sums.op").returncode == 0
    functions = package.load(tmp_path / "row_sums.op")
    assert functions.row_sums([[1.0, 2.0], [3.0, 4.0]], [10.0, 1.0], scale=0.5).tolist() == [6.0, 17.0]


def test_new_leaves_what_is_there(opgen: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.op").write_text("precious")
    again = opgen("new", "mine")
    assert (again.returncode, again.stderr) == (1, "error: mine.op is there already\n")
    assert (tmp_path / "mine.op").read_text() == "precious"


@pytest.mark.parametrize("name", ["a-b", "class", "../up", "", "é"])
def test_new_wants_the_name_of_a_module(opgen: Run, name: str, tmp_path: Path) -> None:
    refused = opgen("new", name)
    assert refused.returncode == 1
    assert refused.stderr == f"error: '{name}': expected the name of a Python module, such as my_ops\n"
    assert list(tmp_path.glob("*.op")) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("signal", " would hide a module of Python's"),
        ("output", ": the class of 'Output' would hide one that generated code uses"),
        ("len", ": the function of 'Len' would hide Python's built-in 'len'"),
    ],
)
def test_new_does_not_make_what_others_would_refuse(opgen: Run, tmp_path: Path, name: str, why: str) -> None:
    refused = opgen("new", name)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"error: '{name}'{why}; choose another name\n"
    assert list(tmp_path.glob("*.op")) == []


def test_check_as_json(opgen: Run, good: Path, bad: Path) -> None:
    right = opgen("check", good, "--json")
    assert (right.returncode, right.stderr) == (0, "")
    declared = {"file": str(good), "ops": [{"name": "ScaledSum", "function": "scaled_sum"}], "functions": []}
    assert json.loads(right.stdout) == {"files": [declared], "diagnostics": []}
    wrong = opgen("check", good, bad, "--json")
    assert (wrong.returncode, wrong.stderr) == (1, "")
    found = json.loads(wrong.stdout)
    assert found["files"] == [declared]
    assert {d["file"] for d in found["diagnostics"]} == {str(bad)}
    places = [(d["code"], d["line"], d["column"], d["end_line"], d["end_column"]) for d in found["diagnostics"]]
    assert places == sorted(places, key=lambda p: p[1])
    assert len(places) == 2


def test_inspect_as_json(opgen: Run, good: Path) -> None:
    shape = ("--shape", "x=8", "--shape", "y=8", "--attr", "alpha=3")
    shown = opgen("inspect", "ScaledSum", "--specs", good, "--stage", "schedule", *shape, "--json")
    assert (shown.returncode, shown.stderr) == (0, "")
    found = json.loads(shown.stdout)
    plain = opgen("inspect", "ScaledSum", "--specs", good, "--stage", "schedule", *shape).stdout
    assert found["text"] == plain
    assert (found["op"], found["stage"], found["types"]) == ("ScaledSum", "schedule", {"T": "float32"})
    assert (found["shapes"], found["attrs"]) == ({"x": [8], "y": [8]}, {"alpha": 3.0})
    assert json.loads(opgen("inspect", "ScaledSum", "--specs", good, "--algorithms", "--json").stdout) == []


def test_doctor_as_json(opgen: Run) -> None:
    found = json.loads(opgen("doctor", "--json").stdout)
    assert {"cpu", "llvm", "threads", "cache"} <= set(found)
    assert all(isinstance(finding, str) for finding in found.values())


def test_opgens_own_specs_are_found_by_name(opgen: Run, tmp_path: Path) -> None:
    assert opgen("check", "window.op").stdout == f"{ROOT / 'specs/window.op'}: 0 ops, 1 function\n"
    assert opgen("inspect", "Conv2D", "--stage", "spec").stdout.startswith("op Conv2D {")
    (tmp_path / "mine.op").write_text('import "window.op"\n')
    assert opgen("check", "mine.op").returncode == 0
    (tmp_path / "window.op").write_text('function window(a) -> b {\n  """One."""\n  return a\n}\n')
    assert opgen("check", "window.op").stdout == "window.op: 0 ops, 1 function\n"
    missing = opgen("check", "windows.op")
    assert missing.returncode == 2
    assert "'windows.op' does not exist" in missing.stderr


def test_loading_one_of_opgens_own_specs(tmp_path: Path) -> None:
    program = "import opgen; print(opgen.__version__, opgen.load('nn_ops.op').conv2d.__name__)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"})  # fmt: skip
    assert done.stdout == f"{package.__version__} conv2d\n"
