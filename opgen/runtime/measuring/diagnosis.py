"""Capabilities of this machine, in sentences: for `opgen doctor`.  Nothing here fails; missing parts are reported."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING

from opgen.cache import entries as cache
from opgen.compiler import machines, toolchain, tuned
from opgen.diagnostics import OpgenError
from opgen.runtime import threads
from opgen.runtime.threads import openmp
from opgen.version import VERSION

if TYPE_CHECKING:
    from opgen.runtime.devices.cuda_driver import Driver

Finding = tuple[str, str]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu() -> list[Finding]:
    target = toolchain.host()
    features = [f[1:] for f in target.features.split(",") if f.startswith("+")]
    return [
        ("cpu", target.cpu),
        ("cpu features", " ".join(features)),
        ("vector width", f"{target.vector_bits} bits"),
        ("target", target.triple),
    ]


def _machine() -> list[Finding]:
    from opgen.machine.describe import lines

    return lines(machines.describe(toolchain.host()))


def _packages() -> list[Finding]:
    return [
        ("opgen", VERSION),
        ("llvm", toolchain.llvm_version()),
        ("llvmlite", _version("llvmlite")),
        ("numpy", _version("numpy")),
        ("ml_dtypes", _version("ml_dtypes")),
    ]


def _threading() -> list[Finding]:
    runtime = openmp.find()
    return [
        ("openmp", "none found (libgomp, libomp, libiomp5)" if runtime is None else _path_of(runtime.name)),
        ("threads", f"{threads.get_num_threads()} of {threads.available_cpus()} processors, by {threads.means()}"),
    ]


def _path_of(name: str) -> str:
    """Return a loaded library's path, if the system reports it."""
    stem = name.rsplit("/", 1)[-1]
    return next((path for path in openmp.loaded() if path.rsplit("/", 1)[-1].startswith(stem)), name)


def _cache() -> list[Finding]:
    store = cache.default()
    if store.path is None:
        return [("cache", "off")]
    health, stats = store.health(), store.stats()
    size = f"{stats.entries} kernels, {stats.bytes / 2**20:.1f} of {store.limit / 2**20:.0f} MiB"
    return [("cache", f"{store.path} ({health})"), ("cache contents", size)]


def _cuda() -> list[Finding]:
    from opgen.compiler.cuda import nvrtc
    from opgen.runtime.devices import cuda_driver

    driver, compiler = cuda_driver.driver(), nvrtc.nvrtc()
    return [
        ("cuda driver", "not found" if driver is None else _driver(driver)),
        ("nvrtc", "not found" if compiler is None else f"{_dotted(compiler.version)} ({compiler.path})"),
    ]


def _driver(driver: Driver) -> str:
    count = driver.device_count()
    return f"CUDA {_dotted(driver.version())} ({driver.path}), {count} device{'' if count == 1 else 's'}"


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _tuned() -> list[Finding]:
    return [("tuned", tuned.finding())]


_SECTIONS: tuple[tuple[str, Callable[[], list[Finding]]], ...] = (
    ("cpu", _cpu),
    ("machine", _machine),
    ("packages", _packages),
    ("threads", _threading),
    ("cache", _cache),
    ("tuned", _tuned),
    ("cuda", _cuda),
)


def describe() -> list[Finding]:
    """Return (topic, finding) pairs in the order in which to show them."""
    findings: list[Finding] = []
    for name, section in _SECTIONS:
        try:
            findings += section()
        except (OpgenError, OSError, ImportError) as error:
            findings.append((name, f"cannot be determined: {error}"))
    return findings
