"""The names of packages, classes, methods and parameters, by TensorFlow's rules."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opgen.bindings.java.text import Names
from opgen.bindings.java.types import ELEMENTS
from opgen.diagnostics import UserError
from opgen.spec.model.model import Attr, OpSpec
from opgen.spec.resolve import words
from opgen.spec.resolve.names import snake_case

_API = """
Arrays Constant Deprecated List Operand Operation OperationBuilder Options Output Override Placeholder PrimitiveOp RawOp
Scope SuppressWarnings TFloating TIntegral TNumber TType
"""
CLASSES = (
    *words.JAVA_LANG,
    *_API.split(),
    *(e.current for e in ELEMENTS.values()),
    *(e.legacy for e in ELEMENTS.values()),
)
"""Classes that a generated one names without a package."""

_MEMBERS = ("asOutput", "asTensor", "create", "env", "op", "operation", "outputOf", "rank", "shape", "size", "type")
_PARAMETERS = ("scope", "options", "builder", "each")
_GENERICS = ("T", "U", "V", "W", "X", "Y", "Z")


def lower_camel(name: str) -> str:
    """Return `data_format` as `dataFormat`."""
    head, *rest = [part for part in name.split("_") if part] or [name]
    return head[:1].lower() + head[1:] + "".join(part[:1].upper() + part[1:] for part in rest)


def upper_camel(name: str) -> str:
    """Return `data_format` as `DataFormat`."""
    text = lower_camel(name)
    return text[:1].upper() + text[1:]


def class_names(ops: Iterable[OpSpec]) -> dict[str, str]:
    """Return today's class of each op: `FFT2D` is Fft2d."""
    names = Names((*CLASSES, *_GENERICS))
    return {op.name: names.fresh(upper_camel(snake_case(op.name))) for op in ops}


def legacy_class_names(ops: Iterable[OpSpec]) -> dict[str, str]:
    """Return the older class of each op: the op's name, if it can be a class's."""
    names = Names((*CLASSES, *_GENERICS))
    return {op.name: names.fresh(op.name if op.name[0].isupper() else upper_camel(op.name)) for op in ops}


def method_names(ops: Iterable[OpSpec]) -> dict[str, str]:
    """Return the method of each op: `FFT2D` is fft2d."""
    names = Names(("ops",))
    return {op.name: names.fresh(lower_camel(snake_case(op.name))) for op in ops}


def group_name(module: str) -> str:
    """Return the group of a module's ops: TensorFlow registers those of group `math` in math_ops."""
    found = re.sub(r"[^a-z0-9_]", "_", module.lower()).removesuffix("_ops").strip("_")
    return Names(("core", "scope", "annotation")).fresh(found if found[:1].isalpha() else "ops")


def generic_names(op: OpSpec) -> dict[str, str]:
    """Return the type parameter of each of an op's type variables."""
    names = (*_GENERICS, *(f"T{i}" for i in range(1, len(op.type_variables))))
    return {v.name: n for v, n in zip(op.type_variables, names, strict=False)}


def check_package(package: str) -> None:
    """Raises UserError if Java's classes cannot have the package."""
    for part in package.split("."):
        why = None
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part) or part == "_":
            why = "no name in Java"
        elif part in words.JAVA:
            why = "a keyword of Java"
        if why is not None:
            raise UserError(f"the package '{package}': '{part}' is {why}; give another with --java-package")
    if package.split(".")[0] in ("java", "javax"):
        raise UserError(f"the package '{package}' would be among Java's own; give another with --java-package")


class ClassNames:
    """The names within one op's classes, the same in both.

    `setters` are those of each spelling of an optional attribute, `outputs` the accessors of the results, `parameters`
    those of a call's required arguments.
    """

    def __init__(self, op: OpSpec, spellings: Iterable[str], required: Iterable[Attr]) -> None:
        setters = Names(inherited=("wait",))  # others are overloads: they have no parameter, or none that is a number
        self.setters = {s: setters.fresh(lower_camel(s)) for s in spellings}
        accessors = Names(_MEMBERS)
        self.outputs = {o.name: accessors.fresh(lower_camel(o.name)) for o in op.outputs}
        parameters = Names(_PARAMETERS)
        given = (*(i.name for i in op.inputs), *(a.name for a in required))
        self.parameters = {n: parameters.fresh(lower_camel(n)) for n in given}
