"""Values that are known before a model runs: constants, and values that follow from constants and shapes alone.

They are computed on demand.  The elements of inputs may be offered, too.  They are read only when a value that follows
from them is demanded; the input itself stays an input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from opgen.diagnostics import UserError
from opgen.graph.ir.bound import bind
from opgen.graph.kernels.interpret import worked_out
from opgen.graph.ir.nodes import Array, Data, Node, Value
from opgen.graph.ir.offered import Offered
from opgen.graph.ir.steps import steps

MOST = 2**16
"""Maximum number of elements of a value that is computed for its integers: lists of sizes are far shorter."""


STEPS = 2**22
"""Maximum number of operations on elements for all of them together: a model's lists of sizes take some thousands."""


class UncomputableError(UserError):
    """A demanded value for which an op has no result; the text names the node and the reason."""


class Knowledge:
    """Known values of a graph under construction."""

    def __init__(self, offered: Mapping[str, Array]) -> None:
        """Start with `offered`, the elements of inputs."""
        self._offered = offered
        self._derived = not isinstance(offered, Offered) or offered.derived
        self._sources: dict[str, frozenset[str]] = {name: frozenset((name,)) for name in offered}
        """For each value, the inputs with offered elements from which it follows."""
        self._data: dict[str, Data] = {}
        self._computable: dict[str, tuple[Node, tuple[Value, ...]]] = {}
        self._worked_out: set[str] = set()
        self._left = STEPS

    def constant(self, value: Value, data: Data) -> None:
        """Add a value whose elements are given."""
        self._data[value.name] = data

    def node(self, node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        """Add a node whose inputs are present.

        Its results can be known if the elements of all inputs that it reads can be known.
        """
        read = [v for v, t in zip(inputs, node.op.spec.tensors, strict=True) if not t.shape_only]
        known = all(v.name in self._data or v.name in self._computable or v.name in self._offered for v in read)
        if known and all(prod(v.shape) <= MOST for v in outputs):
            self._computable.update((v.name, (node, tuple(inputs))) for v in outputs)
            sources = frozenset[str]().union(*(self._sources.get(v.name, ()) for v in read))
            if sources:
                self._sources.update((v.name, sources) for v in outputs)

    def worked_out(self, name: str) -> bool:
        """Return whether a value has been computed here from a node."""
        return name in self._worked_out

    def data(self, name: str) -> Data | None:
        """Return the elements of a value if they are known by now."""
        return self._data.get(name)

    def elements(self, name: str) -> Array | None:
        """Return the elements of a value, computed if they can be known; else None.  Raises UncomputableError."""
        unread = [source for source in self._sources.get(name, ()) if source not in self._data]
        if unread and name not in self._offered and not self._derived:
            return None
        self._data.update((source, Data(self._offered[source])) for source in unread)
        waiting = [name]
        while waiting:
            last = waiting[-1]
            if last in self._data:
                waiting.pop()
            elif last not in self._computable:
                return None
            else:
                node, inputs = self._computable[last]
                needed = [
                    v.name
                    for v, t in zip(inputs, node.op.spec.tensors, strict=True)
                    if not t.shape_only and v.name not in self._data
                ]
                waiting += needed
                if not needed:
                    self._run(node, inputs)
        return self._data[name].array

    def _run(self, node: Node, inputs: Sequence[Value]) -> None:
        """Compute a node's results."""
        call = bind(node.op, node.types, node.attributes, [(v.dtype, v.shape) for v in inputs])
        arrays = [self._data[v.name].array if v.name in self._data else None for v in inputs]
        where = node.origin or f"node '{node.name}' ({node.op.spec.name})"
        self._left -= steps(call)
        if self._left < 0:
            said = f"shapes that depend on it take more than {STEPS} operations"
            raise UncomputableError(f"takes what cannot be computed: {where}: {said}")
        try:
            results = worked_out(call, arrays)
        except (UserError, MemoryError) as error:
            raise UncomputableError(f"takes what cannot be computed: {where}: {error}") from None
        for name, array in zip(node.outputs, results, strict=True):
            self._data[name] = Data(array)
            self._worked_out.add(name)
