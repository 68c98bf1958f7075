"""`opgen inspect`: every stage, and every way to ask wrongly."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from opgen.cli.highlight import colored
from opgen.cli.inspect import LANGUAGES
from opgen.compiler import machines, toolchain
from opgen.compiler.artifact import STAGES
from opgen.loop.parse import parse_kernel
from opgen.machine.fields import flatten, is_rate
from opgen.runtime.measuring import rates as measure
from opgen.schedule.schedule import parse_schedule
from tests.cli.conftest import ROOT, Run

CHOSEN = ("loop", "schedule", "why", "scheduled", "legal", "llvm", "asm")
"""The stages of kernels that are chosen among algorithms."""

CALL = ("--shape", "input=1,8,8,3", "--shape", "filter=3,3,3,8", "--attr", "strides=1,1,1,1", "--attr", "padding=SAME")
WITH = ("--specs", ROOT / "specs")


def test_every_stage_of_an_artifact_can_be_asked_for() -> None:
    assert tuple(LANGUAGES) == (*STAGES, "cost")


@pytest.mark.parametrize(
    "stage", ["spec", "model", "loop", "schedule", "why", "scheduled", "legal", "llvm", "asm", "cuda"]
)
@pytest.mark.parametrize("call", [(), CALL], ids=["generic", "specialised"])
def test_every_stage_prints_plain_text(here: Run, stage: str, call: tuple[str, ...]) -> None:
    result = here("inspect", "Conv2D", "--stage", stage, *WITH, *call)
    assert result.returncode == 0
    notes = ["note: these prices go by assumed rates"] if stage == "why" else []
    notes += ["note: Conv2D is computed by its definition: it is estimated at"] if call and stage in CHOSEN else []
    lines = result.stderr.splitlines()
    assert all(any(line.startswith(note) for note in notes) for line in lines), result.stderr
    assert result.stdout.endswith("\n")
    assert "\x1b" not in result.stdout
    signs = {
        "spec": "op Conv2D {",
        "model": "sum[r < filter_height, s < filter_width, c < group_channels](",
        "why": "  <- chosen\n",
        "llvm": "define",
        "asm": ".text",
        "cuda": "__global__",
    }
    assert signs.get(stage, "") in result.stdout


def test_a_pipe_gets_the_same_text(opgen: Run, here: Run) -> None:
    arguments = ("inspect", "Conv2D", "--stage", "asm", *WITH, *CALL)
    assert opgen(*arguments).stdout == here(*arguments).stdout


def test_loop_ir_and_schedules_can_be_read_back(here: Run) -> None:
    for stage in ("loop", "scheduled", "legal"):
        assert parse_kernel(here("inspect", "conv2d", "--stage", stage, *WITH, *CALL).stdout).name
    assert parse_schedule(here("inspect", "conv2d", "--stage", "schedule", *WITH, *CALL).stdout).steps


def test_prices_by_assumed_rates_are_told_apart_from_this_machine_and_schedules_stay(
    here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rates are measured once a machine; what schedules go by is kept by `doctor --measure` alone."""
    host = toolchain.host()
    assumed = flatten(host.machine)
    calls: list[int] = []

    def measured(_: object) -> dict[str, float]:
        calls.append(1)
        return {n: v / 2 for n, v in assumed.items() if n in machines.MEASURED and is_rate(n)}

    monkeypatch.setattr(measure, "measure", measured)
    arguments = ("inspect", "Conv2D", *WITH, *CALL, "--stage")
    before = here(*arguments, "schedule").stdout
    first, second = here(*arguments, "why"), here(*arguments, "why")
    assert first.stderr == second.stderr
    assert first.stderr.startswith("note: these prices go by assumed rates; a core of this machine ")
    assert "multiplies and adds at 0.50" in first.stderr
    assert (first.stdout, len(calls)) == (second.stdout, 1)
    assert here(*arguments, "schedule").stdout == before
    assert [p.name.partition("-")[0] for p in (tmp_path / "cache").glob("*-*.json")].count("machine") == 0
    assert "these prices" not in here(*arguments, "why", "--target", "x86-64-v3").stderr
    machines.keep(host, measured(None))  # as `doctor --measure` does
    assert "these prices" not in here(*arguments, "why").stderr


def test_why_is_not_told_of_a_schedule_that_was_given(here: Run, tmp_path: Path) -> None:
    (tmp_path / "my.schedule").write_text("")
    result = here("inspect", "Conv2D", "--stage", "why", "--schedule", str(tmp_path / "my.schedule"), *WITH, *CALL)
    assert "--stage why tells how the scheduler chooses, and this schedule was given" in result.stderr


