"""Generic ops as the template of a module needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from opgen.bindings.python.attributes import ParameterView
from opgen.bindings.python.counts import count_statements
from opgen.bindings.python.docstrings import summary_and_rest
from opgen.bindings.python.scope import RESERVED
from opgen.bindings.python.text import Names, docstring, literal, paragraphs, wrapped
from opgen.dtypes import DTYPES, lookup
from opgen.spec.generic.examples import ExampleCall, examples_of
from opgen.spec.model.model import ExampleValue, GenericOp, Module
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.printer import print_item
from opgen.spec.syntax.report import Report

TEXT = 112
"""The width of a docstring's text."""


@dataclass(frozen=True)
class GenericView:
    """A generic op: its public function.

    `tensors` and `attributes` are source; `results` is the argument with the wanted number of results, empty where
    there is one.

    `itself` is the function's name within it, if an argument may have its name.
    """

    name: str
    registered: str
    function: str
    itself: str
    operator: str
    positional: tuple[ParameterView, ...]
    keywords: tuple[ParameterView, ...]
    docstring: str
    returns: str
    method: str
    call: tuple[str, ...]
    handle: str
    counts: tuple[str, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments that the function passes on."""
        return (*self.call, "out")


def generic_view(module: Module, op: GenericOp, names: Names, raw: Names) -> GenericView:
    """Return the view of one op."""
    function = names.fresh(op.function_name)
    local = Names(RESERVED)
    arguments = {d.name.name: local.fresh(d.name.name) for d in (*op.inputs, *op.attrs)}
    positional = tuple(_inputs(op, arguments))
    keywords = [_attribute(a, arguments[a.name.name]) for a in op.attrs]
    single = len(op.outputs) == 1 and isinstance(op.outputs[0], s.TensorDecl)
    listed = any(isinstance(o, s.SeveralDecl) for o in op.outputs)
    fixed = not listed and not any(isinstance(o, s.TensorDecl) and o.optional for o in op.outputs)
    results = "" if fixed else local.fresh("results")
    if results:
        keywords.append(ParameterView(results, "int | None", "None"))
    operator = names.fresh(f"_{op.function_name}")
    tensors = [_given(d, arguments[d.name.name], operator) for d in op.inputs]
    given = [f"{literal(a.name.name)}: {arguments[a.name.name]}" for a in op.attrs]
    alone = len(tensors) == 1 and tensors[0].startswith("*")
    several = tensors[0][1:] if alone else f"({', '.join(tensors)}{',' if len(tensors) == 1 else ''})"
    call = [several, f"{{{', '.join(given)}}}"]
    call += [] if single else [results or "None"]
    returns = "Array" if single else "Array | tuple[Array, ...]" if not listed and not fixed else "tuple[Array, ...]"
    return GenericView(
        name=op.name,
        registered=raw.fresh(op.name),
        function=function,
        itself=names.fresh(f"_{function}_function") if function in arguments.values() else function,
        operator=operator,
        positional=positional,
        keywords=tuple(keywords),
        docstring=docstring("\n".join(_docstring(op, arguments, function, results)), 4),
        returns=returns,
        method="single" if single else "several" if listed or fixed else "some",
        call=tuple(call),
        handle="Prepared" if single else "Prepared | PreparedSeveral",
        counts=tuple(count_statements(module, op, arguments)),
    )


def _given(decl: s.TensorDecl | s.SeveralDecl | s.StaticDecl | s.SizesDecl, argument: str, operator: str) -> str:
    """Return the expression that a call passes on for an input."""
    if isinstance(decl, s.SeveralDecl):
        return f"*{operator}.each({literal(decl.name.name)}, {argument})"
    return argument


def _inputs(op: GenericOp, arguments: dict[str, str]) -> Iterator[ParameterView]:
    """Yield the inputs; after an optional one, all are optional, and the call refuses those it lacks."""
    optional = False
    for decl in op.inputs:
        name = arguments[decl.name.name]
        annotation = "TensorLike"
        if isinstance(decl, s.SeveralDecl):
            annotation = "Sequence[TensorLike]"
            yield ParameterView(name, annotation, "()" if optional else None)
            continue
        if isinstance(decl, s.StaticDecl | s.SizesDecl):
            floats = isinstance(decl, s.StaticDecl) and decl.dtype.name not in ("int32", "int64", "bool")
            annotation = "Numbers" if floats else "Integers"
            if isinstance(decl, s.StaticDecl) and decl.scalar:
                annotation = "float" if floats else "int"
        optional = optional or (not isinstance(decl, s.SizesDecl) and decl.optional)
        yield ParameterView(name, f"{annotation} | None" if optional else annotation, "None" if optional else None)


def _attribute(attr: s.AttrDecl, name: str) -> ParameterView:
    if attr.counter:
        return ParameterView(name, "int | None", "None")
    annotation = _annotation(attr)
    if attr.default is None:
        return ParameterView(name, annotation)
    return ParameterView(name, f"{annotation} | None", _default_of(attr))


def _annotation(attr: s.AttrDecl) -> str:
    kind = attr.type.kind.name
    if kind in ("type", "equation"):
        return "str"
    if attr.type.words:
        words = f"Literal[{', '.join(literal(w) for w in _words(attr))}]"
        return f"Sequence[{words}]" if attr.type.shape else words
    if attr.type.shape:
        return "Numbers" if kind == "float" else "Integers"
    return kind


def _words(attr: s.AttrDecl) -> list[str]:
    names = [w.name.name for w in attr.type.words]
    return [_canonical(n) for n in names] if attr.type.kind.name == "type" else names


def _canonical(name: str) -> str:
    dtype = lookup(name)
    return name if dtype is None else dtype.name


def _default_of(attr: s.AttrDecl) -> str:
    """Return the default as a caller writes it; `None` where the op computes it, or for a uniform list."""
    value = None if attr.default is None else _value(attr.default)
    if attr.type.kind.name == "type":
        return literal(_canonical(str(value))) if str(value) and lookup(str(value)) is not None else "None"
    if attr.type.shape and not (isinstance(value, tuple) and value):
        return "None"
    return literal(value)


def _value(tree: s.Value) -> int | float | bool | str | tuple[object, ...]:
    if isinstance(tree, s.ListValue):
        return tuple(map(_value, tree.items))
    if isinstance(tree, s.Named):
        words: dict[str, bool | float] = {"true": True, "false": False, "inf": float("inf"), "-inf": float("-inf")}
        return words.get(tree.name, tree.name)
    if isinstance(tree, s.Text):
        return tree.value
    return int(tree.text) if tree.text.lstrip("-").isdigit() else float(tree.text)


# Documentation --------------------------------------------------------------------------------------


def _docstring(op: GenericOp, arguments: dict[str, str], function: str, results: str) -> Iterator[str]:
    summary, rest = summary_and_rest(op.doc or op.name)
    yield summary
    if rest:
        yield from ("", *paragraphs(rest, TEXT))
    yield from ("", "Args:")
    for decl in op.inputs:
        yield from _item(arguments[decl.name.name], f"{_tensor(decl)} {_text(decl.doc)}")
    for attr in op.attrs:
        yield from _item(arguments[attr.name.name], f"{_values(attr)} {_text(attr.doc)}{_shown_default(attr)}")
    if results:
        yield from _item(results, "How many results are wanted; as many as are not optional if it is not given.")
    yield from _item("out", _OUT)
    yield from ("", "Returns:")
    for output in op.outputs:
        yield from _item(output.name.name, f"{_tensor(output)} {_text(output.doc)}")
    types = [i for i in op.decl.items if isinstance(i, s.TypeDecl)]
    if types:
        yield from ("", "Types:")
        for variable in types:
            yield from _item(variable.name.name, ", ".join(_canonical(i.name) for i in variable.allowed))
    yield from ("", "Formula:")
    for item in op.decl.items:
        if isinstance(item, s.RankDecl | s.LetDecl | s.PackLet | s.DefinitionDecl):
            yield from wrapped(print_item(item).strip().removeprefix("let "), TEXT, "    ")
    for attr in op.attrs:
        if attr.type.kind.name == "equation":
            yield f"    The sums of products that {arguments[attr.name.name]} tells."
    yield from ("", "Raises:")
    yield from _item("ArgumentTypeError", "An argument of the wrong kind, or a tensor of the wrong scalar type.")
    yield from _item("ArgumentValueError", "A value out of range, or ranks and sizes that do not fit together.")
    yield from _item("ArgumentMemoryError", "A result too large for this machine.")
    for _, call in examples_of(Report(), op):
        yield from ("", *_example(op, arguments, function, results, call))


_OUT = "Where to write the result: a C-contiguous writeable array of its shape and type; a tuple of such for several."


def _item(name: str, text: str) -> list[str]:
    return wrapped(f"{name}: {text}", TEXT, "    ")


def _text(doc: s.Doc | None) -> str:
    return "" if doc is None else doc.value


def _tensor(decl: s.TensorDecl | s.SeveralDecl | s.StaticDecl | s.SizesDecl) -> str:
    if isinstance(decl, s.StaticDecl | s.SizesDecl):
        scalar = isinstance(decl, s.StaticDecl) and decl.scalar
        optional = ", or none" if isinstance(decl, s.StaticDecl) and decl.optional else ""
        floats = isinstance(decl, s.StaticDecl) and decl.dtype.name not in ("int32", "int64", "bool")
        what = "number" if floats else "integer"
        one = "A number" if floats else "An integer"
        return f"{one if scalar else f'{what.capitalize()}s'}{optional}."
    written = print_item(s.TensorDecl(decl.span, "input", decl.name, decl.dtype, decl.dims, None, False, None))
    shape = " ".join(written.split()).partition(": ")[2]
    if isinstance(decl, s.SeveralDecl):
        return f"One or more {shape}."
    return f"{shape}{', or none' if decl.optional else ''}."


def _values(attr: s.AttrDecl) -> str:
    low = "" if attr.minimum is None else f", at least {attr.minimum.text}"
    bounds = low + ("" if attr.maximum is None else f", at most {attr.maximum.text}")
    if attr.type.words:
        words = ", ".join(literal(w) for w in _words(attr))
        return f"Each one of {words}." if attr.type.shape else f"One of {words}."
    kind = attr.type.kind.name
    if attr.type.shape:
        written = " ".join(print_item(attr).split())
        length = written[written.index("[") + 1 : written.index("]")]
        count = "" if length == "..." else f"{length} "
        return f"{count}{'numbers' if kind == 'float' else 'integers'}{bounds}.".capitalize()
    said = {"int": f"An integer{bounds}.", "float": "A number.", "bool": "True or False.", "equation": "An equation."}
    return said.get(kind, "")


def _shown_default(attr: s.AttrDecl) -> str:
    if attr.counter:
        return " It is worked out of the elements if it is not given, by an op of its own that runs first."
    if attr.compatibility:
        return " Accepted for source compatibility; it has no effect."
    if attr.default is None or (isinstance(attr.default, s.ListValue) and not attr.default.items):
        return ""
    value = _value(attr.default)
    return f" The default is {literal(value)}{' for each' if attr.type.shape and not isinstance(value, tuple) else ''}."


def _example(op: GenericOp, arguments: dict[str, str], function: str, results: str, call: ExampleCall) -> Iterator[str]:
    """Yield a doctest.  Nested lists are float32 tensors where the type allows it, and results are shown so."""
    own = {a.name.name for a in op.attrs if a.counter}
    given = [d.name.name for d in (*op.inputs, *op.attrs) if d.name.name in call.values and d.name.name not in own]
    written = ", ".join(f"{arguments[n]}={literal(call.values[n])}" for n in given)
    outputs = [o for o in op.outputs if o.name.name in call.values]
    shown: list[ExampleValue] = []
    for output in outputs:
        value = call.values[output.name.name]
        values = value if isinstance(output, s.SeveralDecl) and isinstance(value, tuple) else (value,)
        shown += [_as_type(v, _type_of(op, output)) for v in values]
    yield from wrapped(f"Example, {call.title}:", TEXT, hanging="")
    single = len(op.outputs) == 1 and isinstance(op.outputs[0], s.TensorDecl)
    if single or (len(shown) == 1 and not any(isinstance(o, s.SeveralDecl) for o in op.outputs)):
        yield f"    >>> {function}({written}).tolist()"
        yield f"    {literal(shown[0])}"
        return
    wanted = f", {results}={len(shown)}" if results else ""
    yield f"    >>> [y.tolist() for y in {function}({written}{wanted})]"
    yield f"    {literal(tuple(shown))}"


def _type_of(op: GenericOp, output: s.TensorDecl | s.SeveralDecl) -> str:
    """Return the type that a result has where all tensors are lists."""
    for item in op.decl.items:
        if isinstance(item, s.TypeDecl) and item.name.name == output.dtype.name:
            allowed = [_canonical(i.name) for i in item.allowed]
            return "float32" if "float32" in allowed else allowed[0]
    named = next((a for a in op.attrs if a.name.name == output.dtype.name), None)
    if named is not None and isinstance(named.default, s.Named):
        return _type_of(op, replace(output, dtype=s.Ident(output.span, named.default.name)))
    return _canonical(output.dtype.name)


def _as_type(value: ExampleValue, dtype: str) -> ExampleValue:
    if isinstance(value, tuple):
        return tuple(_as_type(v, dtype) for v in value)
    found = DTYPES.get(dtype)
    if found is not None and found.is_float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(np.float32(value))
    return value
