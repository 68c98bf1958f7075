"""A machine with a CUDA device, for tests: a driver that runs kernels through the emulation header."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import pytest

from opgen.compiler.cuda import ptx
from opgen.runtime.devices import cuda_driver
from opgen.runtime.devices.cuda_driver import Driver
from tests.bindings.modules import OPS, SAMPLES, imported
from tests.codegen.cuda.fake import build, fake_library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return fake_library(tmp_path_factory.mktemp("fake"))


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Any]:
    """The generated modules, for these tests alone: their kernels belong to the driver made for the tests."""
    folder = tmp_path_factory.mktemp("generated")
    return {path: imported(path, folder) for path in (OPS, SAMPLES)}


@pytest.fixture
def fake(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    """A machine with a CUDA device and a compiler.  Nothing may be left on the device afterwards."""
    monkeypatch.setattr(ptx, "binary", build)
    monkeypatch.setattr(cuda_driver, "driver", lambda: Driver(library.path))
    cuda_driver.device.cache_clear()
    library.fake_clear()
    yield library
    gc.collect()
    cuda_driver.device.cache_clear()
    assert library.fake_allocations() == 0
    assert library.fake_context_depth() == 0


@pytest.fixture
def samples(modules: dict[Path, Any], fake: ctypes.CDLL) -> Any:
    return modules[SAMPLES]
