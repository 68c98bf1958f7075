"""Names under which pickle finds the functions of modules that are made in memory.

Pickle writes a function as its module's name and its own, and imports that module, both when it writes and when it
reads.  The name of a module made in memory is therefore a recipe: JSON, below the name of the package that can follow
it.  The process that made the module imports that one, any other makes it.  Until then no list holds the module, so
that it is freed when nobody refers to it.

A recipe that cannot be followed gives functions that raise the reason when they are called: a pool whose worker cannot
read a task waits for it forever.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn, TypeAlias, cast

from opgen.diagnostics import UserError, brief

Recipe: TypeAlias = "list[Any]"
"""Strings, and recipes."""


class LiveModule(ModuleType):
    """A module made in memory; pickled, and copied, by the name of its place.

    (All its own attributes have two underscores, since ops may have all other names.)
    """

    __place__: str | None = None

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        if self.__place__ is None:
            raise TypeError(f"module '{self.__name__}' cannot be pickled: opgen.load gives modules that can")
        return import_module, (self.__place__,)


class Lost:
    """A replacement for a module that cannot be made in this process, for its parts, and for theirs."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> Lost:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, _: object) -> Lost:
        return self

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise UserError(self._reason)


class Places(MetaPathFinder, Loader):
    """The places of live modules below a package; `make` follows a recipe."""

    def __init__(self, package: str, make: Callable[..., LiveModule | Lost]) -> None:
        self._start = f"{package}."
        self._make = make
        self._alive: weakref.WeakValueDictionary[str, LiveModule] = weakref.WeakValueDictionary()

    def name(self, recipe: Recipe, serial: int | None = None) -> str:
        """Return the name of a recipe's module; with a serial number, one that no other live module has."""
        text = json.dumps(recipe).replace("%", "%25").replace(".", "%2E")
        return f"{self._start}{text}{'' if serial is None else f'#{serial}'}"

    def recipe(self, name: str) -> Recipe | None:
        """Return the recipe that a name is; None for the name of any other module."""
        if not name.startswith(f"{self._start}["):
            return None
        text = name[len(self._start) :].replace("%2E", ".").replace("%25", "%")
        found: Recipe = json.JSONDecoder().raw_decode(text)[0]
        return found

    def put(self, module: LiveModule, name: str) -> None:
        """Let pickle find a module's functions by a name."""
        module.__place__ = name
        module.__dict__["__live__"] = module  # its functions, which hold its names, keep it alive
        self._alive[name] = module

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """As `importlib` asks: a name that is a recipe is a module."""
        return ModuleSpec(fullname, self) if fullname.startswith(f"{self._start}[") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of a name, made if this process has no living function of it."""
        try:
            made = self._alive.get(spec.name) or self._make(*(self.recipe(spec.name) or ()))
        except Exception as error:  # a pool waits for ever on a task that cannot be read: its call raises the reason
            made = Lost(f"cannot make in this process what was pickled: {brief(str(error), 1500)}")
        return cast("ModuleType", made)

    def exec_module(self, module: ModuleType) -> None:
        """Leave a module, which is complete, as it shows itself."""
        module.__spec__ = module.__loader__ = None