def test_the_cost_is_shown_of_an_op_and_of_what_a_device_limits(here: Run) -> None:
    shown = here("inspect", "Conv2D", "--stage", "cost", *WITH, *CALL).stdout
    assert "; measured " in shown
    assert "nearest limit: " in shown
    device = here("inspect", "Conv2D", "--stage", "cost", "--target", "cuda", *WITH, *CALL).stdout
    assert "not measured (a CUDA device's time is not measured here)" in device
    generic = here("inspect", "Conv2D", "--stage", "cost", *WITH)
    assert generic.returncode == 1
    assert "so its cost is not known: give the shapes of all inputs" in generic.stderr


def test_a_specialised_kernel_has_no_parameters_left(here: Run) -> None:
    generic = parse_kernel(here("inspect", "Conv2D", "--stage", "loop", *WITH).stdout)
    special = parse_kernel(here("inspect", "Conv2D", "--stage", "loop", *WITH, *CALL).stdout)
    assert len(generic.parameters) > 5
    assert special.parameters == ()


@pytest.mark.parametrize("policy", ["always", "never"])
def test_what_is_shown_is_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """The kernel that a call of the generated module compiles, and the one at the stage `legal`."""
    import importlib.util

    import numpy as np

    from opgen.bindings.generate import generate
    from opgen.compiler import toolchain
    from opgen.compiler.make import artifact
    from opgen.compiler.request import Compilation, OpVariant
    from opgen.lower import variant_of
    from opgen.spec import solve

    monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    generate([ROOT / "specs" / "nn_ops.op"], tmp_path)
    found = importlib.util.spec_from_file_location("shown_ops", tmp_path / "nn_ops.py")
    assert found is not None
    assert found.loader is not None
    ops = importlib.util.module_from_spec(found)
    found.loader.exec_module(ops)
    ops.conv2d(np.ones((1, 8, 8, 3), "f"), np.ones((3, 3, 3, 8), "f"), [1, 1, 1, 1], "SAME")
    (variant,) = ops._library.kernels["Conv2D"]._variants.values()
    compiled = variant.generic if policy == "never" else next(iter(variant.specialized.values()))

    module = ops._library.module()
    op = module.op("Conv2D")
    shapes = {"input": (1, 8, 8, 3), "filter": (3, 3, 3, 8)}
    call = solve(op, module, shapes, {}, {"strides": [1, 1, 1, 1], "padding": "SAME"})
    words = {"data_format": "NHWC"}
    source = OpVariant(module, op, variant_of(op, {"T": "float32"}, words))
    shown = artifact(Compilation(source, toolchain.host(), call if policy == "always" else None))
    assert (compiled.key, compiled.loaded.code_hash) == (shown.key, shown.code_hash)


LARGE = ("--shape", "input=1,56,56,64", "--shape", "filter=3,3,64,64", *CALL[4:])


def test_the_algorithm_that_calls_take_is_shown(here: Run) -> None:
    """A call of this size is computed by an algorithm: so is what is shown, unless another is asked for."""
    taken = here("inspect", "Conv2D", "--stage", "loop", *WITH, *LARGE)
    assert taken.stderr.startswith(
        "note: Conv2D is computed by the algorithm minimal_filtering: estimates are definition"
    )
    named = here("inspect", "Conv2D", "--stage", "loop", *WITH, *LARGE, "--algorithm", "minimal_filtering")
    definition = here("inspect", "Conv2D", "--stage", "loop", *WITH, *LARGE, "--algorithm", "definition")
    assert (named.stdout, named.stderr, definition.stderr) == (taken.stdout, "", "")
    assert definition.stdout != taken.stdout
    told = json.loads(here("inspect", "Conv2D", "--json", "--stage", "loop", *WITH, *LARGE).stdout)
    assert told["algorithm"] == "minimal_filtering"
    assert told["reason"].startswith("estimates are definition ")


def test_type_and_layout_choose_the_variant(here: Run) -> None:
    text = here("inspect", "Conv2D", "--stage", "loop", *WITH, "--dtype", "half", "--attr", "data_format=NCHW").stdout
    kernel = parse_kernel(text)
    assert {b.dtype.name for b in kernel.buffers} == {"float16"}
    assert "NCHW" in kernel.name
    one = here("inspect", "Conv2D", "--stage", "loop", *WITH, "--dtype", "T=half", "--attr", "data_format=NCHW").stdout
    assert one == text


