"""The recorded cases, the malformed calls and random calls through both faces of the Java API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from opgen.bindings.java.names import class_names, legacy_class_names
from opgen.spec.model.model import Module
from tests.bindings.calls import (
    MODES,
    check_goldens,
    check_malformed,
    check_random,
    golden_calls,
    malformed_calls,
    plain,
    random_calls,
)
from tests.bindings.cpp.library import Answer, Call
from tests.bindings.java.library import FACES, JDK, KITS, WHY_NOT, Jdk, call_all
from tests.bindings.modules import OPS, SAMPLES, spec
from tests.golden.load import cases

pytestmark = pytest.mark.skipif(JDK is None, reason=WHY_NOT)


def _said(module: Module, face: str, mode: str, calls: Sequence[Call], answers: Sequence[Answer]) -> list[str]:
    """The messages without nodes' names: those of calls are their classes'."""
    classes = class_names(module.ops) if face == "Current" else legacy_class_names(module.ops)
    return [
        plain(a, mode, call.op, classes[call.op.name]) if a.message else ""
        for call, a in zip(calls, answers, strict=True)
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("face", FACES)
def test_goldens(face: str, mode: str) -> None:
    """Every recorded case within the tight tolerance."""
    recorded = list(cases())
    check_goldens(recorded, call_all(OPS, face, mode, golden_calls(recorded)))


@pytest.mark.parametrize("jdk", KITS, ids=lambda kit: kit.home.name)
@pytest.mark.parametrize("face", FACES)
def test_goldens_on_every_kit(face: str, jdk: Jdk) -> None:
    recorded = list(cases())
    check_goldens(recorded, call_all(OPS, face, "eager", golden_calls(recorded), jdk))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("face", FACES)
def test_malformed_calls(face: str, mode: str) -> None:
    """Each is an IllegalArgumentException with the message that Python raises, or is a valid call there too."""
    calls = malformed_calls()
    answers = call_all(OPS, face, mode, calls)
    check_malformed(calls, answers, _said(spec(OPS), face, mode, calls, answers))


@pytest.mark.parametrize("path", [OPS, SAMPLES], ids=lambda p: p.stem)
@pytest.mark.parametrize("face", FACES)
def test_languages_agree(face: str, path: Path) -> None:
    """One table of calls, valid and invalid, through Python, C and Java: the same shapes, the same messages."""
    calls, expected = random_calls(path, seed=0)
    for mode in ("eager", "const", "late"):
        answers = call_all(path, face, mode, calls)
        check_random(calls, answers, _said(spec(path), face, mode, calls, answers), expected)
