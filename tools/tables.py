"""Write the parser's tables beside the grammar of specs, after a change of the grammar.

python -m tools.tables
"""

from __future__ import annotations

from pathlib import Path

from opgen.spec.syntax import tables

PLACE = Path(tables.__file__).with_name(tables.NAME)


def main() -> None:
    """Write them."""
    PLACE.write_text(tables.text(), encoding="utf-8")
    print(f"wrote {PLACE}")


if __name__ == "__main__":
    main()
