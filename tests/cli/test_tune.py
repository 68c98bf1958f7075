"""`opgen tune`: a search as a user runs it, what is kept, and every way to ask wrongly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opgen.cli.arguments import read_arguments
from opgen.cli.inspect_op import find, request
from opgen.compiler import toolchain, tuned
from opgen.compiler.choose import choose
from opgen.runtime import threads
from opgen.runtime.measuring import tuner
from opgen.schedule.schedule import Schedule
from tests.cli.conftest import ROOT, Run

WITH = ("--specs", ROOT / "specs")
CALL = ("--shape", "input=1,6,6,8", "--shape", "filter=3,3,8,16", "--attr", "strides=1,1,1,1", "--attr", "padding=SAME")


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tuned.jsonl"
    monkeypatch.setenv("OPGEN_TUNED", str(path))
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    return path


def without_note(stderr: str) -> str:
    """Return what is said without the notes, one for each call, that the machine is busy while tests run."""
    note = r"^note: \w+: the default schedule took from .* tune again when it is idle\n"
    return re.sub(note, "", stderr, flags=re.MULTILINE)


def test_a_busy_machine_is_told_with_the_spread_of_times(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    @contextmanager
    def working(what: str) -> Iterator[Callable[[str], None]]:
        told.append(what)
        yield told.append

    monkeypatch.setattr("opgen.cli.tune.working", working)
    monkeypatch.setattr(tuner, "STEADY", 0.0)
    result = here("tune", "Conv2D", *WITH, *CALL, "--seconds", "1")
    pattern = r"note: Conv2D: the default schedule took from [\d.]+ [um]s to [\d.]+ [um]s: this machine is busy, .*\n"
    assert re.fullmatch(pattern, result.stderr)
    assert told[0] == "tuning Conv2D"
    assert [int(re.search(r"(\d+) others tried", line)[1]) for line in told[1:]] == list(range(1, len(told)))
    assert re.search(rf"default .* us, {len(told) - 1} others tried", result.stdout)
    monkeypatch.setattr(tuner, "STEADY", float("inf"))
    assert here("tune", "Conv2D", *WITH, *CALL, "--seconds", "0").stderr == ""


def test_a_search(here: Run) -> None:
    result = here("tune", "Conv2D", *WITH, *CALL, "--seconds", "1")
    assert (result.returncode, without_note(result.stderr)) == (0, "")
    assert result.stdout.startswith("Conv2D input=1,6,6,8 filter=3,3,8,16 strides=1,1,1,1 padding=SAME: default ")
    assert "others tried, " in result.stdout


def test_a_schedule_written_by_hand_is_timed(here: Run, tmp_path: Path) -> None:
    """One that leaves every loop as it is: slower."""
    (tmp_path / "serial.schedule").write_text("# nothing\n")
    hand = ("--schedule", "serial.schedule", "--seconds", "0")
    result = here("tune", "Conv2D", *WITH, *CALL, *hand)
    assert (result.returncode, without_note(result.stderr)) == (0, "")
    assert ", 1 others tried, the given one " in result.stdout
    assert result.stdout.endswith(" us, none faster\n")


def test_a_schedule_that_computes_something_else_is_not_timed(
    here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a step that is wrong would make one."""
    monkeypatch.setattr(tuner, "_alike", lambda *_: False)
    (tmp_path / "serial.schedule").write_text("# nothing\n")
    result = here("tune", "Conv2D", *WITH, *CALL, "--schedule", "serial.schedule", "--seconds", "0")
    assert ", 0 others tried, the given one not timed: its results are not those of the default one" in result.stdout


LARGE = ("--shape", "input=1,56,56,64", "--shape", "filter=3,3,64,64", *CALL[4:], "--seconds", "0")


