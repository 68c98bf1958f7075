"""All files generated from specs, in one folder.

For a spec file `family.op` that declares ops:

    family.py              the Python module
    family.op              the spec with its imports and fragments expanded; the module reads it when an op first runs
    family.md              the table of supported types, layouts and attributes
    listings/FUNCTION.*    for people to read: the op as loop IR, its schedule, the scheduled loop IR, LLVM IR, CUDA C
                           (of an op too large to be read, a line that says so)
    py.typed               says that the modules are typed
    family.manifest        the names of these files, which a later generation may remove

A spec file makes nothing if it declares no op, or if another of the given ones imports it (it is a part of that one).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opgen.bindings.docs.listings import listings, too_large
from opgen.bindings.docs.support import support_page
from opgen.bindings.files import Changes, apply_changes, changes
from opgen.bindings.manifest import MARK, Manifest
from opgen.bindings.python.render import render_module
from opgen.diagnostics import UserError
from opgen.examples import verify_examples
from opgen.grad.load import load
from opgen.spec.loading import flatten, imported
from opgen.spec.model.model import Module
from opgen.spec.resolve.measure import weight
from opgen.spec.resolve.names import why_no_module
from opgen.spec.syntax.limits import LISTED, LISTED_TOGETHER

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Generated:
    """The text of every generated file by its path within the folder, and each module's list of them."""

    files: dict[str, str]
    manifests: tuple[Manifest, ...]


def generate(
    specs: Sequence[Path],
    folder: Path,
    *,
    write: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Changes:
    """Bring a folder up to date with specs (files, or folders of them); return the changes.

    Without `write` nothing is changed, and the changes are those due.

    Everything is made before anything is written, so that a mistake in a spec leaves the folder unchanged.  Files that
    opgen did not write are replaced only with `overwrite`.  `progress` is called with a description of each step.
    """
    made = make(specs, progress)
    finish = apply_changes if write else changes
    return finish(folder, made.files, made.manifests, overwrite)


def make(specs: Sequence[Path], progress: Progress | None = None) -> Generated:
    """Return the files generated from specs."""
    say = progress or (lambda what: None)
    files: dict[str, str] = {}
    manifests: list[Manifest] = []
    given = _spec_files(specs)
    parts = imported(given) if len(given) > 1 else set()
    for path in given:
        if path.resolve() in parts:
            continue
        say(f"reading {path.name}")
        module = load(path)
        if not module.ops and not module.generics:
            continue
        reason = why_no_module(module.name)
        if reason is not None:
            raise UserError(f"{path}: '{module.name}' {reason}; give the file another name")
        say(f"computing the examples of {path.name}")
        verify_examples(module)
        own = dict(_module_files(module, path, say))
        for name in own:
            if name in files and name != "py.typed":
                raise UserError(f"two specs make {name}; the second is {path}")
        files |= own
        manifests.append(Manifest.of(module.name, path.name, own))
    return Generated(files, tuple(manifests))


def _module_files(module: Module, path: Path, say: Progress) -> Iterator[tuple[str, str]]:
    say(f"writing {module.name}")
    yield f"{module.name}.py", render_module(module, source=path.name)
    yield (
        f"{module.name}.op",
        f"# {MARK}{path.name}: the same ops, with all imports and fragments spelt out.\n\n{flatten(path)}",
    )
    yield f"{module.name}.md", support_page(module, path.name)
    yield "py.typed", ""
    together = 0
    for op in module.ops:
        say(f"listing {op.name}")
        own = weight(op)
        together += own if own <= LISTED else 0
        listed = own <= LISTED and together <= LISTED_TOGETHER
        texts = listings(module, op, path.name) if listed else too_large(op, path.name)
        for name, text in texts.items():
            yield f"listings/{name}", text


def _spec_files(specs: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in specs:
        found += sorted(path.rglob("*.op")) if path.is_dir() else [path]
    if not found:
        raise UserError(f"no .op file in {', '.join(map(str, specs))}")
    return found
