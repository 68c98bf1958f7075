"""opgen: declarative operator specs to checked, typed APIs and fast CPU and GPU kernels.

    load(path)                  the functions of a spec file, as a module
    gradient(function, wrt)     the gradient of an op with respect to one of its inputs, as a function

Both are imported when they are first used, so that `import opgen` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opgen.bindings.python.live import gradient, load

__all__ = ["gradient", "load"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'opgen' has no attribute {name!r}")
    from opgen.bindings.python import live

    return getattr(live, name)
