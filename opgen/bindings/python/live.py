"""Modules made in memory: from a spec at run time, and the gradient functions of ops.

They equal the output of `opgen generate`, run without being written: the same source (`inspect.getsource` shows it),
the same checks and documentation.  They pickle by names that describe how to make them again (`places`).
"""

from __future__ import annotations

import functools
import itertools
import linecache
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from opgen import grad
from opgen.bindings.python.places import LiveModule, Lost, Places, Recipe
from opgen.bindings.python.render import render_module
from opgen.bindings.python.several import Several
from opgen.diagnostics import UserError
from opgen.diagnostics.describe import describe
from opgen.runtime.call.specialize import Library
from opgen.spec.model.model import Module, OpSpec

_serial = itertools.count(1)


def load(path: str | os.PathLike[str]) -> ModuleType:
    """Return the functions of a spec file, as a module: `opgen.load("my.op").my_op(...)`.

    The module and its functions can be pickled (`multiprocessing`, `joblib`) as the path and a digest of the text: the
    other process loads the spec, and its calls raise UserError if the text is another one there.

    Raises DiagnosticError with all mistakes of the spec.
    """
    module = grad.load(path)
    whole = os.path.abspath(path) if os.path.exists(path) else os.fspath(path)  # a spec that comes with opgen
    return module_of(module, os.path.basename(path), ["load", whole, module.digest])


def gradient(function: Callable[..., object], wrt: str | Sequence[str]) -> Callable[..., Any]:
    """Return the gradient of an op, or of a compiled function, by one or several of its inputs, as a function.

    `function` is an op's function in a generated module, in one from `load`, or itself a gradient.  The result takes
    the op's inputs (shapes only, for inputs whose values the gradient does not use), for each output y the gradient
    with respect to it as `grad_y`, and the op's attributes.  It returns the gradient with respect to the input `wrt`,
    in that input's shape.  It is a function like any other of the module: documented, checked, compiled when it is
    first called.

        by_x = opgen.gradient(ops.blend, wrt="x")  # ops.blend(x, y, weight) gives z
        dx = by_x(x, y, grad_z, weight=0.5)

    For a list of inputs the result gives a tuple of gradients, in that order; so does its `out` take one.

        by_both = opgen.gradient(ops.blend, wrt=["x", "y"])
        dx, dy = by_both(x, y, grad_z, weight=0.5)

    For a function from `opgen.compile`, the result takes the function's arguments and, by its name, `grad`: the
    gradient with respect to the function's results (without it, that of their sum).

        step = opgen.gradient(loss, wrt=("w", "b"))
        dw, db = step(x, w, b)

    A gradient can be pickled if `function` can.

    Raises UserError if `function` is not an op's, and DiagnosticError, with the place in the spec, if `wrt` is not an
    input of it or the op cannot be differentiated.
    """
    derive = getattr(function, "gradient", None)
    if callable(derive):  # a compiled function's own
        found: Callable[..., Any] = derive(wrt)
        return found
    library, op = _origin(function)
    if isinstance(wrt, str):
        return _gradient(library, op.name, wrt)
    if not isinstance(wrt, Sequence) or not wrt or not all(isinstance(name, str) for name in wrt):
        expected = "the name of an input, or a list of names"
        raise UserError(f"{op.name}: the gradient's 'wrt': expected {expected}, given {describe(wrt)}")
    return Several(op.name, [_gradient(library, op.name, name) for name in wrt], wrt)


@functools.cache
def _gradient(library: Library, name: str, wrt: str) -> FunctionType:
    module = library.module()
    op = grad.gradient(module, module.op(name), wrt)
    counting = tuple(module.op(a.counter) for a in op.attrs if a.counter)
    ops = (op, *counting)
    alone = replace(module, name=op.function_name, ops=ops, doc=op.doc)
    home = _recipe_of(library)
    made = module_of(alone, f"{name}, differentiated", home and ["gradient", home, name, wrt])
    function = getattr(made, op.function_name)
    assert isinstance(function, FunctionType)
    return function


def _origin(function: Callable[..., object]) -> tuple[Library, OpSpec]:
    """Return the library that a generated function belongs to, and its op."""
    names = getattr(function, "__globals__", {})
    library = names.get("_library")
    home = getattr(function, "__module__", None) or ""
    if library is None and _places.recipe(home):  # joblib pickles functions with those names only that they use
        library = import_module(home)._library
    name = getattr(function, "__name__", "")
    if isinstance(library, Library):
        for op in library.module().ops:
            if name.rstrip("_") in (op.function_name, op.name):
                return library, op
        if any(name.rstrip("_") in (g.function_name, g.name) for g in library.module().generics):
            message = f"{name} is generic: it has a gradient where its ranks are known"
            raise UserError(f"{message}, as in opgen.gradient of a function that opgen.compile captures")
    raise UserError(f"expected a function of a generated module, given {name or describe(function)}")


def module_of(module: Module, source: str, recipe: Recipe | None = None) -> LiveModule:
    """Return the Python module of a spec's model; `source` describes its source for readers.

    `recipe` is `_make`'s input for making it in another process.
    """
    text = render_module(module, source=source)
    serial = next(_serial)
    file = f"<opgen {module.name} {serial}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    made = LiveModule(module.name)
    made.__file__ = file
    if recipe is not None:
        _places.put(made, _places.name(recipe, serial))
        made.__name__ = made.__place__ or module.name  # its functions take it for their module's
    exec(compile(text, file, "exec"), made.__dict__)
    made.__name__ = module.name
    library = made.__dict__["_library"]
    assert isinstance(library, Library)
    library.hold(module)
    return made


# Pickled functions ----------------------------------------------------------------------------------


def _recipe_of(library: Library) -> Recipe | None:
    """Return the recipe of a library's module, made or to be imported; None if no other process comes to it."""
    name = library.module_name
    if (recipe := _places.recipe(name)) is not None:
        return recipe
    if name in ("", "__main__") or getattr(sys.modules.get(name), "_library", None) is not library:
        return None
    return ["import", name]


def _make(kind: str, *parts: Any) -> LiveModule | Lost:
    """Return the module that a recipe describes."""
    if kind == "load":
        path, digest = parts
        made = load(path)
        assert isinstance(made, LiveModule)
        if made._library.module().digest != digest:
            raise UserError(f"'{path}' is not as it was when its functions were pickled: load it and pickle them again")
        return made
    (how, *rest), op, wrt = parts
    home = import_module(rest[0] if how == "import" else _places.name([how, *rest]))
    library = home._library
    if isinstance(library, Lost):
        return library
    found: LiveModule = _gradient(library, op, wrt).__globals__["__live__"]
    return found


_places = Places(__name__, _make)
__path__: list[str] = []  # a package: places are below it
sys.meta_path.append(_places)
