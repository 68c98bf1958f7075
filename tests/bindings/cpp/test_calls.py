"""The recorded cases, the malformed calls and random calls through the C++ API, directly and as graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bindings.calls import (
    MODES,
    check_goldens,
    check_malformed,
    check_random,
    golden_calls,
    malformed_calls,
    op_of,
    plain,
    random_calls,
)
from tests.bindings.cpp.library import COMPILERS, SANITIZED, call_all
from tests.bindings.modules import OPS, SAMPLES, spec
from tests.golden.load import cases

pytestmark = pytest.mark.skipif("g++" not in COMPILERS, reason="needs g++")


@pytest.mark.parametrize("options", [("-O1",), SANITIZED], ids=["plain", "sanitized"])
@pytest.mark.parametrize("mode", MODES)
def test_goldens(mode: str, options: tuple[str, ...]) -> None:
    """Every recorded case within the tight tolerance."""
    recorded = list(cases())
    if options is SANITIZED:
        small = [r for r in recorded if r.reference.size < 20_000]
        recorded = [r for op in spec(OPS).ops for r in [s for s in small if op_of(s.op) is op][::4]]
    check_goldens(recorded, call_all(OPS, mode, golden_calls(recorded), *options))


@pytest.mark.parametrize("mode", MODES)
def test_malformed_calls(mode: str) -> None:
    """Each gives a status with the message that Python raises, or is a valid call there too."""
    calls = malformed_calls()
    answers = call_all(OPS, mode, calls, *SANITIZED)
    said = [plain(a, mode, call.op) if a.message else "" for call, a in zip(calls, answers, strict=True)]
    check_malformed(calls, answers, said)


@pytest.mark.parametrize("path", [OPS, SAMPLES], ids=lambda p: p.stem)
@pytest.mark.parametrize("seed", range(2))
def test_three_languages_agree(path: Path, seed: int) -> None:
    """One table of calls, valid and invalid, through Python, C and C++: the same shapes, the same messages."""
    calls, expected = random_calls(path, seed)
    for mode in ("eager", "const", "late"):
        answers = call_all(path, mode, calls, "-O1")
        said = [plain(a, mode, call.op) if a.message else "" for call, a in zip(calls, answers, strict=True)]
        check_random(calls, answers, said, expected)
