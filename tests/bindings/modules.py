"""Generated modules, made anew from the specs of the checkout, for tests of any room."""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from opgen.bindings.python.render import render_module
from opgen.cli.built_forms import with_forms
from opgen.grad.load import load
from opgen.spec.loading import flatten
from opgen.spec.model.model import Module

ROOT = Path(__file__).resolve().parent.parent.parent
OPS = ROOT / "specs" / "nn_ops.op"
SAMPLES = ROOT / "tests" / "specs" / "samples.op"
SIZES = ROOT / "tests" / "specs" / "sizes.op"
_folder = tempfile.TemporaryDirectory(prefix="opgen-tests-")


@functools.cache
def spec(path: Path) -> Module:
    """The model of a spec file; with a file of forms beside it (`NAME.forms`), with these of its generic ops."""
    forms = path.with_suffix(".forms")
    return with_forms(load(path), [str(forms)]) if forms.is_file() else load(path)


@functools.cache
def generated(path: Path) -> Any:
    """The Python module of a spec file, imported; made once for all tests of the process."""
    return imported(path, Path(_folder.name))


def imported(path: Path, folder: Path) -> ModuleType:
    """Generate the Python module of a spec file into a folder, and import it."""
    module = load(path)
    (folder / f"{module.name}.op").write_text(flatten(path), encoding="utf-8")
    return execute(module.name, render_module(module), folder)


def execute(name: str, source: str, folder: Path) -> ModuleType:
    """Import source as a module that lies in a folder."""
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
