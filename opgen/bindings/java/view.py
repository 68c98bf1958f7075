"""The sources as their templates need them: every name chosen, every text escaped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opgen.bindings.c.header import HeaderView, header_view
from opgen.bindings.c.interface import ABI
from opgen.bindings.c.names import OpNames, spellings
from opgen.bindings.c.text import one_line
from opgen.bindings.c.values import blamed
from opgen.bindings.cpp.attributes import choices, optional_attrs
from opgen.bindings.java.documentation import class_comment, create_comment, output_comments, setter_comments
from opgen.bindings.java.names import (
    ClassNames,
    class_names,
    generic_names,
    group_name,
    legacy_class_names,
    method_names,
    upper_camel,
)
from opgen.bindings.java.types import ELEMENTS, KINDS, LITERALS, Element, Kind
from opgen.spec.model.model import Attr, Module, OpSpec, Sizes, Tensor

_SIZES = "int32"
"""Element type of size vectors in Java."""


@dataclass(frozen=True)
class InputView:
    """An input: its parameter, its name in the spec, and whether its elements count for the shapes of the results."""

    name: str
    said: str
    sizes: bool


@dataclass(frozen=True)
class OutputView:
    """A result: the input that has its type, or -1 and `element`."""

    typed_by: int
    element: str


@dataclass(frozen=True)
class FieldView:
    """An attribute, by one of its spellings, as the native library takes it; `take` is the statement in C.

    `blamed` is the argument that messages name, `expected` their text about possible values.
    """

    said: str
    kind: str
    take: str
    blamed: str
    expected: str


@dataclass(frozen=True)
class SetterView:
    """An optional attribute: the method's name, the types that it may be given as, and the type that is kept."""

    name: str
    said: str
    types: tuple[str, ...]
    stored: str
    doc: tuple[str, ...]


@dataclass(frozen=True)
class AttributeView:
    """An attribute that is a parameter."""

    name: str
    said: str


@dataclass(frozen=True)
class FormView:
    """A form of a call in one face: the parameters after the scope, declared and by name, and which are attributes.

    `method_comment` is that of a method that knows the scope.
    """

    parameters: tuple[str, ...]
    names: tuple[str, ...]
    attributes: tuple[AttributeView, ...]
    comment: tuple[str, ...]
    method_comment: tuple[str, ...]


@dataclass(frozen=True)
class ResultView:
    """A result in one face: its accessor, which is its field's name, too, and the type of its tensor."""

    name: str
    accessor: str
    type: str
    doc: tuple[str, ...]


@dataclass(frozen=True)
class FaceView:
    """An op's class in one of the two faces.

    `type` is the class with its type parameters, `declared` the same with their bounds, `generics` the prefix of a
    method's type.
    """

    package: str
    imports: tuple[str, ...]
    cls: str
    type: str
    declared: str
    generics: str
    base: str
    comment: tuple[str, ...]
    forms: tuple[FormView, ...]
    outputs: tuple[ResultView, ...]


@dataclass(frozen=True)
class OpView:
    """An op, by its place among all; `c` has its names in C, and the pointers that its functions take."""

    name: str
    number: int
    c: OpNames
    method: str
    inputs: tuple[InputView, ...]
    outputs: tuple[OutputView, ...]
    fields: tuple[FieldView, ...]
    setters: tuple[SetterView, ...]
    current: FaceView
    legacy: FaceView

    @property
    def in_pointers(self) -> list[str]:
        return [f"in + {i}" if i else "in" for i in range(len(self.inputs))]

    @property
    def out_pointers(self) -> list[str]:
        return [f"out + {i}" if i else "out" for i in range(len(self.outputs))]


@dataclass(frozen=True)
class JavaView:
    """All of a module: `package` holds today's classes, `package`.legacy the older ones.

    `number` identifies the parts on which the classes and the layer in C rely: the header, and the order of ops and
    attributes.
    """

    package: str
    prefix: str
    source: str
    number: str
    rank: int
    soname: str
    group: str
    group_class: str
    ops: tuple[OpView, ...]
    group_imports: tuple[str, ...]
    elements: tuple[Element, ...] = tuple(ELEMENTS.values())
    kinds: tuple[Kind, ...] = tuple(KINDS.values())
    literals: tuple[Element, ...] = LITERALS

    @property
    def macro(self) -> str:
        return self.prefix.upper()

    @property
    def folder(self) -> str:
        """Return the package as a path."""
        return self.package.replace(".", "/")

    @property
    def used_kinds(self) -> set[str]:
        return {f.kind for op in self.ops for f in op.fields}

    @property
    def most_inputs(self) -> int:
        return max([1, *(len(op.inputs) for op in self.ops)])

    @property
    def most_outputs(self) -> int:
        return max([1, *(len(op.outputs) for op in self.ops)])


