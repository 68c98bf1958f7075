"""Capture: a Python function that calls generated functions becomes a graph.

The function is called once, with symbols that have types and shapes but no values.  Each generated function that gets a
symbol checks the call as always, and becomes a node.  All other Python code runs at capture and never again: loops are
unrolled, branches on shapes are taken, and arrays that are not arguments of the function are constants.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from opgen.diagnostics import InternalError
from opgen.graph.ir.arithmetic import MATRICES, MINUS, OPPOSITE, OVER, PLUS, POWER, TIMES, op_for
from opgen.graph.ir.bound import Kind, make_node
from opgen.graph.ir.nodes import Array, Constant, Data, Graph, Node, Op, Value, op_of
from opgen.runtime.memory.buffers import dtype_of, numpy_dtype
from opgen.diagnostics.calls import ArgumentValueError
from opgen.runtime.call.recording import Callee, CaptureError, Symbol, stand_in
from opgen.spec.model.model import Module, OpSpec, Sizes

_HERE = str(Path(__file__).parents[2])


class Traced(Symbol):
    """A value of a graph that is being captured."""

    def __init__(self, trace: Trace, value: Value) -> None:
        super().__init__(numpy_dtype(value.dtype), value.shape)
        self.trace = trace
        self.value = value

    def called(
        self, callee: Callee, tensors: tuple[object, ...], rest: tuple[object, ...], out: object
    ) -> tuple[Symbol, ...]:
        """Return the results of a call, which is now a node."""
        return self.trace.call(callee, tensors, rest, out)

    def __add__(self, other: object) -> Any:
        return self._with(PLUS, self, other)

    def __radd__(self, other: object) -> Any:
        return self._with(PLUS, other, self)

    def __sub__(self, other: object) -> Any:
        return self._with(MINUS, self, other)

    def __rsub__(self, other: object) -> Any:
        return self._with(MINUS, other, self)

    def __mul__(self, other: object) -> Any:
        return self._with(TIMES, self, other)

    def __rmul__(self, other: object) -> Any:
        return self._with(TIMES, other, self)

    def __truediv__(self, other: object) -> Any:
        return self._with(OVER, self, other)

    def __rtruediv__(self, other: object) -> Any:
        return self._with(OVER, other, self)

    def __pow__(self, other: object) -> Any:
        return self._with(POWER, self, other)

    def __rpow__(self, other: object) -> Any:
        return self._with(POWER, other, self)

    def __matmul__(self, other: object) -> Any:
        return self._with(MATRICES, self, other)

    def __rmatmul__(self, other: object) -> Any:
        return self._with(MATRICES, other, self)

    def __neg__(self) -> Any:
        return self._with(OPPOSITE, self)

    def _with(self, name: str, *given: object) -> Any:
        """Return the result of arithmetic with symbols, arrays and numbers; the numbers take the symbol's type."""
        if not all(isinstance(g, Symbol | np.ndarray | np.generic | int | float) for g in given):
            return NotImplemented
        values = [self.trace.value(g) if isinstance(g, Symbol) else self._constant(g) for g in given]
        op = op_for(name, values)
        (result,) = self.trace.add(op.module, op.spec, values, {})
        return result

    def _constant(self, given: Any) -> Value:
        if isinstance(given, int | float):
            found = np.asarray(given, self.dtype)
            if found.item() != given and not self.value.dtype.is_float:
                raise CaptureError(f"{given} is no {self.dtype.name}, the type of the tensor that it is combined with")
            given = found
        return self.trace.constant(np.asarray(given)).value


