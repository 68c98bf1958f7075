"""From a module's views to C."""

from __future__ import annotations

import jinja2

from opgen.bindings.c.header import header_view
from opgen.bindings.c.text import string
from opgen.spec.model import Module

environment = jinja2.Environment(
    loader=jinja2.PackageLoader("opgen.bindings.c", "templates"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # C, not HTML: the views hold escaped source only
)
environment.filters["string"] = string


def render_header(module: Module, prefix: str | None = None, source: str | None = None) -> str:
    """The C header of a module; `prefix` (the module's name if not given) begins every name."""
    view = header_view(module, prefix or module.name, source or f"{module.name}.op")
    return environment.get_template("library.h.jinja").render(v=view)
