"""NAME.built, in a built folder: files of a build that do not name their source themselves, such as libraries.

Text as `sha256sum` writes and checks it (`sha256sum -c NAME.built`), after a first line that names the source.  It is
trusted only while a file still has the listed contents, and only to replace that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from opgen import files as plain
from opgen.bindings.manifest import MARK
from opgen.bindings.owned import digest, says_so

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


class Record:
    """The digests of a build's files, by their paths within the folder; a path may have several."""

    def __init__(self, digests: Iterable[tuple[str, str]] = ()) -> None:
        self._digests = sorted(set(digests))

    @staticmethod
    def name(prefix: str) -> str:
        """Return the name of the record of a library."""
        return f"{prefix}.built"

    @staticmethod
    def read(path: Path) -> Record:
        """Return the entries of a record; none if the file is not a record."""
        try:
            lines = plain.text(path).splitlines()
        except plain.FileRefusedError:  # a pipe, perhaps, of which no byte may be asked for
            return Record()
        if not says_so(path):
            return Record()
        found = (_LINE.fullmatch(line) for line in lines)
        return Record((m[2], m[1]) for m in found if m)

    @staticmethod
    def of(tree: Path, names: Iterable[str]) -> Record:
        """Return the record of files in a folder, without links and files that name their source themselves."""
        paths = ((name, tree / name) for name in names)
        return Record((name, digest(p)) for name, p in paths if not p.is_symlink() and not says_so(p))

    def digests(self, name: str) -> list[str]:
        """Return the possible digests of a file."""
        return [d for n, d in self._digests if n == name]

    def updated(self, newer: Record) -> Record:
        """Return the record after a build: it speaks for the files that it lists, this one for all others."""
        names = {n for n, _ in newer._digests}
        return Record([*newer._digests, *(pair for pair in self._digests if pair[0] not in names)])

    def joined(self, other: Record) -> Record:
        """Return a record with the entries of both."""
        return Record([*self._digests, *other._digests])

    def text(self, source: str) -> str:
        """Return the file's text; `source` names the source of the build."""
        said = " ".join("".join(c if c.isprintable() else " " for c in source).split())
        head = f"# {MARK}{said}. Only these files, and those that say the same, are replaced by the next build.\n"
        return head + "".join(f"{d}  {n}\n" for n, d in self._digests)
