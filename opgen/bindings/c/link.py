"""The C compiler and the linker: object files to a shared and a static library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from opgen.diagnostics import UserError

FLAGS = ("-std=c99", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
LIBRARIES = ("-lm", "-ldl", "-lpthread")


@dataclass(frozen=True)
class Tools:
    """A C compiler (with its arguments) and an archiver."""

    cc: tuple[str, ...]
    ar: str

    @staticmethod
    def host() -> Tools:
        """Return CC and AR, else `cc` and `ar`.  Raise UserError without a C compiler."""
        cc = tuple(shlex.split(os.environ.get("CC", ""))) or ("cc",)
        if shutil.which(cc[0]) is None:
            raise UserError(f"there is no C compiler '{cc[0]}'; install one, or name one in CC")
        return Tools(cc, os.environ.get("AR") or "ar")

    @staticmethod
    def cross(architecture: str) -> Tools | None:
        """Return the tools for another architecture by their customary names, or None where they are not installed."""
        cc, ar = f"{architecture}-linux-gnu-gcc", f"{architecture}-linux-gnu-ar"
        return Tools((cc,), ar) if shutil.which(cc) and shutil.which(ar) else None


def run(command: Sequence[str], folder: Path) -> None:
    """Run a tool.  Raise UserError with its output."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise UserError(f"{shlex.join(command)} failed:\n{done.stderr.strip() or done.stdout.strip()}")


def compile_sources(tools: Tools, sources: Sequence[Path], folder: Path, jobs: int) -> list[Path]:
    """Compile each C source to an object file in a folder; return the object files."""
    targets = [folder / f"{s.stem}.o" for s in sources]
    commands = [[*tools.cc, *FLAGS, "-c", str(s), "-o", str(t)] for s, t in zip(sources, targets, strict=True)]
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        list(pool.map(lambda c: run(c, folder), commands))
    return targets


def link_shared(tools: Tools, objects: Sequence[Path], public: Sequence[str], target: Path) -> None:
    """Link a shared library whose only symbols are the public ones."""
    script = target.with_suffix(".map")
    script.write_text("{ global: " + " ".join(f"{name};" for name in public) + " local: *; };\n")
    arguments = target.with_suffix(".objects")
    arguments.write_text("\n".join(shlex.quote(str(o)) for o in objects))
    options = [f"-Wl,--version-script={script}", f"-Wl,-soname,{target.name}", "-Wl,--as-needed", "-Wl,-z,noexecstack"]
    try:
        run([*tools.cc, "-shared", *options, "-o", str(target), f"@{arguments}", *LIBRARIES], target.parent)
    finally:
        script.unlink()
        arguments.unlink()


def archive(tools: Tools, objects: Sequence[Path], target: Path) -> None:
    """Make a static library."""
    target.unlink(missing_ok=True)
    arguments = target.with_suffix(".objects")
    arguments.write_text("\n".join(shlex.quote(str(o)) for o in objects))
    try:
        run([tools.ar, "rcsD", str(target), f"@{arguments}"], target.parent)
    finally:
        arguments.unlink()