def test_the_target_shows_in_the_assembly(here: Run) -> None:
    call = [c.replace("filter=3,3,3,8", "filter=3,3,3,32") for c in CALL]

    def assembly(target: str) -> str:
        return here("inspect", "Conv2D", "--stage", "asm", *WITH, *call, "--target", target).stdout

    assert "%zmm" in assembly("x86-64-v4")
    assert "%zmm" not in assembly("x86-64-v3")
    assert "%ymm" in assembly("x86-64-v3")
    assert "fmla" in assembly("aarch64")


def test_a_schedule_printed_edited_and_handed_in_is_used(here: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.schedule").write_text("# nothing but lanes\nsplit k 4 tail=exact\nvectorize k_i\n")
    result = here("inspect", "Conv2D", "--stage", "scheduled", *WITH, *CALL, "--schedule", "mine.schedule")
    assert result.returncode == 0
    assert "vector for k_i in 0 .. 4:" in result.stdout
    assert "parallel" not in result.stdout


@pytest.mark.parametrize(
    ("target", "step", "only"),
    [("host", "bind y block.x", "GPUs"), ("cuda", "pair c -> input, filter_pairs", "CPUs")],
)
def test_a_step_for_another_target_is_refused(here: Run, tmp_path: Path, target: str, step: str, only: str) -> None:
    (tmp_path / "mine.schedule").write_text(f"unroll s\n{step}\n")
    result = here("inspect", "Conv2D", *WITH, *CALL, "--target", target, "--schedule", "mine.schedule")
    assert result.returncode == 1
    assert result.stderr.startswith(f"mine.schedule:2:1: error[schedule]: {step}: a step for {only}")


def test_a_wrong_schedule_is_refused_with_its_place(here: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.schedule").write_text("split k 4\nvectorise k_i\n")
    result = here("inspect", "Conv2D", *WITH, *CALL, "--schedule", "mine.schedule")
    assert result.returncode == 1
    assert result.stderr == (
        "mine.schedule:2:1: error[schedule]: there is no step 'vectorise'\n"
        "   |\n"
        " 2 | vectorise k_i\n"
        "   | ^^^^^^^^^\n"
        "   = help: did you mean 'vectorize'?\n"
        "\n"
        "1 error; 'opgen explain schedule' says more\n"
    )


def test_a_schedule_that_is_no_text_is_refused(here: Run, tmp_path: Path) -> None:
    (tmp_path / "my.schedule").write_bytes(b"split \xff 4 -> a, b\n")
    result = here("inspect", "Conv2D", *WITH, "--schedule", tmp_path / "my.schedule")
    message = f"error: {tmp_path / 'my.schedule'}: not UTF-8 text (byte 6)\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", message)


def test_output_goes_to_a_file(here: Run, tmp_path: Path) -> None:
    result = here("inspect", "Conv2D", "--stage", "llvm", *WITH, "--output", "conv.ll")
    assert (result.returncode, result.stdout) == (0, "")
    assert (tmp_path / "conv.ll").read_text() == here("inspect", "Conv2D", "--stage", "llvm", *WITH).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Conv2E"], f"{ROOT / 'specs'} has no op 'Conv2E'; did you mean 'Conv2D'?"),
        (["Conv2D", "--dtype", "fp32"], "--dtype fp32: no such type 'fp32'; did you mean 'float32'?"),
        (["Conv2D", "--dtype", "flot32"], "--dtype flot32: no such type 'flot32'; did you mean 'float32'?"),
        (
            ["Conv2D", "--dtype", "int64"],
            "--dtype int64: T is one of float16, bfloat16, float32, float64, int32",
        ),
        (["Conv2D", "--dtype", "U=float32"], "--dtype U=float32: no type variable 'U'; there is T"),
        (["Conv2D", "--shape", "inputs=1"], "--shape inputs=1: no such name 'inputs'; did you mean 'input'?"),
        (["Conv2D", "--shape", "input"], "--shape input: expected NAME=VALUE"),
        (["Conv2D", "--shape", "input=1,x"], "--shape input=1,x: expected integers with commas between them"),
        (["Conv2D", "--shape", "input=1", "--shape", "input=2"], "--shape input is given twice"),
        (
            ["Conv2D", "--attr", "padding=SAME"],
            "--attr padding: the kernel for all sizes takes every value; "
            "give shapes too: --shape input=... --shape filter=...",
        ),
        (
            ["Conv2D", "--attr", "data_format=NHCW"],
            "--attr data_format: there is no value 'NHCW'; did you mean 'NHWC'?",
        ),
        (["Conv2D", "--attr", "use_cudnn_on_gpu=1"], "--attr use_cudnn_on_gpu=1: expected true or false"),
        (["Conv2D", "--target", "cuda", "--stage", "why"], "--target cuda has no stage why; it has cuda and ptx"),
        (["Conv2D", "--target", "cuda", "--stage", "asm"], "--target cuda has no stage asm; it has cuda and ptx"),
        (["Conv2D", "--target", "x86-64-v9"], "unknown target 'x86-64-v9'; did you mean 'x86-64-v4'?"),
    ],
)
def test_what_is_asked_wrongly_is_said(here: Run, arguments: list[str], message: str) -> None:
    result = here("inspect", *arguments, *WITH)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"error: {message}\n")


