"""The header as its templates need it: every name chosen, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.bindings.c.names import OpNames, spellings
from opgen.bindings.c.text import one_line, paragraphs
from opgen.bindings.cpp.attributes import (
    FieldView,
    ParameterView,
    SetterView,
    argument_type,
    choices,
    fields,
    optional_attrs,
    setters,
)
from opgen.bindings.cpp.documentation import class_comment, function_comment, setter_comments
from opgen.bindings.cpp.names import ClassNames, class_names, function_names
from opgen.bindings.datatypes import DATA_TYPES
from opgen.dtypes import DTYPES, DType
from opgen.spec.model.model import Attr, Module, OpSpec, Sizes, Tensor


@dataclass(frozen=True)
class TypeView:
    """A scalar type: its DataType and the number of that, the class of its elements, the code of its kind in C.

    `form` are the arguments of the template behind `cpp`; "" if it is a type of C++, or a struct of its own.
    """

    dtype: DType
    enum: str
    number: int
    cpp: str
    form: str = ""


def _type(dtype: DType) -> TypeView:
    number, word = DATA_TYPES[dtype.name]
    if not dtype.is_bits:
        return TypeView(dtype, f"DT_{word}", number, _CPP.get(dtype.name, f"std::{dtype.name}_t"))
    small = dtype.small
    if small is None:
        form = f"SmallInteger<{dtype.digits}, {str(dtype.signed).lower()}>"
    else:
        nan = -1 if small.nan is None else small.nan
        numbers = f"{small.exponent}, {small.fraction}, {small.bias}, {small.overflow:#x}"
        form = f"SmallFloat<{numbers}, {nan if nan < 0 else hex(nan)}, {str(small.one_zero).lower()}>"
    return TypeView(dtype, f"DT_{word}", number, dtype.name, form)


_CPP = {"float32": "float", "float64": "double", "float16": "half", "bool": "bool", "bfloat16": "bfloat16"}

TYPES = {d.name: _type(d) for d in DTYPES.values()}
"""Each scalar type as C++ has it."""


@dataclass(frozen=True)
class OutputView:
    """A result: its member, and the input that has its type (-1: it always has `enum`)."""

    name: str
    typed_by: int
    enum: str


@dataclass(frozen=True)
class OpView:
    """An op.  `forms` are the attribute parameters of each form of a call; `c` has its names in C."""

    name: str
    c: OpNames
    cls: str
    call: str
    function: str
    comment: tuple[str, ...]
    function_comment: tuple[str, ...]
    inputs: tuple[ParameterView, ...]
    sizes: tuple[bool, ...]
    forms: tuple[tuple[ParameterView, ...], ...]
    fields: tuple[FieldView, ...]
    setters: tuple[SetterView, ...]
    outputs: tuple[OutputView, ...]
    stored: tuple[tuple[str, str], ...]

    @property
    def many(self) -> bool:
        return len(self.outputs) > 1


@dataclass(frozen=True)
class HeaderView:
    """`namespace` holds everything; `prefix` and `macro` begin the C library's names; `source` names the spec."""

    namespace: str
    prefix: str
    macro: str
    source: str
    doc: tuple[str, ...]
    most_inputs: int
    most_outputs: int
    ops: tuple[OpView, ...]
    types: tuple[TypeView, ...] = tuple(TYPES.values())


def header_view(module: Module, namespace: str, prefix: str, source: str) -> HeaderView:
    """Return the view of a module's header."""
    classes = class_names(module.ops)
    functions = function_names(module.ops)
    return HeaderView(
        namespace=namespace,
        prefix=prefix,
        macro=prefix.upper(),
        source=one_line(source),
        doc=tuple(paragraphs(module.doc or module.name, 110)),
        most_inputs=max([1, *(len(op.inputs) for op in module.ops)]),
        most_outputs=max([1, *(len(op.outputs) for op in module.ops)]),
        ops=tuple(_op(op, prefix, classes[op.name], functions[op.name]) for op in module.ops),
    )


def op_names(op: OpSpec, cls: str) -> ClassNames:
    """Return the names within an op's class."""
    return ClassNames(op, cls, (s for a in optional_attrs(op) for s in spellings(a)), _parameters(op))


def _parameters(op: OpSpec) -> list[Attr]:
    """Return every attribute that is a parameter of some form of a call."""
    return list(dict.fromkeys(a for form in choices(op) for a in form))


def _op(op: OpSpec, prefix: str, cls: str, function: str) -> OpView:
    c = OpNames(op, prefix)
    names = op_names(op, cls)
    return OpView(
        name=op.name,
        c=c,
        cls=cls,
        call=f"{cls}Call",
        function=function,
        comment=class_comment(op, names),
        function_comment=function_comment(op, names),
        inputs=tuple(ParameterView("Input", names.parameters[i.name]) for i in op.inputs),
        sizes=tuple(isinstance(i, Sizes) for i in op.inputs),
        forms=tuple(
            tuple(ParameterView(argument_type(a), names.parameters[a.name], c.fields[a.name]) for a in form)
            for form in choices(op)
        ),
        fields=tuple(fields(op, c)),
        setters=tuple(setters(op, names, setter_comments(op))),
        outputs=tuple(_outputs(op, names)),
        stored=tuple((c.fields[s], names.storage[s]) for s in names.storage),
    )


def _outputs(op: OpSpec, names: ClassNames) -> Iterator[OutputView]:
    for output in op.outputs:
        inputs = [i for i, t in enumerate(op.inputs) if isinstance(t, Tensor) and t.dtype == output.dtype]
        if op.type_variable(output.dtype) is None:
            yield OutputView(names.outputs[output.name], -1, TYPES[output.dtype].enum)
        else:
            yield OutputView(names.outputs[output.name], inputs[0] if inputs else -1, "DT_INVALID")