def java_view(module: Module, package: str, prefix: str, source: str) -> JavaView:
    """Return the view of a module's Java."""
    faces = _Faces(module, package)
    ops = tuple(_op(op, i, prefix, faces) for i, op in enumerate(module.ops))
    header = header_view(module, prefix, source)
    imports = {i for op in ops for i in op.current.imports if ".types." in i}
    imports |= {"java.util.List"} if any(_uses_list(form) for op in ops for form in op.current.forms) else set()
    return JavaView(
        package=package,
        prefix=prefix,
        source=one_line(source),
        number=_number(header, ops),
        rank=header.rank,
        soname=f"lib{prefix}.so.{ABI}",
        group=faces.group,
        group_class=f"{upper_camel(faces.group)}Ops",
        ops=ops,
        group_imports=tuple(sorted({*imports, *(f"{package}.op.{faces.group}.{op.current.cls}" for op in ops)})),
    )


def _number(header: HeaderView, ops: Sequence[OpView]) -> str:
    lines = [f"{op.name}: {' '.join(f'{f.said} {f.kind}' for f in op.fields)}" for op in ops]
    text = "\n".join((header.interface.version, *lines))
    return f"0x{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _uses_list(form: FormView) -> bool:
    return any("List<" in p for p in form.parameters)


class _Faces:
    """The names of all ops in both faces."""

    def __init__(self, module: Module, package: str) -> None:
        self.package = package
        self.group = group_name(module.name)
        self.classes = class_names(module.ops)
        self.legacy_classes = legacy_class_names(module.ops)
        self.methods = method_names(module.ops)


def _op(op: OpSpec, number: int, prefix: str, faces: _Faces) -> OpView:
    c = OpNames(op, prefix)
    required = list(dict.fromkeys(a for form in choices(op) for a in form))
    names = ClassNames(op, (s for a in optional_attrs(op) for s in spellings(a)), required)
    return OpView(
        name=op.name,
        number=number,
        c=c,
        method=faces.methods[op.name],
        inputs=tuple(InputView(names.parameters[i.name], i.name, isinstance(i, Sizes)) for i in op.inputs),
        outputs=tuple(_outputs(op)),
        fields=tuple(_fields(op, c)),
        setters=tuple(_setters(op, names)),
        current=_face(op, names, faces, legacy=False),
        legacy=_face(op, names, faces, legacy=True),
    )


def _outputs(op: OpSpec) -> Iterator[OutputView]:
    for output in op.outputs:
        inputs = [i for i, t in enumerate(op.inputs) if isinstance(t, Tensor) and t.dtype == output.dtype]
        if op.type_variable(output.dtype) is None:
            yield OutputView(-1, f"Element.{output.dtype.upper()}")
        else:
            yield OutputView(inputs[0], "null")


def _kind(attr: Attr) -> str:
    if attr.shape:
        return "FLOATS" if attr.kind == "float" else "INTS"
    return {"int": "INT", "float": "FLOAT", "bool": "BOOL"}.get(attr.kind, "WORD")


def _fields(op: OpSpec, c: OpNames) -> Iterator[FieldView]:
    for attr in op.attrs:
        for spelling in spellings(attr):
            kind, place = _kind(attr), f"attrs->{c.fields[spelling]}"
            if spelling in c.lengths:
                take = f"words = take_{kind.lower()}(words, &{place}, &attrs->{c.lengths[spelling]});"
            else:
                take = f"words = take_{kind.lower()}(words, &{place});"
            yield FieldView(spelling, kind, take, *blamed(op, attr))


_STORED = {
    "INT": ("Long", ("Long",)),
    "FLOAT": ("Number", ("Float", "Double")),
    "BOOL": ("Boolean", ("Boolean",)),
    "WORD": ("String", ("String",)),
    "INTS": ("List<Long>", ("List<Long>", "Long...")),
    "FLOATS": ("List<? extends Number>", ("List<? extends Number>", "Float...", "Double...")),
}
"""Stored type of an optional attribute, and the types its setters take: TensorFlow's, and doubles besides floats."""


