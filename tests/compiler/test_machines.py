"""The machine that kernels are scheduled for: where its numbers come from; kernels that are kept are for it alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from opgen.compiler import machines, toolchain
from opgen.machine import typical
from opgen.machine.fields import flatten
from opgen.machine.override import MachineFileError
from opgen.runtime.measuring import rates as measure
from opgen.runtime.measuring.diagnosis import describe
from tests.support.kernels import output_of


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OPGEN_MACHINE", raising=False)
    toolchain.host.cache_clear()
    yield
    toolchain.host.cache_clear()


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "machine.json"
    monkeypatch.setenv("OPGEN_MACHINE", str(path))
    return path


def test_without_a_measurement_rates_are_assumed() -> None:
    sources = machines.describe(toolchain.host()).sources
    assert {sources[name] for name in machines.MEASURED if name != "pairs"} == {"assumed"}
    assert {sources[name] for name in ("vector_bytes", "registers", "cores", "pairs")} == {"read"}


def test_what_was_measured_is_kept_for_this_machine(cache_directory: Path) -> None:
    before = toolchain.host().machine
    values, path = measure.measure_and_keep()
    assert path is not None
    assert path.parent == cache_directory
    expected = {name for name in machines.MEASURED if name != "pairs" or toolchain.host().has_pairs}
    assert set(values) == expected
    found = machines.describe(toolchain.host())
    assert {found.sources[name] for name in expected} == {"measured"}
    assert toolchain.host().machine == found.machine != before
    assert flatten(found.machine) == {**flatten(before), **values}
    assert 1e8 < found.machine.fma_per_second < 1e11
    assert 1 <= found.machine.latency <= 32
    assert found.machine.l1.bytes_per_second > found.machine.memory_bytes_per_second > 1e8


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"latency": 0}',
        '{"latency": 1.5}',
        '{"nothing": 1}',
        '{"cores": "x"}',
        '{"pairs": 1}',
        '{"latency": true}',
    ],
)
def test_a_file_that_is_no_measurement_counts_for_nothing(text: str) -> None:
    path = machines.keep(toolchain.host(), {"latency": 7})
    assert path is not None
    toolchain.host.cache_clear()
    assert toolchain.host().machine.latency == 7
    path.write_text(text)
    toolchain.host.cache_clear()
    assert machines.describe(toolchain.host()).sources["latency"] == "assumed"


def test_nothing_is_kept_where_nothing_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_CACHE", "off")
    assert machines.keep(toolchain.host(), {"latency": 7}) is None


def test_the_owner_has_the_last_word(given: Path) -> None:
    given.write_text('{"latency": 9, "l2": {"size": 12345}}')
    described = machines.describe(toolchain.host())
    assert (described.machine.latency, described.machine.l2.size) == (9, 12345)
    assert described.sources["l2.size"] == "given by OPGEN_MACHINE"
    assert toolchain.host().machine == described.machine


def test_a_mistake_of_the_owner_is_an_error_of_calls_and_a_finding_of_the_doctor(given: Path) -> None:
    with pytest.raises(MachineFileError, match="OPGEN_MACHINE: cannot read"):
        toolchain.host()
    assert dict(describe())["machine"].startswith("cannot be determined: OPGEN_MACHINE: cannot read")


def test_only_the_host_has_numbers_of_its_own(given: Path) -> None:
    given.write_text('{"latency": 9}')
    assert toolchain.target("host").machine.latency == 9
    assert toolchain.target("x86-64-v3").machine == typical(32)
    assert toolchain.target("aarch64").machine == typical(16)
    assert repr(toolchain.host()) == repr(type(toolchain.host()).host())  # object code does not depend on them


def test_a_kept_kernel_is_for_one_machine(tmp_path: Path) -> None:
    """Another machine's kernel is not taken from the cache: its schedule may be another."""
    program = """
        import os, sys
        sys.path.insert(0, "generated")
        import numpy as np, nn_ops
        nn_ops.conv2d(np.ones((1, 4, 4, 2), "f"), np.ones((1, 1, 2, 3), "f"), [1, 1, 1, 1], "SAME")
        print("opgen.schedule.default" in sys.modules)  # a kernel was built
    """
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({"l1": {"size": 65536}}))
    assert [output_of(program) for _ in range(2)] == ["True", "False"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPGEN_MACHINE", str(path))
        assert [output_of(program) for _ in range(2)] == ["True", "False"]
    assert output_of(program) == "False"


def test_importing_generated_ops_does_not_look_at_the_machine() -> None:
    program = """
        import sys
        sys.path.insert(0, "generated")
        import nn_ops
        print("opgen.compiler.machines" in sys.modules)
    """
    assert output_of(program) == "False"
