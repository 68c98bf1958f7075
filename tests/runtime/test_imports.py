"""What importing the runtime costs: LLVM is loaded only when a kernel is built or loaded."""

from __future__ import annotations

from importlib import metadata

import pytest

from opgen.version import VERSION
from tests.support.kernels import output_of


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("cache.entries", "llvmlite numpy ctypes"),
        ("runtime.threads", "llvmlite numpy"),
        ("runtime.native.library", "llvmlite numpy"),
        ("runtime.kernels.kernel", "llvmlite numpy lark"),
        ("runtime.memory.buffers", "llvmlite ml_dtypes"),
        ("runtime.kernels.run", "llvmlite ml_dtypes lark"),
        ("runtime.measuring.diagnosis", "llvmlite numpy"),
    ],
)
def test_importing_loads_no_more_than_is_needed(module: str, without: str) -> None:
    program = f"""
        import sys
        import opgen.{module}
        print([name for name in {without.split()!r} if name in sys.modules])
    """
    assert output_of(program) == "[]"


def test_counting_threads_and_looking_after_the_cache_loads_no_llvm() -> None:
    program = """
        import sys
        from opgen.cache import entries as cache
        from opgen.runtime import threads
        threads.set_num_threads(2)
        cache.default().store("0" * 64, b"payload")
        print(cache.stats().entries, cache.clear(), threads.get_num_threads(), "llvmlite" in sys.modules)
    """
    assert output_of(program) == "1 1 2 False"


def test_the_version_is_the_packages() -> None:
    assert metadata.version("opgen") == VERSION