def _setters(op: OpSpec, names: ClassNames) -> Iterator[SetterView]:
    docs = setter_comments(op)
    for attr in optional_attrs(op):
        stored, types = _STORED[_kind(attr)]
        for spelling in spellings(attr):
            name = names.setters[spelling]
            tags = ("", f"@param {name} the value; null is as if it were not given", "@return what a call takes")
            yield SetterView(name, spelling, types, stored, (*docs[spelling], *tags))


# Faces ----------------------------------------------------------------------------------------------


def _face(op: OpSpec, names: ClassNames, faces: _Faces, *, legacy: bool) -> FaceView:
    generics = generic_names(op)
    root = f"{faces.package}.legacy" if legacy else faces.package
    cls = (faces.legacy_classes if legacy else faces.classes)[op.name]
    bounds = [_bound(generics[v.name], numbers(op, v.name), legacy=legacy) for v in op.type_variables]
    parameters = f"<{', '.join(generics.values())}>" if generics else ""
    declared = f"<{', '.join(bounds)}>" if generics else ""
    forms = tuple(_form(op, names, form, generics, legacy=legacy) for form in choices(op))
    base = "PrimitiveOp" if legacy else "RawOp"
    docs = output_comments(op)
    return FaceView(
        package=f"{root}.op.{'core' if legacy else faces.group}",
        imports=_imports(op, root, base, forms, legacy=legacy),
        cls=cls,
        type=f"{cls}{parameters}",
        declared=f"{cls}{declared}",
        generics=f"{declared} " if generics else "",
        base=base,
        comment=class_comment(op, generics),
        forms=forms,
        outputs=tuple(
            ResultView(
                names.outputs[o.name], names.outputs[o.name], _type(o.dtype, generics, legacy=legacy), docs[o.name]
            )
            for o in op.outputs
        ),
    )


def numbers(op: OpSpec, variable: str) -> bool:
    """Return True if a type variable allows numbers only."""
    found = op.type_variable(variable)
    return found is not None and all(t.kind != "bool" for t in found.allowed)


def _bound(name: str, numbers: bool, *, legacy: bool) -> str:
    if legacy:
        return f"{name} extends Number" if numbers else name
    return f"{name} extends {'TNumber' if numbers else 'TType'}"


def _type(dtype: str, generics: dict[str, str], *, legacy: bool) -> str:
    """Return the type of a tensor: a type parameter, or the class of a scalar type."""
    if dtype in generics:
        return generics[dtype]
    return ELEMENTS[dtype].legacy if legacy else ELEMENTS[dtype].current


def _form(op: OpSpec, names: ClassNames, form: Sequence[Attr], generics: dict[str, str], *, legacy: bool) -> FormView:
    parameters, called = [], []
    for given in op.inputs:
        dtype = given.dtype if isinstance(given, Tensor) else _SIZES
        called.append(names.parameters[given.name])
        parameters.append(f"Operand<{_type(dtype, generics, legacy=legacy)}> {called[-1]}")
    for attr in form:
        called.append(names.parameters[attr.name])
        parameters.append(f"{_STORED[_kind(attr)][0]} {called[-1]}")
    return FormView(
        parameters=tuple(parameters),
        names=tuple(called),
        attributes=tuple(AttributeView(names.parameters[a.name], a.name) for a in form),
        comment=create_comment(op, names, form, generics, ["@param scope where the call is built"]),
        method_comment=create_comment(op, names, form, generics),
    )


def _imports(op: OpSpec, root: str, base: str, forms: Sequence[FormView], *, legacy: bool) -> tuple[str, ...]:
    found = {f"{root}.{n}" for n in ("Operand", "Operation", "OperationBuilder", "Output", f"op.{base}", "op.Scope")}
    lists = [a for a in optional_attrs(op) if a.shape]
    if not op.inputs and len(op.outputs) > 1:
        found.remove(f"{root}.Operand")
    if lists:
        found.add("java.util.Arrays")
    if lists or any(_uses_list(form) for form in forms):
        found.add("java.util.List")
    fixed = {o.dtype for o in (*op.outputs, *op.tensors) if op.type_variable(o.dtype) is None}
    fixed |= {_SIZES} if any(isinstance(i, Sizes) for i in op.inputs) else set()
    elements = [ELEMENTS[d] for d in fixed]
    if legacy:
        found |= {f"{root}.types.{e.legacy}" for e in elements if e.own}
    else:
        found |= {f"{root}.types.{e.current}" for e in elements}
        families = {"TNumber" if numbers(op, v.name) else "TType" for v in op.type_variables}
        found |= {f"{root}.types.family.{f}" for f in families}
    return tuple(sorted(found))
