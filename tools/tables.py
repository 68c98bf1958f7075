"""Writer of files made from declarations.

They are the parser's tables beside the grammar of specs, and the table of all steps of schedules at the end of
`specs/SCHEDULES.md`.

python -m tools.tables
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from opgen.schedule.declaration import Group
from opgen.schedule.steps import PRIMITIVES, Step
from opgen.spec.syntax import tables

PLACE = Path(tables.__file__).with_name(tables.NAME)
PAGE = Path(__file__).parents[1] / "specs" / "SCHEDULES.md"


def main() -> None:
    """Write them."""
    PLACE.write_text(tables.text(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PLACE}\nwrote {PAGE}")


def page(text: str) -> str:
    """Return the page of schedules with its tables as the steps are declared."""
    groups: tuple[Group, ...] = get_args(Group)
    return text[: text.index(_head(groups[0]))] + "\n".join(map(_table, groups))


def _table(group: Group) -> str:
    rows = (_row(cls) for _, cls in sorted(PRIMITIVES.items()) if cls.group == group)
    return _head(group) + "".join(rows)


def _row(step: type[Step]) -> str:
    examples = "<br>".join(f"`{text}`" for text in step.examples)
    order = " (reorders)" if step.reorders_sums else ""
    return f"| {examples} | {' '.join((step.__doc__ or '').split())}{order} |\n"


def _head(group: Group) -> str:
    return f"| {group} | what it does |\n|---|---|\n"


if __name__ == "__main__":
    main()
