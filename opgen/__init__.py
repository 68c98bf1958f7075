"""opgen: declarative operator specs to checked, typed APIs and fast CPU and GPU kernels.

    load(path)                  the functions of a spec file, as a module
    compile(source)             a model, a graph or a function that calls generated functions, as one program
    gradient(function, wrt)     the gradient of an op with respect to one of its inputs, as a function
    device("cuda")              a `with` block whose calls run on a CUDA device, numpy arrays copied there and back
    algorithms("off")           a `with` block whose calls are computed by definitions only; "all": by any algorithm
    empty(shape, dtype)         a new array on a cache line, which kernels read faster than most of numpy's own
    to_device(array)            a copy of an array on a CUDA device, for calls that run there in place
    counters()                  for each op how many kernels were made for certain sizes, and how many for any
    __version__                 the version of opgen, as text

They are imported when they are first used, so that `import opgen` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opgen.bindings.python.live import gradient, load
    from opgen.compiling import compile
    from opgen.runtime.algorithms import algorithms
    from opgen.runtime.counters import counters
    from opgen.runtime.empty import empty
    from opgen.runtime.placement import device, to_device
    from opgen.runtime.version import VERSION as __version__

__all__ = ["__version__", "algorithms", "compile", "counters", "device", "empty", "gradient", "load", "to_device"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'opgen' has no attribute {name!r}")
    if name == "__version__":
        from opgen.runtime.version import VERSION

        return VERSION
    if name == "algorithms":
        from opgen.runtime.algorithms import algorithms

        return algorithms
    if name == "compile":
        from opgen.compiling import compile

        return compile
    if name == "counters":
        from opgen.runtime.counters import counters

        return counters
    if name == "empty":
        from opgen.runtime.empty import empty

        return empty
    if name in ("device", "to_device"):
        from opgen.runtime import placement

        return getattr(placement, name)
    from opgen.bindings.python import live

    return getattr(live, name)
