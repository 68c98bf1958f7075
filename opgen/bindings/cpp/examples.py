"""A spec's examples as small programs: each calls an op directly and in a graph, and fails if a result is another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.bindings.c.text import one_line
from opgen.bindings.cpp.attributes import choices, optional_attrs, value
from opgen.bindings.cpp.names import class_names, function_names
from opgen.bindings.cpp.view import TYPES, op_names
from opgen.dtypes import DTYPES
from opgen.spec.model.model import Attr, Example, ExampleValue, Module, OpSpec, Sizes


@dataclass(frozen=True)
class TensorView:
    """A tensor of an example: `pieces` are its values in row-major order and its shape, as C++ source."""

    name: str
    type: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class ExampleView:
    """An example: `arguments` follow the inputs, `results` are the expected values of each output's member."""

    file: str
    title: str
    op: str
    cls: str
    function: str
    inputs: tuple[TensorView, ...]
    arguments: tuple[str, ...]
    results: tuple[TensorView, ...]


def example_views(module: Module) -> tuple[ExampleView, ...]:
    """Return the examples of all ops, in the spec's order."""
    classes = class_names(module.ops)
    functions = function_names(module.ops)
    return tuple(
        _example(op, example, f"{op.function_name}_{i + 1}", classes[op.name], functions[op.name])
        for op in module.ops
        for i, example in enumerate(op.examples)
    )


def _example(op: OpSpec, example: Example, file: str, cls: str, function: str) -> ExampleView:
    values = dict(example.values)
    names = op_names(op, cls)
    return ExampleView(
        file=file,
        title=one_line(example.title),
        op=one_line(op.name),
        cls=cls,
        function=function,
        inputs=tuple(
            _tensor(
                f"{names.parameters[i.name]}_value",
                "int32" if isinstance(i, Sizes) else _type(op, i.dtype),
                values[i.name],
            )
            for i in op.inputs
        ),
        arguments=tuple(_arguments(op, values, cls, names.setters)),
        results=tuple(_tensor(names.outputs[o.name], _type(op, o.dtype), values[o.name]) for o in op.outputs),
    )


def _type(op: OpSpec, dtype: str) -> str:
    """Return the scalar type in which an example is run: float32 if the op takes it."""
    variable = op.type_variable(dtype)
    if variable is None:
        return dtype
    names = [t.name for t in variable.allowed]
    return "float32" if "float32" in names else names[0]


def _tensor(name: str, dtype: str, values: ExampleValue) -> TensorView:
    shape: list[int] = []
    inner = values
    while isinstance(inner, tuple):
        shape.append(len(inner))
        inner = inner[0] if inner else 0
    numbers = [_literal(v, dtype) for v in _flat(values)] or [""]
    numbers[0] = "{" + numbers[0]
    numbers[-1] += "}"
    return TensorView(name, TYPES[dtype].cpp, (*numbers, "{" + ", ".join(map(str, shape)) + "}"))


def _literal(given: ExampleValue, dtype: str) -> str:
    """Return an element of a tensor of that type."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return value(given)
    if DTYPES[dtype].is_int:
        return f"{TYPES[dtype].cpp}({int(given)})" if DTYPES[dtype].is_bits else value(int(given))
    text = value(float(given))
    if dtype == "float64":
        return text
    single = f"{text}f" if text[-1].isdigit() else f"static_cast<float>({text})"
    return single if dtype == "float32" else f"{TYPES[dtype].cpp}({single})"


def _flat(values: ExampleValue) -> Iterator[ExampleValue]:
    if isinstance(values, tuple):
        for v in values:
            yield from _flat(v)
    else:
        yield values


def _arguments(op: OpSpec, values: dict[str, ExampleValue], cls: str, setters: dict[str, str]) -> Iterator[str]:
    form = next(f for f in choices(op) if all(_given(a, values) for a in f))
    for attr in form:
        yield value(_flattened(values[attr.name]))
    given = [a for a in optional_attrs(op) if a.name in values]
    if given:
        calls = "".join(f".{setters[a.name]}({value(_flattened(values[a.name]))})" for a in given)
        yield f"ops::{cls}::Attrs(){calls}"


def _given(attr: Attr, values: dict[str, ExampleValue]) -> bool:
    return attr.name in values and isinstance(values[attr.name], tuple) == bool(attr.shape)


def _flattened(given: ExampleValue) -> ExampleValue:
    return tuple(_flat(given)) if isinstance(given, tuple) else given
