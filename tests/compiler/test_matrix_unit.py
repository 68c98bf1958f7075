"""A process without leave to use the matrix unit's registers gets code that leaves them alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opgen.codegen.llvm.target import Target
from opgen.compiler import matrix_unit, toolchain
from opgen.compiler.keys import code_identity

WITH = Target("x86_64-unknown-linux-gnu", "sapphirerapids", "+amx-tile,+amx-bf16,+avx512f", name="host")


@pytest.fixture
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Target, "host", staticmethod(lambda: WITH))
    toolchain.host.cache_clear()
    yield
    toolchain.host.cache_clear()


@pytest.mark.usefixtures("asked_anew")
@pytest.mark.parametrize("granted", [False, True])
def test_the_answer_decides_what_the_target_has(monkeypatch: pytest.MonkeyPatch, granted: bool) -> None:
    monkeypatch.setattr(matrix_unit, "granted", lambda: granted)
    host = toolchain.host()
    assert host.has_tiles == granted == host.machine.tiles
    assert host.has("amx-tile")
    assert (code_identity(host, "") == code_identity(WITH, "")) == granted


def test_the_answer_stays_the_same() -> None:
    assert matrix_unit.granted() == matrix_unit.granted()
    if not matrix_unit.granted():
        assert not toolchain.host().has_tiles


@pytest.mark.parametrize(("system", "processor"), [("darwin", "x86_64"), ("linux", "aarch64")])
def test_other_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch, system: str, processor: str) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    assert not matrix_unit.granted.__wrapped__()
