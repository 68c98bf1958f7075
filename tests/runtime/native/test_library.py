"""Loading object code."""

from __future__ import annotations

import ctypes
import threading
import time

import pytest

from opgen.compiler import toolchain
from opgen.diagnostics import InternalError
from opgen.runtime.native.library import load_library, load_object

ADD = """
@calls = global i64 0
declare double @erf(double)
define i32 @NAME(ptr %words) {
  %a = load i64, ptr %words
  %sum = add i64 %a, NUMBER
  store i64 %sum, ptr %words
  %before = load i64, ptr @calls
  %after = add i64 %before, 1
  store i64 %after, ptr @calls
  %small = sitofp i64 %after to double
  %one = call double @erf(double %small)
  %status = fptosi double %one to i32
  ret i32 %status
}
"""


def code(name: str = "add", number: int = 1) -> bytes:
    """An object file with a function that adds a number to a word; it needs a symbol of the mathematical library."""
    return toolchain.object_code(ADD.replace("NAME", name).replace("NUMBER", str(number)), toolchain.host())


def call(address: int, value: int) -> int:
    words = (ctypes.c_int64 * 1)(value)
    ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(address)(ctypes.addressof(words))
    return words[0]


def test_code_is_loaded_and_runs() -> None:
    assert call(load_object(code(), "add"), 41) == 42


def test_one_name_may_be_loaded_many_times() -> None:
    libraries = [load_library(code("add", n), "add", "calls") for n in range(1, 6)]
    assert [call(library.address("add"), 100) for library in libraries] == [101, 102, 103, 104, 105]
    assert len({library.address("calls") for library in libraries}) == 5


def test_code_that_nothing_holds_is_unloaded_and_others_stay() -> None:
    kept = load_library(code("add", 7), "add")
    image = code("add", 9)
    for _ in range(50):
        passing = load_library(image, "add")
        assert call(passing.address("add"), 0) == 9
    assert call(kept.address("add"), 0) == 7


@pytest.mark.parametrize("image", [b"", b"no object file" * 20, b"\x7fELF" + bytes(100)])
def test_what_is_no_object_file_is_refused(image: bytes) -> None:
    with pytest.raises(InternalError, match="object code with add cannot be loaded: "):
        load_library(image, "add")


def test_a_missing_symbol_is_refused() -> None:
    with pytest.raises(InternalError, match="object code with nothing cannot be loaded: "):
        load_library(code(), "nothing")


def test_a_symbol_that_the_process_lacks_is_refused() -> None:
    text = "declare i32 @opgen_no_such_function()\ndefine i32 @f(ptr %w) {\n  %x = call i32 @opgen_no_such_function()\n"
    image = toolchain.object_code(text + "  ret i32 %x\n}\n", toolchain.host())
    with pytest.raises(InternalError, match="object code with f cannot be loaded: "):
        load_library(image, "f")


def test_threads_may_load_at_once() -> None:
    images = [code("add", n) for n in range(8)]
    results: dict[int, int] = {}

    def work(n: int) -> None:
        for _ in range(20):
            library = load_library(images[n], "add")
            results[n] = call(library.address("add"), 0)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert results == {n: n for n in range(8)}


def test_loading_is_quick() -> None:
    image = code()
    load_library(image, "add")
    times = []
    for _ in range(10):
        start = time.perf_counter()
        load_library(image, "add")
        times.append(time.perf_counter() - start)
    assert min(times) < 5e-3