def test_a_call_that_has_no_meaning_is_refused(here: Run) -> None:
    result = here("inspect", "Conv2D", *WITH, *CALL[:-1], "padding=SMAE")
    assert result.returncode == 1
    assert result.stderr.startswith("error: Conv2D: argument 'padding': expected one of SAME, VALID, EXPLICIT")


def test_an_unknown_stage_is_a_wrong_command_line(here: Run) -> None:
    assert here("inspect", "Conv2D", "--stage", "assembler", *WITH).returncode == 2


@pytest.mark.parametrize("stage", ["spec", "model", "loop", "schedule", "llvm", "asm", "cuda"])
def test_colours_add_nothing_but_colours(here: Run, stage: str) -> None:
    import click

    text = here("inspect", "Conv2D", "--stage", stage, *WITH).stdout
    shown = colored(text, LANGUAGES[stage])
    assert "\x1b[" in shown
    assert click.unstyle(shown) == text


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_colours_unless_it_asks_for_none(tmp_path: Path) -> None:
    assert "\x1b[" in on_a_terminal({})
    assert "\x1b[" not in on_a_terminal({"NO_COLOR": "1"})


def on_a_terminal(environment: dict[str, str]) -> str:
    """What `opgen inspect` writes to stdout when that is a terminal."""
    import pty
    import subprocess

    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "opgen", "inspect", "Conv2D", "--stage", "spec"]
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | environment
    process = subprocess.Popen(command, cwd=ROOT, stdout=inner, stderr=subprocess.DEVNULL, env=env)
    os.close(inner)
    text = b""
    while True:
        try:
            piece = os.read(outer, 4096)
        except OSError:  # the terminal is closed
            break
        if not piece:
            break
        text += piece
    os.close(outer)
    assert process.wait() == 0
    return text.decode()


@pytest.mark.parametrize("stage", ["spec", "model", "loop", "schedule", "scheduled", "legal", "llvm"])
def test_every_stage_of_an_algorithm(here: Run, stage: str) -> None:
    result = here("inspect", "Conv2D", "--algorithm", "minimal_filtering", "--stage", stage, *WITH, *CALL)
    assert (result.returncode, result.stderr) == (0, "")
    signs = {
        "spec": "algorithm minimal_filtering {",
        "model": "where i < 4, j < 4, c < group_channels",
        "schedule": "vectorize",
    }
    assert signs.get(stage, "conv2d_minimal_filtering_float32_NHWC") in result.stdout


def test_algorithms_are_listed(here: Run) -> None:
    listed = here("inspect", "Conv2D", "--algorithms", *WITH).stdout
    assert "minimal_filtering: T in {float16, float32, float64} when filter_height == 3 and filter_width == 3" in listed
    assert "minimal_filtering_4 (optional): " in listed
    none = here("inspect", "DepthwiseConv2dNative", "--algorithms", *WITH).stdout
    assert none == "'DepthwiseConv2dNative' is computed by its definition only.\n"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--algorithm", "minimal_filterin"), "has no such algorithm; did you mean 'minimal_filtering'?"),
        (("--algorithm", "minimal_filtering", "--dtype", "bfloat16"), "is not for these types, shapes and attributes"),
        (("--algorithm", "minimal_filtering", "--target", "cuda"), "algorithms are for CPUs"),
    ],
)
def test_an_algorithm_that_is_not_to_be_had(here: Run, wrong: tuple[str, ...], message: str) -> None:
    result = here("inspect", "Conv2D", *WITH, *CALL, *wrong)
    assert result.returncode != 0
    assert message in result.stderr