def test_it_is_said_if_calls_take_another_kernel_than_the_one_tuned(
    here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definition where calls take an algorithm, the algorithm that they take, and one where they do not; on a
    machine whose memory is fast beside its arithmetic, whatever the tests run on.
    """
    near = {"fma_per_second": 2e9, "l2": {"bytes_per_second": 1e11}, "l3": {"bytes_per_second": 1e11}}
    (tmp_path / "machine.json").write_text(json.dumps(near))
    monkeypatch.setenv("OPGEN_MACHINE", str(tmp_path / "machine.json"))
    assert here("tune", "Conv2D", *WITH, *LARGE).stdout.endswith(
        "none faster; such calls take another algorithm now (OPGEN_ALGORITHMS, --algorithm)\n"
    )
    taken = here("tune", "Conv2D", *WITH, *LARGE, "--algorithm", "minimal_filtering").stdout
    assert " padding=SAME by minimal_filtering: default " in taken
    assert taken.endswith("none faster\n")
    small = here("tune", "Conv2D", *WITH, *CALL, "--seconds", "0", "--algorithm", "minimal_filtering").stdout
    assert small.endswith("; such calls take the definition now (OPGEN_ALGORITHMS, --algorithm)\n")
    assert here("tune", "Conv2D", *WITH, *CALL, "--seconds", "0").stdout.endswith("none faster\n")


@pytest.mark.parametrize(("call", "count"), [(CALL, "1 thread "), (LARGE, "2 threads ")])
def test_the_threads_that_calls_take_are_kept(
    here: Run, monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...], count: str
) -> None:
    """A short kernel's is one, whatever number is set; with a gain as planted."""
    monkeypatch.setattr(threads, "get_num_threads", lambda: 2)
    monkeypatch.setattr(tuner, "tune", lambda *_: tuner.Found(Schedule(), 2e-6, 1e-6, 1))
    assert "kept one of 1.0 us" in here("tune", "Conv2D", *WITH, *call).stdout
    assert f", {count}" in here("tune", "--list").stdout


def test_an_illegal_schedule_is_refused_and_nothing_is_kept(here: Run, tmp_path: Path, file: Path) -> None:
    (tmp_path / "mine.schedule").write_text("unroll s\nvectorize c\n")
    result = here("tune", "Conv2D", *WITH, *CALL, "--schedule", "mine.schedule", "--seconds", "0")
    assert result.returncode == 1
    assert result.stderr.startswith("mine.schedule:2:1: error[schedule]: vectorize c: ")
    assert not file.exists()


def test_calls_of_a_file(here: Run, tmp_path: Path) -> None:
    call = {
        "op": "Conv2DBackpropInput",
        "dtype": "float64",
        "shapes": {"filter": [3, 3, 2, 4], "out_backprop": [1, 5, 5, 4]},
        "sizes": {"input_sizes": [1, 5, 5, 2]},
        "attrs": {"strides": [1, 1, 1, 1], "padding": "SAME", "use_cudnn_on_gpu": True},
    }
    (tmp_path / "calls.json").write_text(json.dumps([call, {**call, "dtype": "float32"}]))
    result = here("tune", *WITH, "--calls", tmp_path / "calls.json", "--seconds", "0.2")
    assert (result.returncode, without_note(result.stderr)) == (0, "")
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["Conv2DBackpropInput", "float64"],
        ["Conv2DBackpropInput", "float32"],
    ]


def test_what_is_kept_is_used_listed_and_forgotten(here: Run, file: Path) -> None:
    shown = here("inspect", "Conv2D", "--stage", "schedule", *WITH, *CALL).stdout.splitlines()
    changed = [line for line in shown if not line.startswith("parallel")]
    assert here("tune", "--list").stdout == f"0 schedules ({file})\n"
    module, op = find("Conv2D", ROOT / "specs")
    given = read_arguments(op, (), CALL[1:4:2], (), CALL[5::2])
    kernel = choose(request(module, op, given, "host", None)).kernel
    key = tuned.key_of(kernel, toolchain.host())
    tuned.store(tuned.Entry(key, "Conv2D x", "cpu", 1, 2.0, 1.0, tuple(changed)))
    assert here("inspect", "Conv2D", "--stage", "schedule", *WITH, *CALL).stdout.splitlines() == changed
    first, line = here("tune", "--list").stdout.splitlines()
    assert first == f"1 schedule ({file})"
    assert line.endswith("cpu, 1 thread  2.0 -> 1.0 us  Conv2D x")
    assert here("tune", "--forget", "Conv2D").stdout == "forgot 1 schedule\n"
    assert here("inspect", "Conv2D", "--stage", "schedule", *WITH, *CALL).stdout.splitlines() == shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is nothing to tune: give an OP with --shape, or --calls FILE"),
        (("Conv2D", *WITH), "Conv2D: the shapes of all inputs are needed (--shape)"),
        (("Conv2D", *CALL, "--specs", "elsewhere"), "Path 'elsewhere' does not exist"),
        (("Conv2E", *WITH, *CALL), "did you mean 'Conv2D'?"),
        (("--forget", "nothing"), "nothing was kept under 'nothing' (opgen tune --list shows what is)"),
    ],
)
def test_wrong_questions(here: Run, arguments: tuple[str, ...], message: str) -> None:
    result = here("tune", *arguments)
    assert result.returncode != 0
    assert message in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("{}", "expected a list of calls"),
        ("[1]", "expected an object with an op, given 1"),
        ('[{"op": "Conv2D", "attr": {}}]', "a call of Conv2D has no 'attr'; did you mean 'attrs'?"),
        ('[{"op": "Conv2D", "shapes": 1}]', "'shapes' of Conv2D: expected an object of names and values"),
    ],
)
def test_wrong_files(here: Run, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "calls.json").write_text(text)
    result = here("tune", *WITH, "--calls", tmp_path / "calls.json")
    assert result.returncode != 0
    assert message in result.stderr


def test_without_a_file(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_TUNED", "off")
    result = here("tune", "Conv2D", *WITH, *CALL)
    assert result.returncode != 0
    assert "set OPGEN_TUNED to a file, or turn the cache on" in result.stderr
