"""The benchmark: its cases, its workers and their protocol, and a sitting on tiny layers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tools import reference
from tools.bench import __main__ as bench
from tools.bench import peers
from tools.bench.contestants import Contestant, Worker, WorkerError, limits_worker, own_worker, peer_worker, places
from tools.bench.layers import DIRECTIONS, DTYPES, FORMATS, LAYERS, QUICK, Case, Choice, Tensors, read_cases
from tools.bench.limits import Limits
from tools.bench.limits import measure as measure_limits
from tools.bench.results import read_json
from tools.bench.session import differences, measure
from tools.bench.workers.protocol import Given
from tools.demo.agreement import relative_error

SMALL = Case("small", "dense", 1, 6, 7, 3, 8, 3, 3, 2, "SAME")
EVEN = Case("even", "dense", 2, 8, 6, 4, 5, 3, 2, 2, "SAME")
VALID = Case("valid", "dense", 1, 7, 6, 3, 4, 3, 3, 2, "VALID")
CHANNELWISE = Case("small_channels", "depthwise", 1, 6, 7, 4, 8, 3, 3, 1, "VALID")
STRIDED = Case("strided_channels", "depthwise", 2, 6, 6, 4, 4, 3, 3, 2, "SAME")
CASES = (SMALL, EVEN, VALID, CHANNELWISE, STRIDED)


@pytest.fixture(scope="module")
def worker(generated: Path) -> Iterator[Worker]:
    running = own_worker(generated)
    yield running
    running.close()


def test_the_layers_file_is_read_in_full() -> None:
    cases = read_cases(LAYERS, Choice(batches=(1, 8), directions=DIRECTIONS))
    assert len(cases) == 6 * len(json.loads(LAYERS.read_text())["layers"])
    assert set(QUICK) <= {case.layer for case in cases}
    assert len({case.name for case in cases}) == len(cases)
    first = next(c for c in cases if c.name == "r50_conv1/8/filter")
    assert first.output_shape == (8, 112, 112, 64)
    assert first.result_shape == first.filter_shape == (7, 7, 3, 64)
    assert first.flops == 2 * 8 * 112 * 112 * 64 * 7 * 7 * 3
    assert first.bytes == 4 * (8 * 224 * 224 * 3 + 7 * 7 * 3 * 64 + 8 * 112 * 112 * 64)
    (odd,) = read_cases(LAYERS, Choice(formats=("NCHW",), dtypes=("bfloat16",)), ("mb_7_960",))
    assert odd.name == "mb_7_960/1/forward/NCHW/bfloat16"
    assert odd.bytes == 2 * (2 * 7 * 7 * 960 + 9 * 960)


def test_a_filter_for_each_channel_has_fewer_terms() -> None:
    assert CHANNELWISE.filter_shape == (3, 3, 4, 2)
    assert CHANNELWISE.output_shape == (1, 4, 5, 8)
    assert CHANNELWISE.flops == 2 * 4 * 5 * 8 * 9


def test_an_unknown_layer_is_refused() -> None:
    with pytest.raises(SystemExit, match="no layer named nothing in"):
        read_cases(LAYERS, Choice(), ("nothing",))


def check(contestant: Contestant, case: Case, path: Path) -> None:
    """Prepares the case and compares the result with an independent float64 reference."""
    contestant.prepare(case, Tensors(3), path)
    given = Given(case.as_json(), 3)
    call = reference.Call([1, case.stride, case.stride, 1], [1, 1, 1, 1], case.padding, (), "NHWC")
    shape = case.filter_shape if case.kind == "dense" else reference.channelwise(case.filter_shape)
    if case.direction == "forward":
        expected = reference.forward(given.images, given.filter.reshape(shape), call)
    elif case.direction == "input":
        expected = reference.input_gradient(case.input_shape, given.filter.reshape(shape), given.gradient, call)
    else:
        expected = reference.filter_gradient(given.images, shape, given.gradient, call)
    result = np.load(path)
    assert result.shape == case.result_shape
    # arguments are rounded to the type first, each product by two roundings
    u = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(case.dtype, 0.0)
    slack = 3 * u * expected.magnitudes.reshape(result.shape).max()
    values = expected.values.reshape(result.shape)
    if slack:
        assert np.abs(result - values).max() <= slack
    else:
        assert relative_error(result.reshape(expected.values.shape), expected, "float32") <= 1


@pytest.mark.parametrize(("case", "direction"), list(product(CASES, DIRECTIONS)), ids=lambda v: getattr(v, "layer", v))
def test_our_worker_computes_what_the_case_says(worker: Worker, case: Case, direction: str, tmp_path: Path) -> None:
    check(Contestant(worker, "generated"), replace(case, direction=direction), tmp_path / "result.npy")


@pytest.mark.parametrize(("data_format", "dtype"), [pair for pair in product(FORMATS, DTYPES) if pair[1] != "float32"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_our_worker_knows_formats_and_types(
    worker: Worker, data_format: str, dtype: str, direction: str, tmp_path: Path
) -> None:
    case = replace(EVEN, data_format=data_format, dtype=dtype, direction=direction)
    check(Contestant(worker, "generated"), case, tmp_path / "result.npy")


def refusal(contestant: Contestant, case: Case, path: Path) -> str | None:
    """Why the contestant does not do the case; None if it does, and does it right."""
    try:
        check(contestant, case, path)
    except WorkerError as error:
        return str(error)
    return None


@pytest.mark.parametrize("kind", peers.KINDS, ids=lambda kind: kind.module)
def test_each_library_that_is_there_computes_the_same(kind: peers.Kind, tmp_path: Path) -> None:
    """In every direction, or it refuses with a reason: what is compared is the same work."""
    found = peers.find((), os.environ.get(peers.VARIABLE, ""))
    peer = next((p for p in found.peers if p.title == kind.title), None)
    if peer is None:
        pytest.skip(f"{kind.title}: {found.absent[kind.title]}")
    running = peer_worker(peer, 1)
    try:
        assert (running.library, bool(running.version)) == (kind.title, True)
        for variant, case, direction, data_format in product(running.variants, CASES, DIRECTIONS, FORMATS):
            one = replace(case, direction=direction, data_format=data_format)
            reason = refusal(Contestant(running, variant), one, tmp_path / "result.npy")
            assert reason is None or (len(reason) > 10 and (direction, data_format) != ("forward", "NHWC")), reason
    finally:
        running.close()


def test_a_sitting_gives_each_contestant_a_median(worker: Worker) -> None:
    row = measure(SMALL, 1, [Contestant(worker, "generated")], Tensors(), rounds=2)
    assert set(row.seconds) == set(row.spread) == {"opgen"}
    assert 0 < row.seconds["opgen"] < 1
    assert row.spread["opgen"] >= 0
    assert (row.refused, row.disagree) == ({}, {})


@pytest.mark.parametrize("offset", [0, 16, 48])
def test_arguments_begin_where_they_are_told_to(offset: int) -> None:
    given, plain = Given(SMALL.as_json(), 3, offset), Given(SMALL.as_json(), 3)
    assert {a.ctypes.data % 64 for a in (given.images, given.filter, given.gradient)} == {offset}
    turned = given.placed(given.images.transpose(0, 3, 1, 2), np.float16)
    assert turned.ctypes.data % 64 == offset
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(given.images, plain.images)
    np.testing.assert_array_equal(turned, plain.images.transpose(0, 3, 1, 2).astype(np.float16))


def test_the_machine_takes_its_turns_too(worker: Worker) -> None:
    machine = limits_worker(1)
    try:
        yardsticks = [Contestant(machine, variant) for variant in machine.variants]
        row = measure(SMALL, 1, [Contestant(worker, "generated")], Tensors(), 2, yardsticks)
    finally:
        machine.close()
    assert set(row.seconds) == set(row.spread) == {"opgen"}
    assert row.pace is not None
    assert row.pace.threads == 1
    assert 1e8 < row.pace.flops < 1e13
    assert 1e7 < row.pace.bytes < 1e13


def test_what_a_worker_refuses_is_a_row_and_not_the_end(worker: Worker) -> None:
    case = Case("impossible", "dense", 1, 2, 2, 3, 8, 5, 5, 1, "VALID")
    row = measure(case, 1, [Contestant(worker, "generated")], Tensors(), rounds=1)
    assert row.seconds == {}
    assert "a window no taller than the padded input" in row.refused["opgen"]
    assert measure(SMALL, 1, [Contestant(worker, "generated")], Tensors(), rounds=1).seconds


def test_a_worker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="No module named 'not_there'"):
        own_worker(tmp_path / "not_there.py")


def test_workers_share_the_last_processors(worker: Worker) -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("processors cannot be chosen here")
    ours = os.sched_getaffinity(0)
    assert places(1) == [max(ours)]
    assert set(places(len(ours) + 5)) == ours
    assert os.sched_getaffinity(worker._process.pid) == {max(ours)}


class Scripted(Contestant):
    """A contestant without a process: it takes the time it is told, and logs its turns."""

    log: list[str]
    result: float
    seconds: float

    @staticmethod
    def of(name: str, seconds: float, result: float, log: list[str]) -> Scripted:
        made = object.__new__(Scripted)
        made.__dict__.update(variant=name, seconds=seconds, result=result, log=log)
        return made

    @property
    def title(self) -> str:
        return self.variant

    def prepare(self, case: Case, tensors: Tensors, result: Path | None) -> float:
        if np.isnan(self.result):
            raise WorkerError("not today")
        if result is not None:
            np.save(result, np.full(case.result_shape, self.result, np.float32))
        return self.seconds

    def time(self, samples: int) -> list[float]:
        self.log.append(f"{self.variant}{samples}")
        return [self.seconds] * samples

    def forget(self) -> None:
        self.log.append(f"{self.variant} forgets")


def test_contestants_take_turns_and_each_begins_once() -> None:
    log: list[str] = []
    scripted = [Scripted.of(*x, log) for x in (("a", 0.001, 1.0), ("b", 0.5, 1.0), ("c", 0.001, np.nan))]
    row = measure(SMALL, 1, scripted, Tensors(), rounds=2)
    assert log == ["a3", "b1", "b1", "a3", "a forgets", "b forgets"]
    assert row.seconds == {"a": 0.001, "b": 0.5}
    assert row.refused == {"c": "not today"}


def test_a_contestant_that_dies_is_refused_and_the_others_go_on() -> None:
    class Dying(Scripted):
        def time(self, samples: int) -> list[float]:
            raise WorkerError("the worker ended with exit code -11")

        def forget(self) -> None:
            raise WorkerError("no one there")

    dying = object.__new__(Dying)
    dying.__dict__.update(variant="d", seconds=0.001, result=1.0, log=[])
    row = measure(SMALL, 1, [dying, Scripted.of("a", 0.5, 1.0, [])], Tensors(), rounds=3)
    assert row.seconds == {"a": 0.5}
    assert row.refused == {"d": "the worker ended with exit code -11"}


def test_results_that_differ_are_found() -> None:
    scripted = [Scripted.of(*x, []) for x in (("a", 0.001, 1.0), ("b", 0.001, 1.0 + 1e-6), ("c", 0.001, 1.1))]
    row = measure(SMALL, 1, scripted, Tensors(), rounds=1)
    assert set(row.disagree) == {"c"}
    assert row.disagree["c"] == pytest.approx(0.1, rel=1e-5)


def test_a_coarser_type_may_differ_more_and_another_shape_never(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.npy" for name in ("ours", "theirs", "other")}
    np.save(paths["ours"], np.full((2, 2), 4.0, np.float32))
    np.save(paths["theirs"], np.full((2, 2), 4.02, np.float32))
    np.save(paths["other"], np.full((4,), 4.0, np.float32))
    assert set(differences(SMALL, paths)) == {"theirs", "other"}
    assert set(differences(replace(SMALL, dtype="bfloat16"), paths)) == {"other"}


def test_peers_are_found_where_they_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    has = {("a", "torch"), ("b", "jax"), (sys.executable, "onnxruntime")}
    monkeypatch.setattr(peers, "importable", lambda python, module: (python, module) in has)
    found = peers.find(("torch=a", "TF=c", "b"))
    assert [(p.title, p.python) for p in found.peers] == [("PyTorch", "a"), ("JAX", "b")]
    assert found.absent == {"TensorFlow": "not in c", "ONNX Runtime": "not in b"}
    found = peers.find((), "jax=b")
    assert [p.title for p in found.peers] == ["JAX"]
    assert found.absent["PyTorch"] == "no interpreter was named for it"
    assert [p.title for p in peers.find(()).peers] == ["ONNX Runtime"]
    with pytest.raises(peers.PeerError, match="expected torch, tf, jax, ort before '=', given 'numpy'"):
        peers.find(("numpy=a",))


def test_only_what_an_interpreter_has_is_a_peer() -> None:
    assert peers.importable(sys.executable, "numpy")
    assert not peers.importable(sys.executable, "a_library_that_nobody_has")
    assert not peers.importable("/no/such/python", "numpy")


def test_the_limits_are_those_of_a_computer() -> None:
    limits = measure_limits(2)
    assert 1e9 < limits.flops < 1e13
    assert 1e8 < limits.bytes < 1e13
    assert limits.memory <= 1.5 * limits.bytes
    dense = Limits(1, SMALL.flops / 2.0, 1.0)
    assert dense.seconds(SMALL) == 2.0
    assert dense.seconds(replace(SMALL, dtype="float64")) == 4.0
    depthwise = Limits(1, CHANNELWISE.flops / 2.0, CHANNELWISE.bytes / 3.0)
    assert depthwise.seconds(CHANNELWISE) == 3.0
    assert depthwise.seconds_in_memory(CHANNELWISE) is None
    small = replace(depthwise, cache=CHANNELWISE.bytes - 1, memory=CHANNELWISE.bytes / 12.0)
    assert small.seconds_in_memory(CHANNELWISE) == 12.0
    assert replace(small, cache=CHANNELWISE.bytes).seconds_in_memory(CHANNELWISE) is None
    assert small.seconds_in_memory(SMALL) is None


LAYER = {"name": "a", "kind": "dense", "in_height": 8, "in_width": 8, "in_channels": 4, "out_channels": 8,
         "filter_height": 3, "filter_width": 3, "stride": 1, "padding": "SAME", "data_format": "NHWC"}  # fmt: skip


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    path = tmp_path / "layers.json"
    path.write_text(json.dumps({"layers": [LAYER]}))
    return path


def invoke(*arguments: object) -> Result:
    return CliRunner(env={peers.VARIABLE: None}).invoke(bench.main, [str(a) for a in arguments])


def test_a_whole_sitting_prints_tables_writes_json_and_draws(generated: Path, layers: Path, tmp_path: Path) -> None:
    output, picture = tmp_path / "results.json", tmp_path / "results.svg"
    absent = ("--peer-python", "ort=/no/such/python")  # the tests' own environment has it
    place = ("--layers", layers, "--layer", "a", "--module", generated, "--json", output, "--threads", 1)
    result = invoke("--quick", *place, "--plot", picture, "--peer-python", "torch=/no/such/python", *absent)
    assert result.exit_code == 0, result.output
    for words in (
        "limits of this machine", "% of limit", "a tiny call, opgen", "first call of another kernel: built",
        "absent: PyTorch: not in /no/such/python",
    ):  # fmt: skip
        assert words in result.output
    document = json.loads(output.read_text())
    assert [(row["case"]["layer"], row["threads"]) for row in document["rows"]] == [("a", 1)]
    assert document["rows"][0]["seconds"]["opgen"] > 0
    assert {o["name"] for o in document["overheads"]} >= {"opgen generate specs", "a tiny call, opgen"}
    assert picture.read_text().lstrip().startswith("<?xml")
    more = ("--append", "--no-overheads", "--batch", 1, "--rounds", 1, "--direction", "input", "--direction", "forward")
    assert invoke(*place, *absent, *more).exit_code == 0
    kept = read_json(output)
    assert [row.case.direction for row in kept.rows] == ["forward", "input"]
    assert kept.overheads
    again = invoke("--compare", output, output)
    assert again.exit_code == 0
    assert "2 rows in both runs; no library took part in both" in again.output
    assert "a tiny call, opgen" in invoke("--show", output).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--peer-python", "numpy=x"), "expected torch, tf, jax, ort before '='"),
        (("--plot", "results.pdf"), "expected a name that ends with .png or .svg, given results.pdf"),
        (("--explain", "a"), "expected LAYER/forward|input|filter, given 'a'"),
        (("--explain", "nothing/input"), "no layer named nothing"),
        (("--direction", "sideways"), "'sideways' is not one of"),
    ],
)
def test_mistakes_on_the_command_line_are_said(layers: Path, arguments: tuple[str, ...], message: str) -> None:
    result = invoke("--layers", layers, *arguments)
    assert result.exit_code != 0
    assert message in result.output + str(result.exception)


def test_files_that_are_no_results_are_said(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    for text, message in (("[]", "holds no results"), ('{"format": 1}', "has format 1, this benchmark reads 3")):
        path.write_text(text)
        result = invoke("--show", path)
        assert result.exit_code == 1
        assert message in result.output


def test_a_row_is_explained(generated: Path, layers: Path) -> None:
    result = invoke("--layers", layers, "--module", generated, "--explain", "a/filter", "--rounds", 1)
    assert result.exit_code == 0, result.output
    for words in ("a/1/filter, 1 threads", "cache level 2", "schedule:", "loads and stores", "bound by", "measured: "):
        assert words in result.output
