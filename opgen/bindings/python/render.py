"""From a module's view to Python source."""

from __future__ import annotations

import re

import jinja2

from opgen.bindings.python.layout import fit
from opgen.bindings.python.text import literal
from opgen.bindings.python.view import ModuleView, module_view
from opgen.spec.model.model import Module

_IMPORTS = {
    "collections.abc": ("Sequence",),
    "typing": ("Literal", "NoReturn", "overload"),
    "opgen.bindings.python.generic": ("Generic",),
    "opgen.runtime.call.arguments": ("Integers", "Numbers"),
    "opgen.runtime.call.call": ("Call",),
    "opgen.runtime.call.checks": ("Checks",),
    "opgen.runtime.call.dimensions": ("logical", "padded", "rows", "stretched", "whole_of"),
    "opgen.runtime.call.recording": ("counted",),
    "opgen.runtime.call.plan": ("Prepared", "PreparedSeveral"),
    "opgen.runtime.call.signatures": ("Elements", "InPlace", "Signature", "Signatures", "Takes"),
    "opgen.runtime.call.specialize": ("Library",),
    "opgen.runtime.call.tensors": ("Array", "TensorLike", "plain_vector"),
}
"""Modules from which generated code imports its names."""

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("opgen.bindings.python", "templates"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # Python, not HTML: the view holds escaped source only
)
_environment.filters["literal"] = literal
_environment.filters["fit"] = lambda statement, indent=0: "\n".join(" " * indent + s for s in fit(statement, indent))


def render_module(module: Module, *, source: str | None = None) -> str:
    """Return the source of a spec's Python module; `source` names the spec in its header (default: `NAME.op`)."""
    spec_file = f"{module.name}.op"
    return render(module_view(module, source or spec_file, spec_file))


def render(view: ModuleView) -> str:
    """Return a view as source."""
    template = _environment.get_template("module.py.jinja")
    body = template.render(module=view, imports="")
    return template.render(module=view, imports=_imports(body))


def _imports(body: str) -> str:
    """Return the imports that the code (docstrings left out) needs, sorted, standard library first."""
    code = re.sub(r'"""(?:\\.|[^\\])*?"""', "", body, flags=re.DOTALL)
    blocks: list[list[str]] = [[], []]
    for module, names in _IMPORTS.items():
        used = [n for n in names if re.search(rf"\b{n}\b", code)]
        if used:
            blocks[module.startswith("opgen")].append(f"from {module} import {', '.join(used)}")
    return "\n\n".join("\n".join(block) for block in blocks if block)
