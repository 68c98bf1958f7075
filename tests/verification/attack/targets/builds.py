"""Builds that are ended at any time, in folders in which others have files."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import stat
import time
from pathlib import Path

from opgen.bindings import commit
from opgen.cli import main
from tests.verification.attack.campaign import silence
from tests.verification.attack.finding import FoundError, Target

SPEC = """op Twice {{ type T in {{float32}} input x: T[n] output y: T[n] y[i] = {factor} * x[i] }}
"""
OPTIONS = ("--target", "x86-64-v2", "--jobs", "1")
BEGINS = (b"", b"mine", b"\x7fELF\2\1\1", b"!<arch>\n", b"PK\3\4", b"/* my own */\n", b"# by hand\n", b"OPGENW2\n")
"""First bytes of files that others wrote."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)
KINDS = ("file", "file", "file", "link", "folder", "pipe")
PATIENCE = 120.0


class Builds(Target):
    """Files of others in the way, and signals at any time: theirs stay, opgen's are all old or all new."""

    name = "builds"
    seconds = 300.0
    memory = 0
    patience = 600.0

    def prepare(self) -> None:
        self.made: dict[str, dict[str, bytes]] = {}
        for version, factor in (("old", 2), ("new", 3)):
            folder = self.folder / version
            folder.mkdir()
            (folder / "made.op").write_text(SPEC.format(factor=factor))
            begin = time.monotonic()
            self._build(version, folder / "out")
            self.typical = time.monotonic() - begin
            self.made[version] = contents(folder / "out")
        if not self.made["old"].keys() == self.made["new"].keys() or self.made["old"] == self.made["new"]:
            raise FoundError("the two builds are not alike, or the same", "")

    def attempt(self, choose: random.Random) -> None:
        out = self.folder / "now"
        shutil.rmtree(out, ignore_errors=True)
        old = choose.random() < 0.7
        if old:
            shutil.copytree(self.folder / "old" / "out", out, symlinks=True)
        theirs = _theirs(out, [*self.made["new"]], choose) if choose.random() < 0.5 else {}
        before = contents(out)
        shown = f"{'over an older build' if old else 'into an empty folder'}, theirs: {theirs}"
        among = choose.randrange(1, 2 * len(self.made["new"])) if choose.random() < 0.5 else 0
        after = 0.0 if among else choose.random() * 1.2 * self.typical
        number = choose.choice(SIGNALS)
        status = self._build("new", out, number, among, after)
        shown += f", {number.name} {f'at rename {among}' if among else f'after {after:.3f} s'}, status {status}"
        self._require(out, before, theirs, number == signal.SIGKILL, shown)
        if not theirs and (self._build("new", out) != 0 or contents(out) != self.made["new"]):
            raise FoundError("the next build is not whole", f"{shown}\n{sorted(contents(out))}")

    def _require(self, out: Path, before: dict[str, bytes], theirs: dict[str, str], killed: bool, shown: str) -> None:
        """Raises FoundError if a file is lost, half written, or among others of another build."""
        found = contents(out)
        lost = [
            name for name, kind in theirs.items() if found.get(name) != before.get(name) or kind != kind_of(out / name)
        ]
        if lost:
            raise FoundError(f"replaced: {lost}", shown)
        own = {n: data for n, data in found.items() if not n.startswith(".build-")}
        if own in (before, {**before, **self.made["new"]}):
            left = found.keys() - own.keys()
            if left and not killed:
                raise FoundError("left behind", f"{shown}\n{left}")
            return
        whole = all(data in (before.get(n), self.made["new"].get(n)) for n, data in own.items() if n != "made.built")
        if not killed or not whole:
            raise FoundError("half written", f"{shown}\n{sorted(own)}")

    def _build(self, version: str, out: Path, number: int = 0, among: int = 0, after: float = 0.0) -> int:
        """The status of a build in a process, which may be sent a signal: at one of its renames, or after a time."""
        child = os.fork()
        if child == 0:
            code = 70
            silence()
            try:
                for each in SIGNALS[:-1]:
                    signal.signal(each, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                if among:
                    _signalled(number, among)
                main(["build", str(self.folder / version / "made.op"), "-o", str(out), *OPTIONS])
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            finally:
                os._exit(code)
        if number and not among:
            time.sleep(after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)
        return _waited(child)


def contents(folder: Path) -> dict[str, bytes]:
    """What the plain files and links of a folder hold, by their paths in it."""
    found = {}
    for path in folder.rglob("*") if folder.is_dir() else ():
        if path.is_symlink():
            found[path.relative_to(folder).as_posix()] = b"-> " + os.fsencode(os.readlink(path))
        elif path.is_file():
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def kind_of(path: Path) -> str:
    """Return the kind of a path: one of `KINDS`."""
    mode = path.lstat().st_mode
    return next(k for k, is_it in (("link", stat.S_ISLNK), ("folder", stat.S_ISDIR), ("pipe", stat.S_ISFIFO),
                                   ("file", stat.S_ISREG)) if is_it(mode))  # fmt: skip


def _theirs(out: Path, names: list[str], choose: random.Random) -> dict[str, str]:
    """Files of others, where a build has its own or elsewhere; what each is."""
    found = {}
    for name in choose.sample([*names, "mine.txt", "lib/mine.a", "include/mine.h"], choose.choice((1, 1, 2, 4))):
        path = out / name
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            found[name] = choose.choice(KINDS)
            match found[name]:
                case "link":
                    path.symlink_to(choose.choice(("/etc/hostname", "nowhere", ".")))
                case "folder":
                    path.mkdir()
                case "pipe":
                    os.mkfifo(path)
                case _:
                    path.write_bytes(choose.choice(BEGINS) + choose.randbytes(8))
    return found


def _signalled(number: int, among: int) -> None:
    """Have this process sent a signal at one of the renames of a build."""
    replace, left = commit._replace, among

    def replaced(source: Path, target: Path, kept: Path) -> object:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)
        return replace(source, target, kept)

    commit._replace = replaced  # type: ignore[assignment]


def _waited(child: int) -> int:
    """The status of a process that ends; raises FoundError if it does not."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise FoundError(f"a build does not end within {PATIENCE:g} s", "")
