"""CUDA's own compilers take everything that is emitted, where they are installed."""

from __future__ import annotations

import pytest

from opgen.codegen.cuda import emit
from opgen.compiler.cuda import nvcc as nvcc_tool
from opgen.compiler.cuda import ptx as compilers
from opgen.compiler.cuda.nvrtc import nvrtc
from opgen.diagnostics import InternalError
from opgen.diagnostics.devices import DeviceUnavailableError
from tests.codegen.cuda.kernels import CASES, PRODUCT, Case, joined

DISTINCT = tuple({case.kernel.name: case for case in CASES}.values())
NVCC, NVRTC = nvcc_tool.nvcc(), nvrtc()
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
needs_nvrtc = pytest.mark.skipif(NVRTC is None, reason="NVRTC is not installed")


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "compute_80"])
def test_nvcc_compiles_them(architecture: str) -> None:
    programs = [emit(case.kernel) for case in DISTINCT]
    code = nvcc_tool.compile_nvcc(str(NVCC), joined(programs), architecture)
    if architecture.startswith("sm_"):
        assert code.startswith(b"\x7fELF")
    else:
        assert f".target {architecture.replace('compute', 'sm')}".encode() in code
        assert code.count(b".entry") == sum(len(p.launches) for p in programs)


@needs_nvcc
def test_nvcc_compiles_one_alone() -> None:
    """Without what stands before it among others."""
    assert nvcc_tool.compile_nvcc(str(NVCC), emit(PRODUCT).source, "sm_90").startswith(b"\x7fELF")


@needs_nvrtc
@pytest.mark.parametrize("case", DISTINCT, ids=lambda c: c.kernel.name)
def test_nvrtc_compiles_it_without_headers(case: Case) -> None:
    assert NVRTC is not None
    assert NVRTC.compile(emit(case.kernel).source, "sm_90").startswith(b"\x7fELF")
    assert b".target sm_80" in NVRTC.compile(emit(case.kernel).source, "compute_80")


@needs_nvrtc
def test_nvrtc_tells_why_source_does_not_compile() -> None:
    assert NVRTC is not None
    with pytest.raises(InternalError, match=r'NVRTC for sm_90: NVRTC_ERROR_COMPILATION\nkernels.cu\(1\): error:.*"x"'):
        NVRTC.compile('extern "C" __global__ void f() { x = 1; }', "sm_90")


@needs_nvcc
def test_nvcc_tells_why_source_does_not_compile() -> None:
    with pytest.raises(InternalError, match=r'^nvcc for sm_90:\n[^\n]*kernels.cu\(1\): error:.*"x"'):
        nvcc_tool.compile_nvcc(str(NVCC), 'extern "C" __global__ void f() { x = 1; }', "sm_90")


@pytest.mark.skipif(NVCC is None and NVRTC is None, reason="no CUDA compiler is installed")
def test_products_and_sums_are_not_contracted() -> None:
    text = compilers.ptx(emit(PRODUCT).source, (9, 0))
    assert ".target sm_90" in text
    assert "mul.rn.f32" in text
    assert "fma" not in text


@pytest.mark.skipif(NVCC is None and NVRTC is None, reason="no CUDA compiler is installed")
def test_compiled_code_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path))
    source = emit(PRODUCT).source
    first = compilers.binary(source, (9, 0))
    monkeypatch.setattr(compilers, "nvrtc", lambda: NVRTC and _Broken())
    monkeypatch.setattr(nvcc_tool, "compile_nvcc", _fail)
    assert compilers.binary(source, (9, 0)) == first


class _Broken:
    """NVRTC as it is, but it cannot compile."""

    version = NVRTC.version if NVRTC else (0, 0)
    capabilities = NVRTC.capabilities if NVRTC else ()

    def compile(self, source: str, architecture: str) -> bytes:
        raise AssertionError("compiled again")


def _fail(path: str, source: str, architecture: str) -> bytes:
    raise AssertionError("compiled again")


def test_without_a_compiler_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "nvrtc", lambda: None)
    monkeypatch.setattr(nvcc_tool, "nvcc", lambda: None)
    with pytest.raises(DeviceUnavailableError) as caught:
        compilers.ptx("")
    assert str(caught.value) == (
        "there is no CUDA compiler on this machine: neither NVRTC (libnvrtc.so) nor nvcc was found"
    )
