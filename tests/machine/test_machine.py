"""The numbers of a machine: read from files like Linux's, assumed, given by its owner, and said with their sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opgen.machine.describe import assemble, lines
from opgen.machine.fields import flatten, unflatten
from opgen.machine.kinds import assumed, known_as, pairs_pay
from opgen.machine.model import Cache, typical
from opgen.machine.override import MachineFileError, read_override
from opgen.machine.system import read_system

CACHES = ((1, "Data", "48K", 12), (1, "Instruction", "32K", 8), (2, "Unified", "2048K", 16), (3, "Unified", "30M", 0))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A file system with four caches and a processor."""
    for number, (level, kind, size, ways) in enumerate(CACHES):
        folder = tmp_path / f"sys/devices/system/cpu/cpu0/cache/index{number}"
        folder.mkdir(parents=True)
        texts = {"level": level, "type": kind, "size": size, "ways_of_associativity": ways, "coherency_line_size": 64}
        for name, text in texts.items():
            (folder / name).write_text(f"{text}\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(
        "processor\t: 0\nmodel name\t: Some CPU @ 2.60GHz\ncpu MHz\t\t: 1200.5\nbogomips\t: 5400.11\n\nprocessor\t: 1\n"
    )
    return tmp_path


def test_caches_are_read_as_linux_has_them(root: Path) -> None:
    values = read_system(root).values
    assert values["cores"] >= 1
    assert {n: v for n, v in values.items() if n != "cores"} == {
        "l1.size": 48 << 10, "l1.ways": 12, "l1.line": 64,
        "l2.size": 2 << 20, "l2.ways": 16, "l2.line": 64,
        "l3.size": 30 << 20, "l3.line": 64,
    }  # fmt: skip


def test_the_clock_is_one_that_does_not_change(root: Path) -> None:
    """`cpu MHz` is the present clock: a machine that was another one each time would find none of its kernels."""
    assert read_system(root).hertz == 2.6e9
    cpuinfo = root / "proc/cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace(" @ 2.60GHz", ""))
    assert read_system(root).hertz == 2.7e9
    (root / "sys/devices/system/cpu/cpu0/cpufreq").mkdir()
    (root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").write_text("4512000\n")
    assert read_system(root).hertz == 4.5e9


def test_a_system_that_says_nothing_is_no_error(tmp_path: Path) -> None:
    system = read_system(tmp_path)
    assert set(system.values) == {"cores"}
    assert (system.hertz, system.model) == (None, "")


def test_the_table_and_the_model_are_the_same_numbers() -> None:
    machine = typical(32)
    assert unflatten(flatten(machine)) == machine
    assert flatten(machine)["l2.size"] == machine.l2.size


def test_rates_are_assumed_by_kind_and_clock() -> None:
    values, word = assumed("sapphirerapids", 64, 3e9)
    assert (values["fma_per_second"], values["latency"], word) == (6e9, 8, "sapphirerapids at 3.0 GHz")
    half = typical(64).l2.bytes_per_second * 3.0 / 3.7
    assert values["l2.bytes_per_second"] == pytest.approx(half)
    assert values["l3.bytes_per_second"] == 3e10  # over a mesh
    assert values["memory_bytes_per_second"] == typical(64).memory_bytes_per_second
    slow, _ = assumed("sapphirerapids", 64, 2e9)
    assert slow["memory_bytes_per_second"] == slow["l3.bytes_per_second"] == 2e10
    values, word = assumed("nobody's", 32, None)
    assert values == flatten(typical(32))
    assert word == "a typical CPU at 3.7 GHz"


def test_a_cpu_is_known_by_what_it_can_do() -> None:
    """Whatever name a virtual machine gives it."""
    tiles = {"avx512f", "amx-tile"}
    assert known_as("rocketlake", tiles.__contains__) == "sapphirerapids"
    assert known_as("emeraldrapids", tiles.__contains__) == "emeraldrapids"
    assert known_as("rocketlake", {"avx512f"}.__contains__) == "rocketlake"


def test_pairs_are_for_cpus_on_which_they_pay() -> None:
    assert not pairs_pay("sapphirerapids", 64)
    assert pairs_pay("znver4", 64)
    assert pairs_pay("nobody's", 64)


def test_each_number_says_where_it_comes_from() -> None:
    described = assemble(
        [("assumed", flatten(typical())), ("read", {"l1.size": 48 << 10}), ("measured", {"l1.bytes_per_second": 3e11})],
        "the rates of something",
    )
    assert described.machine.l1 == Cache(48 << 10, 8, 64, 3e11)
    found = dict(lines(described))
    assert found["cache level 1"] == (
        "48 KiB (read); 8 ways, lines of 64 bytes (assumed); 300 GB/s read by one core (measured)"
    )
    assert found["assumed are"] == "the rates of something"
    assert "assumed are" not in dict(lines(assemble([("read", flatten(typical()))], "unused")))


def test_an_owner_gives_any_of_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(
        json.dumps({"fma_per_second": 5e9, "l2": {"size": 1 << 21, "ways": 16}, "l3.line": 128, "pairs": True})
    )
    assert read_override(path) == {
        "pairs": True,
        "fma_per_second": 5e9,
        "l2.size": 1 << 21,
        "l2.ways": 16,
        "l3.line": 128,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[1]", "expected an object of numbers, given [1]"),
        ('{"l2": {"sise": 1}}', "a machine has no 'l2.sise'; did you mean 'l2.size'?"),
        ('{"zzz": 1}', "a machine has no 'zzz'; it can have vector_bytes, registers,"),
        ('{"l2": 5}', "a machine has no 'l2'"),
        ('{"registers": 31.5}', "'registers': expected a whole number from 1 to 1e+15, given 31.5"),
        ('{"cores": true}', "'cores': expected a whole number from 1 to 1e+15, given true"),
        ('{"fma_per_second": "fast"}', "'fma_per_second': expected a number from 1 to 1e+15, given \"fast\""),
        ('{"l1": {"ways": 0}}', "'l1.ways': expected a whole number from 1 to 1e+15, given 0"),
        ('{"memory_bytes_per_second": Infinity}', "expected a number from 1 to 1e+15, given Infinity"),
        ('{"pairs": 1}', "'pairs': expected true or false, given 1"),
        ('{"vector_bytes": 48}', "'vector_bytes': expected one of 16, 32, 64, given 48"),
    ],
)
def test_a_mistake_in_the_file_is_said(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text)
    with pytest.raises(MachineFileError) as caught:
        read_override(path)
    assert str(caught.value).startswith("OPGEN_MACHINE: ")
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(MachineFileError, match=r"cannot read .*: No such file or directory"):
        read_override(tmp_path / "none.json")