class Trace:
    """A graph as it grows."""

    def __init__(self, name: str, inputs: Mapping[str, Kind]) -> None:
        self.name = name
        self.inputs = tuple(Value(n, dtype, shape) for n, (dtype, shape) in inputs.items())
        self._values: list[Value] = []
        self._nodes: list[Node] = []
        self._constants: dict[Data, Constant] = {}
        self._taken = {v.name for v in self.inputs}
        self._ops: dict[tuple[int, str], tuple[Module, Op]] = {}
        self._done = False

    @property
    def symbols(self) -> tuple[Traced, ...]:
        """Return the inputs as symbols."""
        return tuple(Traced(self, v) for v in self.inputs)

    def call(
        self, callee: Callee, tensors: tuple[object, ...], rest: tuple[object, ...], out: object
    ) -> tuple[Any, ...]:
        """Add the node of a call and return its results.  Raises the errors that the call itself would raise.

        The results are symbols.  They are arrays where the call depends on shapes alone, and is therefore known.
        """
        if out is not None:
            raise CaptureError(f"{callee.name}: 'out' cannot be given in a function that is compiled: no call runs")
        if callee.module is None:
            raise InternalError(f"the operator of '{callee.name}' knows no spec")
        stand_ins = tuple(stand_in(t.dtype, t.shape) if isinstance(t, Symbol) else t for t in tensors)
        checked = callee.checked(stand_ins, rest)
        arrays = cast("list[Array]", list(checked.tensors.values()))
        module = callee.module()
        spec = module.op(callee.name)
        if all(s.shape_only or not isinstance(t, Symbol) for s, t in zip(spec.tensors, tensors, strict=True)):
            return callee.several(stand_ins, rest, None)  # it depends on shapes alone
        values = [
            self.value(t) if isinstance(t, Symbol) else self.constant(a).value
            for t, a in zip(tensors, arrays, strict=True)
        ]
        return self.add(module, spec, values, attributes(spec, rest), checked.types)

    def add(
        self,
        module: Module,
        spec: OpSpec,
        inputs: Sequence[Value],
        given: Mapping[str, Any],
        types: Mapping[str, str] | None = None,
    ) -> tuple[Traced, ...]:
        """Add a node and return its results."""
        if self._done:
            raise CaptureError(f"{spec.name}: a symbol outlives the function that it was made for")
        label = self._fresh(spec.function_name)
        outputs = [label if len(spec.outputs) == 1 else self._fresh(f"{label}.{o.name}") for o in spec.outputs]
        op = self._op(module, spec)
        node, made = make_node(label, op, inputs, outputs, given, types, place_outside())
        self._nodes.append(node)
        self._values += made
        return tuple(Traced(self, value) for value in made)

    def inline(self, graph: Graph, inputs: Sequence[object]) -> tuple[Traced, ...]:
        """Add the nodes of a graph, given its inputs (symbols, or arrays of their types), and return its results."""
        if self._done:
            raise CaptureError(f"{graph.name}: a symbol outlives the function that it was made for")
        known: dict[str, Value] = {}
        for v, i in zip(graph.inputs, inputs, strict=True):
            found = known[v.name] = self.value(i) if isinstance(i, Symbol) else self.constant(np.asarray(i)).value
            if (found.dtype, found.shape) != (v.dtype, v.shape):
                expected, given = f"{v.dtype}{list(v.shape)}", f"{found.dtype}{list(found.shape)}"
                raise ArgumentValueError(graph.name, v.name, expected, given)
        known |= {name: self.constant(c.data.array).value for name, c in graph.constant.items()}
        for node in graph.nodes:
            outputs = [self._fresh(name) for name in node.outputs]
            made = [replace(graph.value[old], name=new) for old, new in zip(node.outputs, outputs, strict=True)]
            inner = [known[name].name for name in node.inputs]
            self._nodes.append(replace(node, name=self._fresh(node.name), inputs=tuple(inner), outputs=tuple(outputs)))
            self._values += made
            known |= zip(node.outputs, made, strict=True)
        return tuple(Traced(self, known[name]) for name in graph.outputs)

    def value(self, symbol: Symbol) -> Value:
        """Return the value of a symbol.  Raises CaptureError if the symbol belongs to another function."""
        if not isinstance(symbol, Traced) or symbol.trace is not self:
            raise CaptureError("a symbol is used outside the function that it was made for")
        return symbol.value

    def kind_of(self, given: object) -> Kind:
        """Return the type and shape of a symbol or an array."""
        found = self.value(given) if isinstance(given, Symbol) else self.constant(np.asarray(given)).value
        return found.dtype, found.shape

    def constant(self, array: Array) -> Constant:
        """Return the constant with the elements that an array has now."""
        data = Data(np.array(array, order="C"))
        dtype = dtype_of(data.array)
        if dtype is None:
            raise CaptureError(f"a constant of type {array.dtype}, which no op has")
        if data not in self._constants:
            value = Value(self._fresh("constant"), dtype, data.array.shape)
            self._constants[data] = Constant(value, data)
        return self._constants[data]

    def graph(self, results: Sequence[tuple[str, object]]) -> Graph:
        """Return the graph that gives these results (symbols or arrays), by name, and close the trace."""
        outputs = []
        for name, result in results:
            if isinstance(result, Symbol):
                outputs.append(self.value(result).name)
            elif isinstance(result, np.ndarray | np.generic | int | float):
                outputs.append(self.constant(np.asarray(result)).value.name)
            else:
                raise CaptureError(f"{self.name} returns a {type(result).__name__} ({name}), which is no tensor")
        self._done = True
        constants, values = tuple(self._constants.values()), tuple(self._values)
        names = tuple(name for name, _ in results)
        return Graph(self.name, self.inputs, constants, values, tuple(self._nodes), tuple(outputs), names)

    def _op(self, module: Module, spec: OpSpec) -> Op:
        """Return the op on its own, made once for a module (which is kept alive, so that its id stays unique)."""
        key = id(module), spec.name
        if key not in self._ops:
            self._ops[key] = module, op_of(module, spec)
        return self._ops[key][1]

    def _fresh(self, name: str) -> str:
        number, found = 1, name
        while found in self._taken:
            number += 1
            found = f"{name}.{number}"
        self._taken.add(found)
        return found


def attributes(spec: OpSpec, rest: Sequence[object]) -> dict[str, Any]:
    """Return the arguments of a call that are not tensors, by name: attributes, and the integers of `sizes` inputs."""
    tensors = {t.name for t in spec.tensors}
    given = dict(zip([n for n in spec.signature if n not in tensors], rest, strict=True))
    known = (
        {a.name for a in spec.attrs}
        | {a.alias for a in spec.attrs}
        | {i.name for i in spec.inputs if isinstance(i, Sizes)}
    )
    return {name: _plain(value) for name, value in given.items() if name in known and value is not None}


def _plain(value: object) -> object:
    """Return arrays as lists, bytes as strings, and nested lists flat."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple) and any(isinstance(v, list | tuple) for v in value):
        return [v for inner in value for v in cast("Sequence[object]", _plain(inner))]
    return list(value) if isinstance(value, tuple) else value


def trace(function: Callable[..., Any], name: str, inputs: Mapping[str, Kind]) -> Graph:
    """Return the graph of a function of tensors of these types and shapes, in order, that returns one or a tuple."""
    work = Trace(name, inputs)
    result = function(*work.symbols)
    results = result if isinstance(result, list | tuple) else (result,)
    names = ["result"] if len(results) == 1 else [f"result.{number}" for number in range(len(results))]
    return work.graph(list(zip(names, results, strict=True)))


def place_outside() -> str:
    """Return the place in the user's code from which this is called: `file.py:12`."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        code = frame.f_code.co_filename
        if not code.startswith((_HERE, "<")) and "_library" not in frame.f_globals:
            return f"{Path(code).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
