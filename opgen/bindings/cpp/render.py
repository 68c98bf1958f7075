"""Rendering of a module's view as C++, and as the package files of the library for CMake and pkg-config."""

from __future__ import annotations

import re
from collections.abc import Iterable

import jinja2

from opgen.bindings.c.interface import ABI
from opgen.bindings.c.text import string
from opgen.bindings.cpp.attributes import ParameterView
from opgen.bindings.cpp.examples import example_views
from opgen.bindings.cpp.layout import call
from opgen.bindings.cpp.view import HeaderView, OutputView, header_view
from opgen.spec.model.model import Module

VERSION = f"{ABI}.0.0"
"""The version in the package files; its first number is that of the C ABI."""


def declared(parameters: Iterable[ParameterView], type: str | None = None) -> list[str]:
    """Return parameters in the form of a declaration; `type` replaces their own."""
    return [f"{type or p.type} {p.name}" for p in parameters]


def positions(items: Iterable[ParameterView | OutputView], array: str) -> list[str]:
    """Return pointers to the elements of an array, one for each item."""
    return [f"{array} + {i}" if i else array for i, _ in enumerate(items)]


def pkg_config_text(text: str) -> str:
    """Return a line's text in a file of pkg-config, where `$` begins a variable and `#` a comment."""
    return re.sub(r"([#\\])", r"\\\1", text).replace("$", "$$")


_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("opgen.bindings.cpp", "templates"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # C++, not HTML: the views hold escaped source only
)
_environment.filters |= {
    "string_literal": string,
    "pkg_config": pkg_config_text,
    "declared": declared,
    "positions": positions,
    "address": lambda name: f"&{name}",
}
_environment.globals["call"] = call


def render_header(
    module: Module, prefix: str | None = None, source: str | None = None, namespace: str | None = None
) -> str:
    """Return the C++ header of a module.

    `prefix` (the module's name if not given) begins the C library's names; the namespace is the same unless given.
    """
    return _header(_view(module, prefix, source, namespace))


def render_cpp(
    module: Module, prefix: str | None = None, source: str | None = None, namespace: str | None = None
) -> dict[str, str]:
    """Return the C++ API's files by their paths within the built folder: the header, package files, examples.

    They find the libraries at `lib/libPREFIX.so` and `lib/libPREFIX.a`, the headers in `include`.
    """
    v = _view(module, prefix, source, namespace)
    name = v.prefix
    files = {f"include/{name}.hpp": _header(v)}
    for path, template in (
        (f"lib/cmake/{name}/{name}-config.cmake", "config.cmake.jinja"),
        (f"lib/cmake/{name}/{name}-config-version.cmake", "version.cmake.jinja"),
        (f"lib/pkgconfig/{name}.pc", "library.pc.jinja"),
        (f"examples/{name}/CMakeLists.txt", "examples.cmake.jinja"),
    ):
        files[path] = _render(template, v=v, version=VERSION, examples=[e.file for e in example_views(module)])
    for example in example_views(module):
        files[f"examples/{name}/{example.file}.cpp"] = _render("example.cpp.jinja", v=v, e=example)
    return files


def _view(module: Module, prefix: str | None, source: str | None, namespace: str | None) -> HeaderView:
    used = prefix or module.name
    return header_view(module, namespace or used, used, source or f"{module.name}.op")


def _header(v: HeaderView) -> str:
    return _render("library.hpp.jinja", v=v)


def _render(template: str, **values: object) -> str:
    return _environment.get_template(template).render(**values)
