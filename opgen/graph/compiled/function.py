"""Python functions that are compiled: captured for the types and shapes of a call, and run as one program.

  @opgen.compile
  def block(x, w, b): return ops.clamp(ops.add(ops.product(x, w), b))
  y = block(x, w, b)

Tensors among the arguments are inputs of the model: arrays and DLPack tensors, also within tuples, lists and
dictionaries.  All other arguments are part of the model.  The function is captured again for other values of these, and
for other types and ranks of tensors.  Other sizes use another program of the same model.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, cast

import numpy as np

from opgen.diagnostics import InternalError
from opgen.diagnostics.calls import ArgumentTypeError
from opgen.diagnostics.describe import describe, tensor
from opgen.dtypes import DType, lookup
from opgen.exact import Exact
from opgen.graph.build.capture import Trace
from opgen.graph.build.differentiated import Differentiated
from opgen.graph.build.structure import Leaf, Part, Several, is_tensor, join, split
from opgen.graph.compiled.staged import StagedModel
from opgen.graph.ir.bound import Kind
from opgen.graph.ir.nodes import Array, Graph
from opgen.graph.kernels.parallel_build import Progress
from opgen.locks import Lock
from opgen.runtime.call.checks import Checks
from opgen.runtime.call.recording import CaptureError, Symbol

MODELS = 16
"""Maximum number of models that a function keeps: those for the last kinds of arguments."""


@dataclass
class _Captured:
    """A model of a function, and the structure of the function's results once that is known."""

    model: StagedModel
    results: Part | None = None


