"""Shared state of an import's parts: names that are taken, mistakes so far, amounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from opgen.onnx.errors import Complaint, MalformedModelError, UnsupportedModelError
from opgen.onnx.external import Folder
from opgen.onnx.functions import Identifier, Types
from opgen.onnx.interface import Interface, Op, interface
from opgen.spec.model.model import Module

Scope: TypeAlias = "dict[str, str | None]"
"""The names that nodes see, each with the name that the value has in the whole model; None: it is left out."""

_NODES = 100_000
"""The most nodes of a model, functions written out."""

_WRITTEN = 30_000
"""The most nodes that functions are written out to: a few of these that call each other twice would be without end."""


class TooManyNodesError(Exception):
    """More nodes than a model may have; the text is the reason."""


class Names:
    """Names in use."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def keep(self, name: str) -> None:
        """Notes a name that is in use as it is."""
        self._last.setdefault(name, 1)

    def free(self, wanted: str) -> str:
        """Return an unused name and mark it used: the wanted one if it is free, else with a number."""
        if wanted not in self._last:
            self._last[wanted] = 1
            return wanted
        while True:
            self._last[wanted] += 1
            name = f"{wanted}.{self._last[wanted]}"
            if name not in self._last:
                self._last[name] = 1
                return name


@dataclass
class Import:
    """One import.  `local` are the model's own functions; `types` is None if no function needs them."""

    module: Module
    source: str
    folder: Folder | None
    local: Mapping[Identifier, Any]
    types: Types | None
    malformed: list[Complaint] = field(default_factory=list)
    refused: list[Complaint] = field(default_factory=list)
    values: Names = field(default_factory=Names)
    nodes: Names = field(default_factory=Names)
    left: int = _NODES
    left_in_functions: int = _WRITTEN
    _interfaces: dict[int, Interface] = field(default_factory=dict)

    def interface(self, op: Op) -> Interface:
        """Return the interface of an op of the module, made once."""
        found = self._interfaces.get(id(op))
        if found is None:
            found = self._interfaces[id(op)] = interface(op)
        return found

    def node_name(self, wanted: str, written: bool = False) -> str:
        """Return a name that no node has yet; `written`: of a node of a function.  Raises TooManyNodesError."""
        self.left -= 1
        self.left_in_functions -= written
        if self.left < 0:
            raise TooManyNodesError(f"it has more than {_NODES} nodes, functions written out")
        if self.left_in_functions < 0:
            raise TooManyNodesError(f"its functions are more than {_WRITTEN} nodes, written out")
        return self.nodes.free(wanted)

    def raise_if_any(self) -> None:
        """Raises MalformedModelError, or UnsupportedModelError, with all that was found."""
        if self.malformed:
            raise MalformedModelError(self.source, self.malformed)
        if self.refused:
            raise UnsupportedModelError(self.source, self.refused)


@dataclass(frozen=True)
class Context:
    """Surroundings of nodes: the versions of their domains, and in a function more.

    A function has the attributes that its nodes may refer to, the prefix of its values' names, the functions being
    expanded, this one last, and the names that its results have outside.
    """

    opsets: Mapping[str, int]
    references: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    within: tuple[Identifier, ...] = ()
    targets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """A node with names of the whole model and its attributes at hand; `scope` has the names that it can use."""

    node: Any
    name: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    attributes: Mapping[str, Any]
    context: Context
    scope: Scope

    @property
    def operator(self) -> str:
        """Return the operator's name in messages."""
        return operator_of(self.node)

    def complaint(self, reason: str) -> Complaint:
        """Return a complaint about the node."""
        return Complaint(reason, self.name, self.operator)


def operator_of(node: Any) -> str:
    """Return the name of a node's operator in messages."""
    return f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)
