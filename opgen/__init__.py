"""opgen: declarative operator specs to checked, typed APIs and fast CPU and GPU kernels.

    load(path)                  the functions of a spec file, as a module
    compile(source)             a model, a graph or a function that calls generated functions, as one program
    gradient(function, wrt)     the gradient of an op with respect to one of its inputs, as a function
    device("cuda")              a `with` block whose calls run on a CUDA device, numpy arrays copied there and back
    algorithms("off")           a `with` block whose calls are computed by definitions only; "all": by any algorithm
    empty(shape, dtype)         a new array on a cache line, which kernels read faster than most of numpy's own
    to_device(array)            a copy of an array on a CUDA device, for calls that run there in place
    inspect(function, *args)    the kernel that a call takes: its summary, every stage, its inner loop, its limits
    record()                    a `with` block that lists the calls in it, kernel by kernel, with times
    last_call()                 the call that was recorded last
    counters()                  for each op how many kernels were made for certain sizes, and how many for any
    ops                         the operators that come with opgen: `opgen.ops.nn`, `opgen.ops.onnx`
    __version__                 the version of opgen, as text

They are imported when they are first used, so that `import opgen` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opgen import ops
    from opgen.bindings.python.live import gradient, load
    from opgen.compiler.algorithms import algorithms
    from opgen.compiling import compile
    from opgen.runtime.call.counters import counters
    from opgen.runtime.call.placement import device, to_device
    from opgen.runtime.call.record import CallRun, Calls, last_call, record
    from opgen.runtime.inspection import Inspection, inspect
    from opgen.runtime.kernels.ran import KernelRun
    from opgen.runtime.memory.empty import empty
    from opgen.version import VERSION as __version__

__all__ = [
    "CallRun",
    "Calls",
    "Inspection",
    "KernelRun",
    "__version__",
    "algorithms",
    "compile",
    "counters",
    "device",
    "empty",
    "gradient",
    "inspect",
    "last_call",
    "load",
    "ops",
    "record",
    "to_device",
]

_PLACES = {
    "CallRun": ("opgen.runtime.call.record", "CallRun"),
    "Calls": ("opgen.runtime.call.record", "Calls"),
    "Inspection": ("opgen.runtime.inspection", "Inspection"),
    "KernelRun": ("opgen.runtime.kernels.ran", "KernelRun"),
    "__version__": ("opgen.version", "VERSION"),
    "algorithms": ("opgen.compiler.algorithms", "algorithms"),
    "compile": ("opgen.compiling", "compile"),
    "counters": ("opgen.runtime.call.counters", "counters"),
    "device": ("opgen.runtime.call.placement", "device"),
    "empty": ("opgen.runtime.memory.empty", "empty"),
    "gradient": ("opgen.bindings.python.live", "gradient"),
    "inspect": ("opgen.runtime.inspection", "inspect"),
    "last_call": ("opgen.runtime.call.record", "last_call"),
    "load": ("opgen.bindings.python.live", "load"),
    "ops": ("opgen.ops", None),
    "record": ("opgen.runtime.call.record", "record"),
    "to_device": ("opgen.runtime.call.placement", "to_device"),
}
"""The module that defines each public name, and the name there; None for the module itself."""


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'opgen' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PLACES[name]
    found = import_module(module)
    return found if attribute is None else getattr(found, attribute)


def __dir__() -> list[str]:
    """Return the public names, for TAB in an interactive session, and the module's own dunder names."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