FORMS = {
    "Add": ("pointwise", "--shape", "A=2,3", "--shape", "B=3"),
    "softmax": ("normalisation", "--shape", "input=?,?", "--attr", "axis=0"),
    "Concat": ("movement", "--shape", "inputs=2,3", "--shape", "inputs=2,4", "--attr", "axis=1", "--dtype", "int64"),
    "Split": ("movement", "--shape", "input=4,6", "--sizes", "split=1,3", "--results", "2"),
    "Clip": ("pointwise", "--shape", "input=5", "--shape", "least="),
    "Resize": ("resize", "--shape", "X=1,1,4,4", "--sizes", "scales=1,1,2,0.5", "--attr", "mode=linear"),
    "Cast": ("pointwise", "--shape", "input=3,4", "--attr", "to=int8", "--dtype", "T=float64"),
    "CumSum": ("recurrent", "--shape", "x=3,4", "--sizes", "axis=1"),
}
"""Calls of generic ops: tensors that stretch, sizes left open, several tensors and results, optional ones, values."""


@pytest.mark.parametrize("op", FORMS)
def test_a_generic_op_is_that_of_a_call(here: Run, op: str) -> None:
    family, *call = FORMS[op]
    shown = {}
    for stage in ("model", "loop"):
        result = here("inspect", op, "--stage", stage, *call, "--specs", ROOT / f"specs/onnx/{family}.op")
        assert (result.returncode, result.stderr) == (0, ""), stage
        shown[stage] = result.stdout
    assert "..." not in shown["model"]
    assert len(parse_kernel(shown["loop"]).parameters) == 2 * (op == "softmax")  # the sizes that are open


@pytest.mark.parametrize("stage", ["spec", "schedule", "scheduled", "legal", "llvm", "asm", "cuda"])
def test_a_generic_op_at_every_stage(here: Run, stage: str) -> None:
    family, *call = FORMS["Add"]
    result = here("inspect", "Add", "--stage", stage, *call, "--specs", ROOT / f"specs/onnx/{family}.op")
    assert (result.returncode, result.stderr) == (0, "")
    signs = {"spec": "C[i...] = A[i...]", "llvm": "define", "asm": ".text", "cuda": "__global__"}
    assert signs.get(stage, "") in result.stdout


def test_a_generic_op_without_a_call_is_shown_as_declared(here: Run) -> None:
    result = here("inspect", "MatMul", "--stage", "spec", *WITH)
    assert result.stdout.startswith("op MatMul {\n")
    assert "T[batch... | 1, rows..., depth]" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["Softmax", "--attr", "axis=0"],
            "'Softmax' is generic: its kernels are those of calls, and this one lacks --shape input=...",
        ),
        (
            ["Concat"],
            "'Concat' is generic: its kernels are those of calls, and this one lacks --shape inputs=... --attr "
            "axis=...; such a call is --shape inputs=1,2 --shape inputs=1,2 --attr axis=0",
        ),
        (
            ["Einsum"],
            "'Einsum' is generic: its kernels are those of calls, and this one lacks --shape Inputs=... --attr "
            "equation=...; such a call is --shape Inputs=2,2 --shape Inputs=2 --attr 'equation=ij,j->i'",
        ),
        (["Add", "--shape", "A=2,?", "--shape", "B=2"], "--shape: the sizes of all inputs are open (?,?), or none are"),
        (["Add", "--shape", "A=2", "--shape", "A=2", "--shape", "B=2"], "--shape A is given twice"),
        (["Add", "--shape", "C=2"], "--shape C=2: no such name 'C'; there is A, B"),
        (["Add", "--shape", "A=2", "--shape", "B=2", "--dtype", "bool"],
         "--dtype bool: T is one of int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, "),
        (["Add", "--shape", "A=2", "--shape", "B=3"],
         "Add: argument 'B': expected dimension 0 to be 2 or 1 (dims_0), given shape [3]"),
        (["Softmax", "--shape", "input=2,3", "--attr", "axis=2"],
         "Softmax: argument 'axis': expected an axis from -2 to 1, given 2"),
        (["Conv2D", "--results", "2"], "--results 2: 'Conv2D' is not generic, and has the results that it has"),
    ],
)  # fmt: skip
def test_calls_of_generic_ops_that_are_wrong(here: Run, arguments: list[str], message: str) -> None:
    family = {
        "Softmax": "onnx/normalisation",
        "Concat": "onnx/movement",
        "Conv2D": "nn_ops",
        "Einsum": "onnx/contraction",
    }
    specs = ROOT / f"specs/{family.get(arguments[0], 'onnx/pointwise')}.op"
    result = here("inspect", *arguments, "--specs", specs)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {message}")
