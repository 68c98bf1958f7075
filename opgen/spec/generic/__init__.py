"""Generic ops, which leave ranks or numbers of inputs open, and the plain ops that calls make of them.

A *form* fixes everything that a generic op leaves open.  `instance` expands the op's syntax tree for one form.  The
checker then resolves the result as any other op: later packages never see a pack.

Modules that need the checker are imported on first use, because a module's model holds its generic ops.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opgen.spec.generic.form import Argument, Instance
    from opgen.spec.generic.instances import instance
    from opgen.spec.generic.sizes import depends_on_sizes, known_sizes

__all__ = ["Argument", "Instance", "depends_on_sizes", "instance", "known_sizes"]

_HOMES = {
    "Argument": "form",
    "Instance": "form",
    "depends_on_sizes": "sizes",
    "instance": "instances",
    "known_sizes": "sizes",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'opgen.spec.generic' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"opgen.spec.generic.{_HOMES[name]}"), name)
    return found
