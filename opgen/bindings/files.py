"""Generated modules on disk: written together or not at all, only where they change, and never over other files.

Removal is limited to files that the manifest beside a module lists and whose first line still says that they were
generated from that module's spec.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opgen.bindings.commit import commit
from opgen.bindings.manifest import LIMIT, SUFFIX, Manifest, source_of
from opgen.bindings.owned import head, require_folders, require_owned
from opgen.bindings.workplace import locked, workplace

LISTINGS = "listings"
"""The one folder within a folder of generated files."""


@dataclass(frozen=True)
class Changes:
    """Differences between a folder and the files that should be in it (paths within the folder, sorted).

    `notes` are sentences on stale files that are left alone.
    """

    written: tuple[str, ...]
    removed: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.written or self.removed)


def changes(folder: Path, files: Mapping[str, str], manifests: Sequence[Manifest], overwrite: bool = False) -> Changes:
    """Return the changes that would be made, the manifests included.

    Raise UserError if a file that opgen did not write is in the way; with `overwrite`, only if it is not a plain file.
    """
    wanted = {**files, **{m.name: str(m) for m in manifests}}
    require_folders(folder, wanted)
    written = tuple(name for name, text in sorted(wanted.items()) if _differs(folder / name, text, overwrite))
    removed: set[str] = set()
    notes: list[str] = []
    for manifest in manifests:
        gone, said = _stale(folder, manifest, wanted)
        removed |= gone
        notes += said
    notes += _unlisted(folder, {m.source for m in manifests}, {*wanted, *removed})
    notes += _others(folder, wanted)
    return Changes(written, tuple(sorted(removed)), tuple(dict.fromkeys(notes)))


def apply_changes(
    folder: Path, files: Mapping[str, str], manifests: Sequence[Manifest], overwrite: bool = False
) -> Changes:
    """Write and remove: all of it, or nothing; return the changes made.

    The manifests come last: if the process is killed among the renames, the next run removes the files that this one
    should have removed.
    """
    wanted = changes(folder, files, manifests, overwrite)
    if not wanted:
        return wanted
    texts = {**files, **{m.name: str(m) for m in manifests}}
    with workplace(folder) as work, locked(folder):
        wanted = changes(folder, files, manifests, overwrite)  # another process may have written meanwhile
        data = {name: texts[name].encode() for name in wanted.written}
        staged = {name: work / str(number) for number, name in enumerate(sorted(data, key=lambda n: n not in files))}
        for name, path in staged.items():
            path.write_bytes(data[name])
        commit(folder, [*staged.items()], wanted.removed, work)
    return wanted


def _differs(path: Path, text: str, overwrite: bool) -> bool:
    """Return True if a file has to be written.  Raise UserError if the existing one is not opgen's."""
    data = text.encode()
    if path.is_file() and not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return False
    require_owned(path, overwrite=overwrite)
    return True


def _stale(folder: Path, manifest: Manifest, wanted: Mapping[str, str]) -> tuple[set[str], list[str]]:
    """Return the stale files that the manifest on disk lists, and notes on the rest of its entries."""
    path = folder / manifest.name
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return set(), []  # `_differs` has refused it
        with open(path, "rb") as file:
            before = Manifest.parse(manifest.module, manifest.source, file.read(LIMIT + 1))
    except FileNotFoundError:
        return set(), []
    if isinstance(before, str):
        return set(), [f"{path}: {before}; nothing that it lists is removed"]
    gone = {name for name in before.files if name not in wanted and os.path.lexists(folder / name)}
    ours = {name for name in gone if _is_from(folder, name, manifest.source)}
    foreign = sorted(gone - ours)
    return ours, [f"{folder / n} was generated once and is something else now; it is left alone" for n in foreign]


def _is_from(folder: Path, name: str, source: str) -> bool:
    """Return True if a plain file, not reached by a link, says that it was generated from a spec of that name."""
    path = folder / name
    if path.parent != folder and path.parent.is_symlink():
        return False
    return stat.S_ISREG(path.lstat().st_mode) and source_of(head(path)) == source


def _unlisted(folder: Path, sources: set[str], known: set[str]) -> Iterator[str]:
    """Return files that name these specs, which no manifest lists: older versions of opgen kept none."""
    for place in (folder, folder / LISTINGS):
        found = sorted(os.scandir(place), key=lambda e: e.name) if place.is_dir() and not place.is_symlink() else []
        for item in found:
            name = item.name if place == folder else f"{LISTINGS}/{item.name}"
            if name not in known and item.is_file(follow_symlinks=False) and source_of(head(folder / name)) in sources:
                yield f"{folder / name} looks stale, and is in no manifest; it is left alone"


def _others(folder: Path, wanted: Mapping[str, str]) -> Iterator[str]:
    """Return manifests of modules that are not being made."""
    for path in sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []:
        if path.name not in wanted and path.is_file() and not path.is_symlink():
            source = source_of(head(path))
            if source is not None:
                yield f"{path} is of {source}, which was not given; what it lists is left alone"
