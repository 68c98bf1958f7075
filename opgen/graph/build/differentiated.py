"""Gradients of functions that are compiled, as functions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from opgen.diagnostics import UserError, did_you_mean
from opgen.graph.ir.bound import Kind
from opgen.graph.build.capture import Traced
from opgen.graph.build.gradient import gradient
from opgen.graph.ir.nodes import Graph
from opgen.graph.build.structure import Part, Several, is_tensor, join, split
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.runtime.call.recording import CaptureError, symbol_among


class Differentiable(Protocol):
    """A function that is captured (`opgen.graph.compiled.function.CompiledFunction`)."""

    name: str

    def split(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Several, list[tuple[str, Any]]]:
        """Return the arguments of a call without their tensors, and the tensors by name."""

    def traced(self, structure: Part, kinds: Mapping[str, Kind]) -> tuple[Graph, Part]:
        """Return the graph for tensors of these types and shapes, and the structure of the function's results."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""


class Differentiated:
    """The gradient of a function, to be called with symbols."""

    def __init__(self, of: Differentiable, wrt: str | Sequence[str]) -> None:
        self.of = of
        self.names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
        self.single = isinstance(wrt, str)
        parameters = dict(inspect.signature(of).parameters)
        for name in self.names:
            if name not in parameters:
                hint = did_you_mean(name, parameters) or f"it has {', '.join(parameters) or 'none'}"
                raise UserError(f"{of.name} has no argument '{name}' to differentiate with respect to; {hint}")
        self.seed = "grad"
        while self.seed in parameters:
            self.seed += "_"
        own = inspect.Parameter(self.seed, inspect.Parameter.KEYWORD_ONLY, default=None)
        rest = [p for p in parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
        plain = [p for p in parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        self.__signature__ = inspect.Signature([*plain, own, *rest])
        self.__name__ = f"{of.name}_gradient"
        self.__doc__ = f"The gradient of `{of.name}` with respect to {', '.join(f'`{n}`' for n in self.names)}."

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        grad = named.pop(self.seed, None)
        structure, leaves = self.of.split(arguments, named)
        symbol = symbol_among([leaf for _, leaf in leaves])
        if not isinstance(symbol, Traced):
            raise CaptureError(f"{self.__name__}: none of its arguments is a tensor")
        kinds = {name: symbol.trace.kind_of(leaf) for name, leaf in leaves}
        graph, results = self.of.traced(structure, kinds)
        wanted = [leaf for name in self.names for leaf, _ in leaves if leaf == name or leaf.startswith(f"{name}[")]
        derived = gradient(graph, wanted)
        seeds = self._seeds(graph, results, grad)
        made = iter(symbol.trace.inline(derived, [*(leaf for _, leaf in leaves), *seeds]))
        parts = structure.named()
        each = tuple(join(parts[name], made) for name in self.names)
        return each[0] if self.single else each

    def _seeds(self, graph: Graph, results: Part, grad: Any) -> list[Any]:
        """Return the gradient with respect to each result."""
        if grad is None:
            values = [graph.value[name] for name in graph.outputs]
            return [np.ones(v.shape, numpy_dtype(v.dtype)) for v in values]
        structure, leaves = split(grad, is_tensor, self.seed)
        if structure != results:
            raise CaptureError(f"{self.__name__}: '{self.seed}' has to nest as the results of {self.of.name} do")
        return [leaf for _, leaf in leaves]
