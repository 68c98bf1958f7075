"""Errors of a model: it is malformed, or it needs something that opgen does not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opgen.diagnostics import UserError, brief, first_of

_SHOWN = 5
"""Nodes with the same complaint that a message names; it counts the others."""


_LONGEST = 400
"""Characters of a reason that a message shows."""


@dataclass(frozen=True)
class Complaint:
    """A mistake, with its node and operator; both are empty if it concerns the model itself."""

    reason: str
    node: str = ""
    operator: str = ""

    def __str__(self) -> str:
        where = f"node '{brief(self.node)}' ({brief(self.operator)}): " if self.node else ""
        return where + brief(self.reason, _LONGEST)


class OnnxError(UserError):
    """A model that cannot be taken in.  `source` says where it came from; `complaints` are all that was found."""

    said = "cannot be read"

    def __init__(self, source: str, complaints: Sequence[Complaint]) -> None:
        self.source = source
        self.complaints = tuple(complaints)
        rows = [f"  {row}" for row in first_of(_rows(complaints))]
        super().__init__(f"{brief(source, _LONGEST)}: the model {self.said}:\n" + "\n".join(rows))

    def __reduce__(self) -> tuple[type[OnnxError], tuple[str, tuple[Complaint, ...]]]:
        return type(self), (self.source, self.complaints)


class MalformedModelError(OnnxError):
    """A model that is none by ONNX's own rules: torn, with a cycle, with data that do not fit their shape."""

    said = "is malformed"


class UnsupportedModelError(OnnxError):
    """A model that ONNX allows, and that asks for operators, attributes or types that opgen does not have."""

    said = "needs what is not supported"


class PackageMissingError(UserError):
    """The package `onnx` is not installed."""

    def __init__(self) -> None:
        super().__init__("models in ONNX's format need the package 'onnx': pip install 'opgen[onnx]'")


def _rows(complaints: Iterable[Complaint]) -> list[str]:
    """Return a line for each reason and operator, with the first of the nodes that have it."""
    alike: dict[tuple[str, str], list[str]] = {}
    for found in complaints:
        alike.setdefault((found.operator, found.reason), []).append(found.node)
    rows = []
    for (operator, reason), nodes in alike.items():
        operator, reason = brief(operator), brief(reason, _LONGEST)
        named = ", ".join(f"'{brief(node)}'" for node in nodes[:_SHOWN])
        more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
        which = "node" if len(nodes) == 1 else "nodes"
        rows.append(f"{which} {named}{more} ({operator}): {reason}" if operator else reason)
    return rows
