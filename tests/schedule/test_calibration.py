"""Every constant of the scheduler stands once, with its unit and what measured it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCHEDULE = ROOT / "opgen" / "schedule"
CALIBRATION = SCHEDULE / "cost" / "calibration.py"
LOG = SCHEDULE / "EXPERIMENTS.md"
OF_MACHINE = re.compile(r"\b((l[123]|cache)\.(size|ways)|machine\.registers)\b")
DOCUMENTED = re.compile(r"(?P<unit>[-\w, `'(){}]+): .+ \[(?P<entry>[^\]]+)\]", re.DOTALL)


def constants(path: Path) -> dict[str, str]:
    """The numbers, and tuples of numbers, that a file names, with their docstrings."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    found: dict[str, str] = {}
    for n, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(n, ast.Assign) or not isinstance(n.targets[0], ast.Name | ast.Tuple):
            continue
        if not any(isinstance(v, ast.Constant) and isinstance(v.value, int | float) for v in ast.walk(n.value)):
            continue
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
        found[ast.unparse(n.targets[0])] = str(text)
    return found


def entries() -> set[str]:
    """The entries of the log by their numbers."""
    return set(re.findall(r"^## (E\d+) ", LOG.read_text(encoding="utf-8"), re.MULTILINE))


def test_each_constant_has_a_unit_and_an_entry() -> None:
    found, known = constants(CALIBRATION), entries()
    assert len(found) > 100
    for name, text in found.items():
        match = DOCUMENTED.fullmatch(" ".join(text.split()))
        assert match is not None, f"{name} says neither unit nor entry"
        entry = match["entry"]
        assert entry == "not recorded" or entry in known, f"{name}: there is no entry {entry}"


@pytest.mark.parametrize("path", sorted((SCHEDULE / "auto").rglob("*.py")), ids=lambda p: p.stem)
def test_there_is_no_constant_elsewhere(path: Path) -> None:
    assert constants(path) == {}, "what decides about schedules stands in cost/calibration.py"


def test_every_constant_is_used() -> None:
    others = [p.read_text(encoding="utf-8") for p in ROOT.joinpath("opgen").rglob("*.py") if p != CALIBRATION]
    words = set(re.findall(r"\b[A-Z][A-Z_]+\b", "\n".join(others)))
    assert constants(CALIBRATION).keys() <= words


def shares(path: Path) -> list[str]:
    """Where a file takes a share of a cache or of the registers by a number that it does not name."""
    found: list[str] = []
    for e in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Mult | ast.Div | ast.FloorDiv):
            sides = e.left, e.right
            if any(isinstance(p, ast.Constant) for p in sides) and any(
                OF_MACHINE.search(ast.unparse(p)) for p in sides
            ):
                found.append(f"{e.lineno}: {ast.unparse(e)}")
    return found


@pytest.mark.parametrize("path", sorted((SCHEDULE / "auto").rglob("*.py")), ids=lambda p: p.stem)
def test_shares_of_caches_and_registers_have_names(path: Path) -> None:
    assert shares(path) == [], "a share stands in cost/calibration.py"
