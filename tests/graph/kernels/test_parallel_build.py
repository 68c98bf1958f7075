"""Kernels are built by several processes, each once, and a program that was made before is not made again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opgen.compiler.request import OpVariant
from opgen.compiler.symbolic import CLOSED
from opgen.diagnostics import InternalError
from opgen.graph.compiled.compiled import CompiledModel
from opgen.graph.ir.bound import bound
from opgen.graph.ir.nodes import Graph
from opgen.graph.kernels import kernels, worker
from opgen.graph.kernels import parallel_build as making
from opgen.graph.kernels.interpret import compiled, interpret
from opgen.graph.kernels.kernels import Wanted, wanted
from opgen.graph.kernels.worker import Worker, WorkerLostError
from opgen.graph.program import program
from opgen.runtime.kernels.loaded import Loaded
from tests.graph.random_graphs import assert_same
from tests.graph.steps import Steps, uniform


def of_many_kernels(count: int = 8) -> Graph:
    """Sums of matrices of different sizes."""
    steps = Steps()
    one = steps.input(1, 1)
    return steps.graph(*(steps("Add", steps.input(k + 1, 3), one) for k in range(count)))


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in the cache, nor loaded."""
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("opgen.runtime.kernels.loaded._loaded", Loaded())


def checked(graph: Graph, told: list[tuple[int, int]] | None = None) -> CompiledModel:
    progress = None if told is None else lambda done, of, _: told.append((done, of))
    model = CompiledModel.of_graph(graph, progress)
    inputs = dict(uniform(graph.inputs))
    found = model(*inputs.values())
    assert_same(found if isinstance(found, tuple) else (found,), interpret(graph, inputs, compiled))
    return model


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("cpus", [1, 3])
def test_other_processes_help(cpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "available_cpus", lambda: cpus)
    here: list[str] = []
    monkeypatch.setattr(making, "make", lambda want: (here.append(want.key), kernels.make(want))[1])
    told: list[tuple[int, int]] = []
    checked(of_many_kernels(), told)
    assert told == [(done, 8) for done in range(9)]
    assert len(here) == 8 if cpus == 1 else len(here) <= 8


@pytest.mark.usefixtures("empty_cache")
def test_what_a_lost_process_was_to_do_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    build = Worker.build

    def killed(self: Worker, want: Wanted) -> worker.Answer:
        os.kill(self._process.pid, signal.SIGKILL)
        return build(self, want)

    monkeypatch.setattr(Worker, "build", killed)
    monkeypatch.setattr(making, "available_cpus", lambda: 3)
    checked(of_many_kernels())


def test_a_process_builds_one_kernel_after_the_other_and_tells_of_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = of_many_kernels(2)
    calls = [bound(graph, node) for node in graph.nodes]
    monkeypatch.setenv("OPGEN_CACHE", "off")
    other = Worker()
    try:
        for call in calls:
            want = wanted(call)
            found = other.build(want)
            assert isinstance(found, tuple)
            assert found[0].key == kernels.make(want)[0].key
        without_sizes = replace(calls[0], environment=replace(calls[0].environment, symbols={}))
        assert isinstance(other.build(Wanted(without_sizes, CLOSED, "default")), KeyError)
    finally:
        other.end()
        other.close()
    with pytest.raises(WorkerLostError):
        other.build(wanted(calls[0]))


@pytest.mark.usefixtures("empty_cache")
def test_an_error_of_another_process_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "available_cpus", lambda: 3)
    monkeypatch.setattr(Worker, "build", lambda *_: InternalError("planted"))
    with pytest.raises(InternalError, match=r"^planted$"):
        checked(of_many_kernels())


def refused(what: str) -> Callable[..., object]:
    def refuse(*_: object, **__: object) -> object:
        raise AssertionError(f"{what} is made again")

    return refuse


@pytest.mark.usefixtures("empty_cache")
def test_a_program_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked(of_many_kernels(3))
    monkeypatch.setattr("opgen.runtime.kernels.loaded._loaded", Loaded())
    monkeypatch.setattr(program, "_made", refused("a program"))
    monkeypatch.setattr(OpVariant, "lowered", refused("a kernel"))
    model = CompiledModel.of_graph(of_many_kernels(3))
    found = model(*[np.ones(v.shape, np.float32) for v in of_many_kernels(3).inputs])
    assert all((a == 2).all() for a in found)


@pytest.mark.usefixtures("empty_cache")
def test_a_kernel_that_the_cache_dropped_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = of_many_kernels(3)
    model = checked(graph)
    for code in model.programs[0].program.kernels:
        (tmp_path / f"{code.key}.kernel").unlink()
    monkeypatch.setattr("opgen.runtime.kernels.loaded._loaded", Loaded())
    checked(graph)


@pytest.mark.usefixtures("empty_cache")
def test_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_CACHE", "off")
    checked(of_many_kernels(2))
