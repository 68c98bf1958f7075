"""The tools that live beside opgen in its repository (benchmark, demonstration), run from wherever the user stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import opgen
from opgen.diagnostics import UserError


def repository() -> Path | None:
    """Return the root of the checkout: the current directory or one above it, else that of the imported opgen."""
    here = Path.cwd()
    beside = Path(opgen.__file__).resolve().parent.parent
    return next((p for p in (here, *here.parents, beside) if is_checkout(p)), None)


def is_checkout(path: Path) -> bool:
    """Return True if a folder holds both opgen and the tools that commands run."""
    return all((path / file).is_file() for file in ("tools/bench/__main__.py", "opgen/cli/checkout.py"))


def run_tool(name: str, arguments: tuple[str, ...]) -> int:
    """Runs `tools.NAME` of the checkout with these arguments; its exit code."""
    root = repository()
    if root is None:
        raise UserError(f"'opgen {name}' needs a checkout of opgen's repository; run it from inside one")
    path = os.pathsep.join(p for p in (str(root), os.environ.get("PYTHONPATH", "")) if p)
    return subprocess.run(
        [sys.executable, "-m", f"tools.{name}", *arguments], env={**os.environ, "PYTHONPATH": path}, check=False
    ).returncode
