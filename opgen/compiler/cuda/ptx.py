"""Machine code and PTX for emitted CUDA C, by NVRTC or else nvcc, kept in the kernel cache."""

from __future__ import annotations

from opgen.cache import entries as cache
from opgen.codegen.cuda.program import COMPILE_FLAGS
from opgen.compiler.cuda import nvcc as nvcc_tool
from opgen.compiler.cuda.nvrtc import Nvrtc, nvrtc
from opgen.diagnostics.devices import DeviceUnavailableError

Capability = tuple[int, int]

_NONE_FOUND = "there is no CUDA compiler on this machine: neither NVRTC (libnvrtc.so) nor nvcc was found"


def ptx(source: str, capability: Capability = (8, 0)) -> str:
    """Return the PTX of CUDA C source for devices of at least a compute capability.

    Raises `DeviceUnavailableError` if no compiler is installed.
    """
    return _compiled(source, f"compute_{capability[0]}{capability[1]}").rstrip(b"\0").decode()


def binary(source: str, capability: Capability) -> bytes:
    """Return the image that the driver loads: a cubin, or PTX if the compiler is older than the device's capability.

    Raises `DeviceUnavailableError` if no compiler is installed.
    """
    return _compiled(source, _architecture(nvrtc(), capability))


def _architecture(library: Nvrtc | None, capability: Capability) -> str:
    major, minor = capability
    if library is None or capability in library.capabilities:
        return f"sm_{major}{minor}"
    below = [c for c in library.capabilities if c <= capability]
    if not below:
        raise DeviceUnavailableError(f"NVRTC {library.version} does not compile for capability {major}.{minor}")
    return f"compute_{below[-1][0]}{below[-1][1]}"


def _compiled(source: str, architecture: str) -> bytes:
    library, tool = nvrtc(), nvcc_tool.nvcc()
    if library is not None:
        identity = f"nvrtc {library.version}"
    elif tool is not None:
        identity = f"nvcc {nvcc_tool.version(tool)}"
    else:
        raise DeviceUnavailableError(_NONE_FOUND)
    kept = cache.default()
    key = cache.key_of(
        {
            "what": "cuda",
            "compiler": identity,
            "architecture": architecture,
            "flags": " ".join(COMPILE_FLAGS),
            "source": source,
        }
    )
    payload = kept.load(key)
    if payload is not None:
        return payload
    if library is not None:
        payload = library.compile(source, architecture)
    else:
        payload = nvcc_tool.compile_nvcc(str(tool), source, architecture)
    kept.store(key, payload)
    return payload
