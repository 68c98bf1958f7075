"""The compiler knows no op by name: looks for words that only ops have, and for the names the specs declare, in opgen/.

    python -m tools.check_names [ROOT]

Prints each place as `path:line:column: word` and exits with 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

WORDS = (
    r"conv(?=\d|_|s?\b|olution|olve|bias)",
    r"(?-i:Conv(?=[A-Z]))",
    r"depthwise",
    r"(?:max|avg|average|mean)_?pool|\bpooling\b",
    r"soft_?max",
    r"mat_?mul(?!__)|\bgemm\b",  # __matmul__ is Python's operator @
    r"winograd",
    r"back_?prop",
    r"\brelu\b|\bgelu\b",
    r"(?:layer|batch|group)_?norm",
    r"im2col",
    r"\battention\b",
)
"""Words that reveal an op.  `convert`, `conventional` and a pool of threads are not ops."""

SUFFIXES = {".py", ".pyi", ".lark", ".jinja", ".h", ".cu", ".c", ".cpp", ".txt"}
"""Suffixes of the compiler's files; its pages for people (`.md`) may give examples."""
DECLARATION = re.compile(r"^\s*op\s+([A-Za-z_]\w*)|^\s*function_name\s+([A-Za-z_]\w*)", re.MULTILINE)


_ORDINARY = """
abs absolute acos acosh add and arange argmax argmin asin asinh atan atanh bitcast cast ceil clip compress concat
constant cos cosh div dropout equal erf exp expand flatten floor gather greater identity if isinf isnan less log
loop max maximum mean min minimum mod mul neg nonzero not optional or pad pow power range reciprocal reshape resize
rint round scan scatter shape shapeof sigmoid sign sin sinh size slice split sqrt squeeze sub sum tan tanh tile
transpose unique unsqueeze where xor
"""
ORDINARY = frozenset(_ORDINARY.split())
"""Names of ops that are words of every compiler, too: looked for only where Python code has one as a string."""


def declared_names(specs: Path) -> set[str]:
    """Return the names of the ops that the spec files declare."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(specs.rglob("*.op")))
    return {name for text in texts for found in DECLARATION.findall(text) for name in found if name}


GIVEN_AWAY = re.compile("|".join(WORDS), re.IGNORECASE)
IDENTIFIER = re.compile(r"\w+")


def quoted(names: set[str]) -> re.Pattern[str]:
    """One expression for the names that are ordinary words, as strings and as they are declared."""
    found = [re.escape(name) for name in sorted(names) if name.lower() in ORDINARY]
    return re.compile(rf"""(["'])({"|".join(found)})\1""" if found else r"(?!)")


def places(text: str, names: set[str], strings: re.Pattern[str] | None) -> list[tuple[int, str]]:
    """Return the places where a text names an op, with the word.

    `names` are in small letters, and none is an ordinary word.
    """
    found = {f.start(): f[0] for f in IDENTIFIER.finditer(text) if f[0].lower() in names}
    found |= {f.start(): f[0] for f in GIVEN_AWAY.finditer(text)}
    found |= {f.start(): f[0] for f in (() if strings is None else strings.finditer(text))}
    return sorted(found.items())


def findings(root: Path) -> Iterator[str]:
    """Yield every place under `root/opgen` that names an op, in order."""
    declared = declared_names(root / "specs")
    names, strings = {name.lower() for name in declared} - ORDINARY, quoted(declared)
    for path in sorted((root / "opgen").rglob("*")):
        if path.suffix not in SUFFIXES or "__pycache__" in path.parts:
            continue
        name = path.relative_to(root).as_posix()
        for _, found in places(name, names, None)[:1]:
            yield f"{name}: the path itself says '{found}'"
        text = path.read_text(encoding="utf-8")
        for at, found in places(text, names, strings if path.suffix == ".py" else None):
            line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
            yield f"{name}:{line}:{column}: {found}"


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    places = list(findings(root))
    for place in places:
        print(place)
    verdict = f"{len(places)} op names" if places else "no op is named"
    print(f"check_names: {verdict} under opgen/", file=sys.stderr)
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