class CompiledFunction:
    """A function that is compiled when it is called.  Many threads may call it at once."""

    def __init__(self, function: Callable[..., Any], progress: Progress | None = None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name: str = getattr(function, "__name__", "function")
        self._signature = inspect.signature(function)
        self._progress = progress
        self._captured: OrderedDict[object, _Captured] = OrderedDict()
        self._short: StagedModel | None = None
        self._lock = Lock()

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Return the function's result.

        `out` is the array to write it to, or a tuple of arrays, one for each result tensor.  In a function that is
        captured itself this is a call like any other.
        """
        if (short := self._short) is not None and not named and len(arguments) == len(short.input_names):
            result = short.at_once(*arguments, out=out)
            if result is not None:
                return result
        return self._called(arguments, named, out)

    def __get__(self, instance: object, _: type | None = None) -> Any:
        """Return a bound method where the function is an attribute of a class."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str | tuple[type[CompiledFunction], tuple[Callable[..., Any]]]:
        """Pickle by name where it replaces its function in a module, as with a decorator; else by its function."""
        name = getattr(self.function, "__qualname__", "")  # partial functions, objects and gradients have none
        module = sys.modules.get(getattr(self.function, "__module__", ""))
        return name if name and getattr(module, name, None) is self else (CompiledFunction, (self.function,))

    def __repr__(self) -> str:
        return f"<compiled function {self.name}>"

    def model(self, *arguments: Any, **named: Any) -> StagedModel:
        """Return the model that a call like this one runs."""
        structure, leaves = self.split(arguments, named)
        return self._for(structure, self._arrays(leaves)).model

    def graph(self, *arguments: Any, **named: Any) -> Graph:
        """Return the graph of a call like this one, before all passes."""
        structure, leaves = self.split(arguments, named)
        given = self._arrays(leaves)
        kinds = {name: (_dtype(self.name, name, a), a.shape) for name, a in given.items()}
        return self.traced(structure, kinds)[0]

    def gradient(self, wrt: str | Sequence[str]) -> CompiledFunction:
        """Return the gradient with respect to an argument, or a tuple of them, as a function of the same arguments.

        Its extra argument `grad` (`grad_` if there is such an argument already) is passed by name.  It is the gradient
        with respect to the function's results: a tensor, or tensors that nest as the results do.  Its default is 1
        everywhere, which gives the gradient of the sum of all results.  Each gradient has the shape of its argument.
        For an argument that holds several tensors, the gradients nest as they do.
        """
        return CompiledFunction(Differentiated(self, wrt), self._progress)

    # Calls ----------------------------------------------------------------------------------------

    def _called(self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any) -> Any:
        structure, leaves = self.split(arguments, named)
        if any(isinstance(leaf, Symbol) for _, leaf in leaves):
            if out is not None:
                raise CaptureError(f"{self.name}: 'out' cannot be given in a function that is compiled: no call runs")
            return self.function(*arguments, **named)
        captured = self._for(structure, self._arrays(leaves))
        found = captured.model(*(leaf for _, leaf in leaves), out=out)
        if captured.results is None:
            raise InternalError(f"'{self.name}' ran and was not captured")
        if _is_plain(captured.results):
            if not named and len(arguments) == len(leaves) and all(map(is_tensor, arguments)):
                self._short = captured.model
            return found
        return join(captured.results, iter(found if isinstance(found, tuple) else (found,)))

    def split(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Several, list[tuple[str, Any]]]:
        """Return the arguments without their tensors, and the tensors by name."""
        bound = self._signature.bind(*arguments, **named)
        bound.apply_defaults()
        parts: list[Part] = []
        leaves: list[tuple[str, Any]] = []
        for name, value in bound.arguments.items():
            part, found = split(value, is_tensor, name)
            parts.append(part)
            leaves += found
        return Several(dict, tuple(parts), Exact(tuple(bound.arguments))), leaves

    def _arrays(self, leaves: Sequence[tuple[str, Any]]) -> dict[str, Array]:
        """Return the tensors as arrays.  Raises ArgumentTypeError for one that cannot be read."""
        check = Checks(self.name)
        found: dict[str, Array] = {}
        for name, leaf in leaves:
            array = check.as_array(name, leaf)
            if array is None:
                raise ArgumentTypeError(self.name, name, "a tensor", describe(leaf))
            found[name] = array
        return found

    def _for(self, structure: Part, given: Mapping[str, Array]) -> _Captured:
        """Return the model for tensors like these, made if there is none."""
        dtypes = {name: _dtype(self.name, name, a) for name, a in given.items()}
        key = (structure, tuple(dtypes.values()), tuple(a.ndim for a in given.values()))
        with self._lock:
            try:
                captured = self._captured.get(key)
            except TypeError as error:
                expected = "tensors, and values that can be told apart (hashable ones)"
                raise ArgumentTypeError(self.name, "arguments", expected, str(error)) from error
            if captured is None:
                captured = self._captured[key] = self._new(structure, dtypes)
                if len(self._captured) > MODELS:
                    self._captured.popitem(last=False)
            self._captured.move_to_end(key)
        return captured

    def _new(self, structure: Part, dtypes: Mapping[str, DType]) -> _Captured:
        def resolve(kinds: Mapping[str, Kind], _: Mapping[str, Array]) -> Graph:
            return self._resolved(made, structure, kinds)

        made = _Captured(StagedModel(self.name, dtypes, resolve, self._progress))
        return made

    def _resolved(self, captured: _Captured, structure: Part, kinds: Mapping[str, Kind]) -> Graph:
        graph, results = self.traced(structure, kinds)
        if captured.results not in (None, results):
            raise CaptureError(f"{self.name} returns tensors in another order or nesting for other sizes")
        captured.results = results
        return graph

    def traced(self, structure: Part, kinds: Mapping[str, Kind]) -> tuple[Graph, Part]:
        """Return the graph for inputs of these types and shapes, and the structure of the function's results."""
        work = Trace(self.name, kinds)
        arguments = join(structure, iter(work.symbols))
        bound = inspect.BoundArguments(self._signature, OrderedDict(cast("dict[str, Any]", arguments)))
        result = self.function(*bound.args, **bound.kwargs)
        results, leaves = split(result, _is_result, "result")
        if not leaves:
            raise CaptureError(f"{self.name} returns {describe(result)}, expected a tensor, or tensors")
        return work.graph(leaves), results


def _is_plain(results: Part) -> bool:
    """Return whether results have the form that a model returns: one tensor, or a tuple of several."""
    if isinstance(results, Several):
        return results.kind is tuple and len(results.parts) > 1 and all(isinstance(p, Leaf) for p in results.parts)
    return isinstance(results, Leaf)


def _is_result(value: object) -> bool:
    return isinstance(value, Symbol | np.ndarray | np.generic | int | float)


def _dtype(function: str, name: str, array: Array) -> DType:
    found = lookup(array.dtype.name)
    if found is None:
        raise ArgumentTypeError(function, name, "a tensor of a type that ops have", tensor(array))
    return found
