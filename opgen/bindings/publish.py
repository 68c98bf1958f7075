"""A build's files on their way to the user's folder: made separately, then moved there together.

Files that opgen did not write are never replaced (`owned.py`), and a build that fails or is ended leaves the folder
unchanged (`commit.py`).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opgen.bindings.commit import commit
from opgen.bindings.owned import require_folders, require_owned
from opgen.bindings.record import Record
from opgen.bindings.workplace import locked, workplace


@dataclass(frozen=True)
class Output:
    """The folder that a library is built for: `tree` is where its files are made, laid out as they will be there.

    `prefix` begins the library's names, `source` describes its source for readers.
    """

    folder: Path
    prefix: str
    source: str
    overwrite: bool
    tree: Path

    def require_owned(self, names: Iterable[str]) -> None:
        """Raise UserError if a file may not be replaced.  Early, a build is not in vain."""
        wanted = list(names)
        require_folders(self.folder, wanted)
        record = Record.read(self.folder / Record.name(self.prefix))
        for name in wanted:
            if not self._is_own_link(name):
                require_owned(self.folder / name, record.digests(name), self.overwrite)

    def placed(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        """Return where files of the tree will be."""
        return tuple(self.folder / path.relative_to(self.tree) for path in paths)

    def publish(self) -> None:
        """Move all files to the folder."""
        names = sorted(p.relative_to(self.tree).as_posix() for p in self.tree.rglob("*") if not _is_folder(p))
        record = Record.name(self.prefix)
        with locked(self.folder):
            before, made = Record.read(self.folder / record), Record.of(self.tree, names)
            differing = [n for n in names if not _same(self.folder / n, self.tree / n)]
            self.require_owned([*differing, record])
            # The first record covers the files, old or new, that remain if the process is killed among the renames.
            first, last = (self._written(r) for r in (before.joined(made), before.updated(made)))
            staged = [(record, first), *((name, self.tree / name) for name in differing), (record, last)]
            commit(self.folder, staged, (), self.tree.parent)

    def _written(self, record: Record) -> Path:
        """Write a record beside the tree; return its path."""
        path = self.tree.parent / f"{os.urandom(4).hex()}.built"
        path.write_text(record.text(self.source), encoding="utf-8")
        return path

    def _is_own_link(self, name: str) -> bool:
        """Return True for the link to the library of some version, in its own folder."""
        path = self.folder / name
        return path.is_symlink() and bool(re.fullmatch(rf"{re.escape(f'lib{self.prefix}.so')}\.\d+", os.readlink(path)))


@contextlib.contextmanager
def output(folder: Path, prefix: str, source: str, overwrite: bool = False) -> Iterator[Output]:
    """Provide a folder to build in; its files go to the user's folder when the block is done, unless it raises."""
    with workplace(folder) as work:
        tree = work / "tree"
        tree.mkdir()
        found = Output(folder, prefix, source, overwrite, tree)
        yield found
        found.publish()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _same(old: Path, new: Path) -> bool:
    """Return True if a small file need not be replaced, since its contents are already right."""
    if new.is_symlink() or old.is_symlink() or not old.is_file() or old.stat().st_size != new.stat().st_size:
        return False
    with open(old, "rb") as one, open(new, "rb") as other:
        while piece := one.read(1 << 20):
            if piece != other.read(1 << 20):
                return False
    return True
