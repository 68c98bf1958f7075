"""The names of an op in C++: its class, setters, members and parameters."""

from __future__ import annotations

from collections.abc import Iterable

from opgen.bindings.c.text import Names
from opgen.spec.model.model import Attr, OpSpec
from opgen.spec.resolve.words import CPP_API

_PARAMETERS = (*CPP_API, "scope", "attrs", "call", "results", "status", "x", "ret", "std", "int64_t")


class ClassNames:
    """The names within one op's class; `cls` is the class's own.

    `setters` and `storage` are those of each spelling of an optional attribute, `parameters` those of a call's required
    arguments, `outputs` those of the results.
    """

    def __init__(self, op: OpSpec, cls: str, spellings: Iterable[str], required: Iterable[Attr]) -> None:
        self.cls = cls
        members = Names((cls, "operation", "node", "Attrs", "Output", "Input"))
        self.setters = {s: members.fresh(camel_case(s)) for s in spellings}
        self.outputs = {o.name: members.fresh(o.name) for o in op.outputs}
        storage = Names((*self.setters.values(), "ret", "x"))
        self.storage = {s: storage.fresh(f"{s}_") for s in self.setters}
        parameters = Names((*_PARAMETERS, cls, *self.setters.values(), *self.outputs.values()))
        self.parameters = {n: parameters.fresh(n) for n in (*(i.name for i in op.inputs), *(a.name for a in required))}


def camel_case(name: str) -> str:
    """Return `data_format` as `DataFormat`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or name


def class_names(ops: Iterable[OpSpec]) -> dict[str, str]:
    """Return the name of each op's class."""
    names = Names(CPP_API)
    return {op.name: names.fresh(op.name) for op in ops}


def function_names(ops: Iterable[OpSpec]) -> dict[str, str]:
    """Return the name of each op's direct function."""
    names = Names(CPP_API)
    return {op.name: names.fresh(op.function_name) for op in ops}
