"""A program's library as a Java class: the class, the layer in C that it calls, and a jar of both.

DIR/java/NAME/src/main/java/...   the sources, and pom.xml for Maven
DIR/src/NAME/NAME_jni.c           the layer in C
DIR/lib/NAME.jar                  the classes         (these two need a JDK, 11 or newer)
DIR/lib/libNAME_jni.so            the layer, built
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2

from opgen.bindings.c.layout import fitted
from opgen.bindings.cpp.render import VERSION
from opgen.bindings.java.build import Built, Progress, Sources, build_sources
from opgen.bindings.java.names import check_package, lower_camel
from opgen.bindings.java.render import environment
from opgen.bindings.java.text import Names, javadoc_text, line_comment
from opgen.bindings.java.types import ELEMENTS, Element
from opgen.bindings.programs.view import ProgramView, TensorView
from opgen.diagnostics import UserError

_ALIGNMENT = 64
"""The bytes that tensors in the memory of a run begin at a multiple of."""
_PARAMETERS = 254
"""Greatest number of parameters of a Java method, besides the object."""

_environment = environment.overlay(
    loader=jinja2.ChoiceLoader(
        [
            jinja2.PackageLoader("opgen.bindings.programs", "templates"),
            jinja2.PackageLoader("opgen.bindings.java", "templates"),
        ]
    )
)
_environment.filters = {
    **environment.filters,
    "declared_arrays": lambda tensors: [f"{t.type}[] {t.name}" for t in tensors],
    "declared_buffers": lambda tensors: [f"ByteBuffer {t.name}" for t in tensors],
    "types": lambda tensors: [f"{t.type}[].class" for t in tensors],
    "in_array": lambda tensors, type: f"new {type}[] {{{', '.join(t.name for t in tensors)}}}",
}


@dataclass(frozen=True)
class ArrayView:
    """An input or an output: its name in Java, that of its size, its elements, and its place in the memory of a run.

    `shown` describes it in a comment; types that Java lacks are described by their bits.
    """

    name: str
    size: str
    c: TensorView
    element: Element
    type: str
    offset: int

    @property
    def shown(self) -> str:
        bits = ", by its bits" if self.element.by_bits else ""
        return javadoc_text(self.c.described + bits)


@dataclass(frozen=True)
class ModelView:
    """Everything that the templates say; the first `io` bytes of the memory of a run hold the tensors."""

    package: str
    program: ProgramView
    inputs: tuple[ArrayView, ...]
    outputs: tuple[ArrayView, ...]
    io: int

    @property
    def prefix(self) -> str:
        return self.program.prefix

    @property
    def source(self) -> str:
        return self.program.source

    @property
    def macro(self) -> str:
        return self.program.macro

    @property
    def soname(self) -> str:
        return f"lib{self.prefix}.so"

    @property
    def folder(self) -> str:
        """Return the package as a path."""
        return self.package.replace(".", "/")

    @property
    def number(self) -> str:
        """Return the number that identifies the layout of the library."""
        return f"0x{self.program.interface.number:016x}"

    @property
    def tensors(self) -> tuple[ArrayView, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def element_types(self) -> tuple[tuple[str, str], ...]:
        """Return the types of elements, and the part of each in the names of JNI's functions for arrays."""
        return tuple(sorted({(t.type, t.type.capitalize()) for t in self.tensors}))


def build_java(view: ProgramView, folder: Path, package: str | None = None, progress: Progress | None = None) -> Built:
    """Write the Java class of a program into the folder of its library, and build it if there is a JDK.

    Raises UserError for a package that Java's classes cannot have, and for a tensor that Java's arrays cannot hold.
    """
    v = model_view(view, package or view.prefix)
    return build_sources(Sources(v.prefix, v.soname, dict(_texts(v))), folder, progress)


def model_view(view: ProgramView, package: str) -> ModelView:
    """Return the view of a program's Java."""
    check_package(package)
    names, constants = Names(), Names()
    offset = 0
    arrays = []
    for t in view.tensors:
        if t.count >= 2**31 - 8:
            raise UserError(f"'{t.said}' has {t.count} elements: more than an array of Java's holds")
        element = ELEMENTS[t.type]
        kind = {1: "byte", 2: "short"}.get(element.bytes, "") if element.by_bits else element.kind.type
        size = constants.fresh(f"{t.name.upper()}_SIZE")
        arrays.append(ArrayView(names.fresh(lower_camel(t.name)), size, t, element, kind, offset))
        offset += -(-t.bytes // _ALIGNMENT) * _ALIGNMENT
    inputs = len(view.inputs)
    return ModelView(package, view, tuple(arrays[:inputs]), tuple(arrays[inputs:]), offset)


def _texts(v: ModelView) -> Iterator[tuple[str, str]]:
    """Yield the files by their paths within the built folder."""
    root = f"java/{v.prefix}"
    head = f"// Generated by opgen from {line_comment(v.source)}. Do not edit: build it again.\n"
    yield f"src/{v.prefix}/{v.prefix}_jni.c", fitted(_render("java/layer.c.jinja", v=v))
    yield (
        f"{root}/src/main/java/{v.folder}/Model.java",
        head + _render("java/Model.java.jinja", v=v, most_parameters=_PARAMETERS),
    )
    loader = _render("internal/Loader.java.jinja", v=v, home=v.package)
    yield f"{root}/src/main/java/{v.folder}/Loader.java", head + loader
    yield f"{root}/pom.xml", _render("pom.xml.jinja", v=v, version=VERSION)


def _render(template: str, **values: object) -> str:
    return _environment.get_template(template).render(**values)
