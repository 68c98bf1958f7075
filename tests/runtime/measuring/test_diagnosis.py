"""What `opgen doctor` is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opgen.compiler import toolchain
from opgen.compiler.cuda import nvrtc
from opgen.runtime import threads
from opgen.runtime.devices import cuda_driver
from opgen.runtime.measuring import diagnosis
from opgen.runtime.threads import openmp
from opgen.version import VERSION

TOPICS = [
    "cpu", "cpu features", "vector width", "target",
    "vectors", "multiply-adds", "bfloat16 pairs", "bytes",
    "cache level 1", "cache level 2", "cache level 3", "memory", "cores", "assumed are",
    "opgen", "llvm", "llvmlite", "numpy", "ml_dtypes",
    "openmp", "threads", "cache", "cache contents", "tuned", "cuda driver", "nvrtc",
]  # fmt: skip


def test_every_topic_has_one_line(cache_directory: Path) -> None:
    findings = diagnosis.describe()
    assert [topic for topic, _ in findings] == TOPICS
    assert all(finding and "\n" not in finding for _, finding in findings)
    found = dict(findings)
    assert found["cpu"] == toolchain.host().cpu
    assert found["opgen"] == VERSION
    assert re.fullmatch(r"(128|256|512) bits", found["vector width"])
    assert re.fullmatch(r"\d+ of \d+ processors, by (openmp|pthread|serial)", found["threads"])
    assert found["cache"] == f"{cache_directory} (ok)"


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_CACHE", "off")
    monkeypatch.setattr(openmp, "find", lambda: None)
    monkeypatch.setattr(cuda_driver, "driver", lambda: None)
    monkeypatch.setattr(nvrtc, "nvrtc", lambda: None)
    found = dict(diagnosis.describe())
    assert found["openmp"] == "none found (libgomp, libomp, libiomp5)"
    assert found["cache"] == "off"
    assert found["cuda driver"] == "not found"
    assert found["nvrtc"] == "not found"


def test_what_is_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        path = "libcuda.so.1"

        def version(self) -> tuple[int, int]:
            return 12, 4

        def device_count(self) -> int:
            return 1

    class Compiler:
        path = "libnvrtc.so.12"
        version = (12, 3)

    monkeypatch.setattr(cuda_driver, "driver", Driver)
    monkeypatch.setattr(nvrtc, "nvrtc", Compiler)
    found = dict(diagnosis.describe())
    assert found["cuda driver"] == "CUDA 12.4 (libcuda.so.1), 1 device"
    assert found["nvrtc"] == "12.3 (libnvrtc.so.12)"


def test_a_mistake_in_the_environment_does_not_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_NUM_THREADS", "all")
    monkeypatch.setattr(threads, "_count", None)
    found = dict(diagnosis.describe())
    assert found["threads"] == (
        "cannot be determined: OPGEN_NUM_THREADS: expected a number of threads from 1 to 1024, given 'all'"
    )
