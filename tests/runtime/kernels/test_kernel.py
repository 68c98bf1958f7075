"""From a scheduled kernel to a callable: results, caches, threads, errors."""

from __future__ import annotations

import ctypes
import dataclasses
import threading
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from opgen.cache import entries as cache
from opgen.codegen.llvm.target import Target
from opgen.compiler import toolchain
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation
from opgen.diagnostics import InternalError
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.runtime import threads
from opgen.runtime.kernels import loaded
from opgen.runtime.kernels.kernel import CompiledKernel, compile_kernel
from opgen.runtime.kernels.run import run_kernel
from opgen.runtime.memory.address import address
from tests.support.kernels import output_of, row_sums

Floats = npt.NDArray[np.float32]


def values_of(rows: int, columns: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


def expected_sums(values: Floats) -> Floats:
    """The sums in the kernel's order, one float32 rounding for each addition."""
    sums = np.full(values.shape[0], 0.5, np.float32)
    for column in range(values.shape[1]):
        sums = sums + values[:, column]
    return sums


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels built while the test runs."""
    built: list[str] = []
    emit = toolchain.emit

    def counted(k: Kernel, *_: object) -> str:
        built.append(k.name)
        return emit(k, toolchain.host())

    monkeypatch.setattr(toolchain, "emit", counted)
    return built


def status_kernel(status: int) -> CompiledKernel:
    """A kernel without arguments that returns a status."""
    code = toolchain.object_code(f"define i32 @fails(ptr %w) {{\n  ret i32 {status}\n}}\n", toolchain.host())
    bare = dataclasses.replace(row_sums("fails"), inputs=(), outputs=(), parameters=())
    return CompiledKernel(bare, loaded.loaded_code(f"fails {status}", "fails", code, loaded.Origin()))


def key_of(k: Kernel, target: Target) -> str:
    return artifact(Compilation(k, target, schedule="finished")).key


# Results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (17, 5), (64, 33)])
@pytest.mark.parametrize("guarded", [False, True])
def test_results(shape: tuple[int, int], guarded: bool) -> None:
    values = values_of(*shape)
    sizes = {"rows": shape[0], "columns": shape[1]}
    found = run_kernel(row_sums(), {"values": values}, sizes, guarded=guarded)
    assert list(found) == ["sums"]
    np.testing.assert_array_equal(found["sums"], expected_sums(values))


@pytest.mark.parametrize("rows", [1, 2, 5, 64])
def test_results_are_the_same_bits_for_any_number_of_threads(rows: int) -> None:
    values = values_of(rows, 200)
    sizes = {"rows": rows, "columns": 200}
    results = [run_kernel(row_sums(), {"values": values}, sizes, threads=n)["sums"].tobytes() for n in (1, 2, 3, 7)]
    assert len(set(results)) == 1
    assert results[0] == expected_sums(values).tobytes()


def test_a_bound_kernel_runs_on_changing_buffers() -> None:
    bound = compile_kernel(row_sums()).bind((6, 4))
    for seed in range(3):
        values, sums = values_of(6, 4, seed), np.zeros(6, np.float32)
        bound([address(values), address(sums)])
        np.testing.assert_array_equal(sums, expected_sums(values))


def test_a_bound_kernel_follows_the_number_of_threads() -> None:
    usual = threads.get_num_threads()
    values, sums = values_of(64, 40), np.zeros(64, np.float32)
    try:
        threads.set_num_threads(1)
        bound = compile_kernel(row_sums()).bind((64, 40))
        for count in (1, 3, 2, 1):
            threads.set_num_threads(count)
            sums[:] = np.nan
            bound([address(values), address(sums)])
            np.testing.assert_array_equal(sums, expected_sums(values))
            assert [words[1] for words in bound._spare] == [count]
    finally:
        threads.set_num_threads(usual)


def test_many_threads_may_call_one_bound_kernel() -> None:
    bound = compile_kernel(row_sums(parallel=False)).bind((50, 50))
    wrong: list[int] = []

    def work(seed: int) -> None:
        values = values_of(50, 50, seed)
        expected = expected_sums(values)
        for _ in range(200):
            sums = np.zeros(50, np.float32)
            bound([address(values), address(sums)])
            if not np.array_equal(sums, expected):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert wrong == []


def test_serial_kernels_are_given_no_parallel_loop() -> None:
    words = compile_kernel(row_sums(parallel=False)).words([1, 2], (3, 4), 5)
    assert list(words) == [0, 1, 1, 2, 3, 4]
    words = compile_kernel(row_sums()).words([1, 2], (3, 4), 5)
    assert list(words) == [threads.parallel_for().address, 5, 1, 2, 3, 4]


def test_a_call_costs_less_than_it_may() -> None:
    bound = compile_kernel(row_sums(parallel=False)).bind((0, 0))
    addresses: list[ctypes.c_int64 | int] = [64, 64]
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(1000):
            bound(addresses)
        best = min(best, (time.perf_counter() - start) / 1000)
    assert best < 2e-6, f"{best * 1e6:.2f} us a call"


# Errors ----------------------------------------------------------------------------------------------------------


def test_out_of_memory_is_a_memory_error() -> None:
    compiled = status_kernel(1)
    message = "kernel fails: not enough memory for its temporary buffers"
    with pytest.raises(MemoryError) as caught:
        compiled([], ())
    assert str(caught.value) == message
    with pytest.raises(MemoryError, match=message):
        compiled.bind(())([])


def test_an_unknown_status_is_a_bug() -> None:
    with pytest.raises(InternalError, match=r"^kernel fails returned status -9$"):
        status_kernel(-9)([], ())


def test_arguments_that_do_not_fit_are_bugs() -> None:
    compiled = compile_kernel(row_sums())
    with pytest.raises(InternalError, match=r"^kernel row_sums has 2 buffers, given 1$"):
        compiled([1], (1, 1))
    with pytest.raises(InternalError, match=r"^2 parameters are needed, given 1$"):
        compiled([1, 2], (1,))
    with pytest.raises(InternalError, match=r"^parameter rows is of int64, given 1.5$"):
        compiled([1, 2], (1.5, 1))
    with pytest.raises(InternalError, match=rf"^parameter columns does not fit in 64 bits: {2**63}$"):
        compiled([1, 2], (1, 2**63))


@pytest.mark.parametrize(
    ("arrays", "sizes", "message"),
    [
        ({}, {"rows": 2, "columns": 3}, "no array is given for input values"),
        (
            {"values": np.zeros((3, 2), np.float32)},
            {"rows": 2, "columns": 3},
            "input values is float32[2, 3], given float32[3, 2]",
        ),
        (
            {"values": np.zeros((2, 3), np.float64)},
            {"rows": 2, "columns": 3},
            "input values is float32[2, 3], given float64[2, 3]",
        ),
        ({"values": np.zeros((2, 3), np.float32)}, {"rows": 2}, "kernel row_sums: no value is given for columns"),
    ],
)
def test_run_kernel_checks_what_it_is_given(arrays: dict[str, Floats], sizes: dict[str, int], message: str) -> None:
    with pytest.raises(InternalError) as caught:
        run_kernel(row_sums(), arrays, sizes)
    assert str(caught.value) == message


# In memory and on disk -------------------------------------------------------------------------------------------


def test_a_name_that_is_no_symbol_is_no_obstacle() -> None:
    values = values_of(3, 2)
    found = run_kernel(row_sums("row sums/1"), {"values": values}, {"rows": 3, "columns": 2})
    np.testing.assert_array_equal(found["sums"], expected_sums(values))


def test_a_kernel_is_built_once(builds: list[str]) -> None:
    assert compile_kernel(row_sums()).loaded is compile_kernel(row_sums()).loaded
    loaded.forget()
    compile_kernel(row_sums())
    assert builds == ["row_sums"]


def test_a_kernel_is_built_once_for_many_threads(builds: list[str]) -> None:
    found: list[CompiledKernel] = []
    ready = threading.Barrier(8)

    def work() -> None:
        ready.wait()
        found.extend(compile_kernel(row_sums(f"row_sums_{n}")) for n in range(3))

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert sorted(builds) == ["row_sums_0", "row_sums_1", "row_sums_2"]
    assert len(found) == 24
    assert len({id(k.loaded) for k in found}) == 3


def test_kernels_that_differ_are_different_code(builds: list[str]) -> None:
    values = values_of(3, 2)
    sizes = {"rows": 3, "columns": 2}
    first = run_kernel(row_sums(), {"values": values}, sizes)["sums"]
    second = run_kernel(row_sums(factor=0.25), {"values": values}, sizes)["sums"]
    assert len(builds) == 2
    assert not np.array_equal(first, second)


def test_the_key_depends_on_all_that_decides_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    host = toolchain.host()
    k = row_sums()
    keys = [
        key_of(k, host),
        key_of(row_sums(parallel=False), host),
        key_of(k, dataclasses.replace(host, cpu="another")),
        key_of(k, dataclasses.replace(host, features=host.features + ",+another")),
        key_of(k, dataclasses.replace(host, opt_level=host.opt_level - 1)),
        key_of(k, dataclasses.replace(host, triple="another")),
    ]
    for name, owner in (("llvm_version", toolchain), ("emitter_fingerprint", toolchain)):
        monkeypatch.setattr(owner, name, lambda: "another")
        keys.append(key_of(k, host))
    monkeypatch.setattr("opgen.compiler.keys.VERSION", "another")
    keys.append(key_of(k, host))
    monkeypatch.setattr(cache.entry, "FORMAT", 99)
    keys.append(key_of(k, host))
    assert len(set(keys)) == len(keys)


def test_the_memo_is_bounded(monkeypatch: pytest.MonkeyPatch, builds: list[str]) -> None:
    monkeypatch.setattr(loaded, "SPARE", 2)
    first, second, third = (row_sums(f"row_sums_{n}") for n in range(3))
    held = compile_kernel(first)
    compile_kernel(second)
    assert compile_kernel(first).loaded is held.loaded
    compile_kernel(third)
    assert compile_kernel(first).loaded is held.loaded
    compile_kernel(second)
    assert builds == ["row_sums_0", "row_sums_1", "row_sums_2"]
    assert cache.stats().hits == 1


@pytest.mark.parametrize("damage", ["cut", "flip", "other kernel", "no object file"])
def test_a_damaged_entry_is_built_anew(damage: str, cache_directory: Path, builds: list[str]) -> None:
    k = row_sums()
    key = key_of(k, toolchain.host())
    compile_kernel(k)
    loaded.forget()
    file = cache_directory / f"{key}.kernel"
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[:-10])
    elif damage == "flip":
        file.write_bytes(content[:200] + bytes([content[200] ^ 64]) + content[201:])
    elif damage == "other kernel":
        other = toolchain.object_code("define i32 @other(ptr %w) {\n  ret i32 0\n}\n", toolchain.host())
        cache.default().store(key, other)
    else:
        cache.default().store(key, b"nothing of the kind")
    values = values_of(5, 5)
    found = run_kernel(k, {"values": values}, {"rows": 5, "columns": 5})["sums"]
    np.testing.assert_array_equal(found, expected_sums(values))
    assert builds == ["row_sums", "row_sums"]
    assert file.read_bytes() == content


def test_without_a_cache_kernels_are_built(monkeypatch: pytest.MonkeyPatch, builds: list[str]) -> None:
    monkeypatch.setenv("OPGEN_CACHE", "off")
    compile_kernel(row_sums())
    loaded.forget()
    compile_kernel(row_sums())
    assert builds == ["row_sums", "row_sums"]


def test_another_process_finds_the_code(cache_directory: Path) -> None:
    program = """
        import numpy as np
        from opgen.cache import entries as cache
        from opgen.runtime.kernels.run import run_kernel
        from tests.support.kernels import row_sums
        values = np.ones((4, 3), np.float32)
        sums = run_kernel(row_sums(), {"values": values}, {"rows": 4, "columns": 3}, threads=2)["sums"]
        print(sums.tolist(), cache.stats().hits, cache.stats().misses)
    """
    sums = "[3.5, 3.5, 3.5, 3.5]"
    built = output_of(program).removeprefix(f"{sums} 0 ")
    assert int(built) >= 2  # the kernel, and the code of the threads
    assert output_of(program) == f"{sums} {built} 0"


def test_a_kernel_run_alone_has_the_code_of_the_shared_one() -> None:
    each = parse_kernel(
        "kernel each(x: float32[64]) -> (y: float32[64]):\n  parallel for i in 0 .. 64:\n    y[i] = x[i]\n"
    )
    shared, alone = compile_kernel(each), compile_kernel(each, alone=True)
    assert (shared.parallel, alone.parallel) == (True, False)
    assert shared.loaded is alone.loaded
