"""Write specs/ERRORS.md: every code of diagnostics, with the message that its example draws.

python -m tools.error_page
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opgen.cli.explain import ENDINGS, drawn
from opgen.diagnostics.codes import CODES
from opgen.diagnostics.codes.code import Code

PLACE = Path(__file__).resolve().parent.parent / "specs" / "ERRORS.md"
_HEAD = """\
# Error codes

A message about a text has a code, as in `error[S012]`. `opgen explain S012` prints what this page says about it, and
`opgen explain` lists all codes. Errors of calls have types in place of codes (`opgen.diagnostics.calls`).

This page is made from `opgen/diagnostics/codes/` by `python -m tools.error_page`.
"""


def page() -> str:
    """Return the text of the page."""
    return "\n".join([_HEAD, *(line for code in CODES.values() for line in _section(code))])


def _section(code: Code) -> Iterator[str]:
    yield f"## {code.name}: {code.title}\n"
    yield f"{code.explanation}\n"
    yield f"```{ENDINGS[code.language]}\n{code.example}```\n"
    yield f"```text\n{drawn(code)}\n```\n"
    yield f"{code.remedy}\n"


def main() -> None:
    """Write it."""
    PLACE.write_text(page(), encoding="utf-8")
    print(f"wrote {PLACE}")


if __name__ == "__main__":
    main()
