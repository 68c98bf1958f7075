"""Mutated specs of the whole language, generic ops too."""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Mapping
from pathlib import Path

from opgen.diagnostics import Diagnostic, DiagnosticError
from opgen.spec import format_source, load_text
from opgen.spec.generic.forms import check_forms
from tests.verification.attack.finding import FoundError, Target, described
from tests.verification.attack.targets.specs import Specs

ROOT = Path(__file__).resolve().parents[4]
LARGEST = 10_000
"""Bytes of a spec."""
FORMS = 0.3
"""The share of specs that load of which all forms are tried: that takes as long as fifty others."""


class Language(Target):
    """Mutated specs of all ops, ONNX's too: each is right, or draws diagnostics with places, in 5 s and 1 GiB."""

    name = "language"
    batch = 500
    memory = 1 << 30

    def prepare(self) -> None:
        folders = (ROOT / "specs", ROOT / "specs" / "onnx", ROOT / "tests" / "specs")
        self.cases: list[tuple[str, str, Path]] = []
        for path in sorted(p for folder in folders for p in folder.glob("*.op")):
            found = re.split(r"(?m)^(?=op |function |fragment )", path.read_text(encoding="utf-8"))
            shared = {p.split(maxsplit=2)[1].partition("(")[0]: p for p in found[1:] if not p.startswith("op ")}
            self.cases += [(found[0] + _used(p, shared), p, path.parent) for p in found if p.startswith("op ")]
        self._specs = Specs(self.folder)
        self._specs.tokens = sorted({t for case in self.cases for t in re.findall(r'\w+|"""|[^\w\s]', case[1])})
        self._specs.tokens += ["\0", "\u2028", "9" * 30, "1e999", '"""', "9223372036854775807", "..."]

    def attempt(self, choose: random.Random) -> None:
        shared, op, folder = choose.choice(self.cases)
        for _ in range(choose.choice((1, 1, 2, 3, 5))):
            if choose.random() < 0.2:
                shared = self._specs.mutated(shared, choose)
            else:
                op = self._specs.mutated(op, choose)
        text = (shared + op).encode("utf-8", "surrogatepass")[:LARGEST].decode("utf-8", "ignore")
        try:
            module = load_text(text, "mutated", folder)
            if choose.random() < FORMS:
                check_forms(module)
            format_source(text)
        except DiagnosticError as error:
            for diagnostic in error.diagnostics:
                _require_place(diagnostic, text)
        except Exception as error:
            raise FoundError(described(error), f"{traceback.format_exc()}\n{text}") from error


def _used(op: str, shared: Mapping[str, str]) -> str:
    """The functions and fragments that an op uses, and those that they use."""
    wanted: dict[str, str] = {}
    waiting = [op]
    while waiting:
        words = set(re.findall(r"\w+", waiting.pop()))
        for name in shared.keys() & words - wanted.keys():
            wanted[name] = shared[name]
            waiting.append(shared[name])
    return "".join(wanted[name] for name in sorted(wanted))


def _require_place(diagnostic: Diagnostic, text: str) -> None:
    """Raises FoundError for a diagnostic that names no place in a text."""
    span = diagnostic.span
    if span is None:
        raise FoundError("a diagnostic without a place", f"{diagnostic}\n{text}")
    if not 1 <= span.line <= span.source.text.count("\n") + 1:
        raise FoundError("a diagnostic whose line is not there", f"{diagnostic}\n{text}")
    if not 1 <= span.column <= len(span.source.line(span.line)) + 2:
        raise FoundError("a diagnostic whose column is not there", f"{diagnostic}\n{text}")
