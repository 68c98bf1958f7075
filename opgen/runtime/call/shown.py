"""Signatures that generated functions show; a call never fails before the function runs.

A generated function takes any keyword, so that its error can suggest the closest known one.  A function with several
signatures takes positions without names.  `inspect.signature` and `help` show the op's own arguments.  A missing
required argument is None, so that the op's own checks refuse the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import FunctionType, MappingProxyType
from typing import Any

from opgen.locks import cached_property

_HIDDEN = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


class Shown(inspect.Signature):
    """The signature of a generated function as it is written, computed on demand.

    With `like` it has that function's parameters.  They are keywords there, and may also be positional here, except
    `out`.
    """

    def __init__(self, function: FunctionType, like: FunctionType | None = None) -> None:
        self._function = _copy(function)
        self._like = like

    @cached_property
    def _plain(self) -> inspect.Signature:
        if self._like is not None:
            found = inspect.signature(self._like)
            kept = [
                p if p.name == "out" else p.replace(kind=p.POSITIONAL_OR_KEYWORD) for p in found.parameters.values()
            ]
            return found.replace(parameters=kept)
        found = inspect.signature(self._function)
        return found.replace(parameters=[p for p in found.parameters.values() if p.kind not in _HIDDEN])

    @property
    def parameters(self) -> MappingProxyType[str, inspect.Parameter]:
        """The parameters by name, in order."""
        return self._plain.parameters

    @property
    def return_annotation(self) -> Any:
        """The annotation of the result."""
        return self._plain.return_annotation

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        """Return a signature with other parameters or another result."""
        return self._plain.replace(**changes)

    def __reduce__(self) -> Any:
        return self._plain.__reduce__()


def _copy(function: FunctionType) -> FunctionType:
    made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    made.__kwdefaults__, made.__annotations__ = function.__kwdefaults__, function.__annotations__
    return made


def show(module: Mapping[str, Any], signed: Mapping[str, str]) -> None:
    """Finish the functions of a generated module; `signed` are those with several signatures, with their ops."""
    raw = module["raw_ops"]
    done: set[FunctionType] = set()
    for owner, function in _functions(module):
        if function not in done:
            done.add(function)
            op = None if owner is raw else signed.get(function.__name__)
            shown = Shown(function, None if op is None else getattr(raw, op))
            function.__dict__["__signature__"] = shown
            _default_to_none(function)


def _functions(module: Mapping[str, Any]) -> Iterator[tuple[object, FunctionType]]:
    """Yield the functions that a generated module makes public, and the class that holds each, if one does."""
    for name in module["__all__"]:
        member = module[name]
        for found in vars(member).values() if isinstance(member, type) else (member,):
            function = found.__func__ if isinstance(found, staticmethod) else found
            if isinstance(function, FunctionType):
                yield member, function


def _default_to_none(function: FunctionType) -> None:
    code, defaults = function.__code__, function.__defaults__ or ()
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    function.__defaults__ = (None,) * (code.co_argcount - len(defaults)) + defaults
    function.__kwdefaults__ = dict.fromkeys(keywords) | (function.__kwdefaults__ or {})
