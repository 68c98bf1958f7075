"""The support table of a module: every type, layout and enumerated attribute of every op, taken from the spec."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from math import prod

import jinja2

from opgen.bindings.formula import Formula
from opgen.bindings.signatures import calls
from opgen.dtypes import lookup
from opgen.spec.model.model import Algorithm, Attr, GenericOp, Module, OpSpec, Require
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import VARIANTS

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("opgen.bindings.docs", "templates"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # Markdown; the view holds escaped text only
)


@dataclass(frozen=True)
class AttributeView:
    name: str
    values: str
    default: str


@dataclass(frozen=True)
class SupportView:
    """An op: its cells are the rows (types) by the columns (each a value for every enumerated attribute); too many of
    them have no rows.
    """

    name: str
    function: str
    summary: str
    attributes: tuple[AttributeView, ...]
    signatures: tuple[tuple[str, str], ...]
    requirements: tuple[str, ...]
    algorithms: tuple[str, ...]
    heading: str
    cells: int
    columns: tuple[str, ...]
    rows: tuple[str, ...]


def support_page(module: Module, source: str) -> str:
    """Return the page as Markdown."""
    template = _environment.get_template("support.md.jinja")
    return template.render(
        source=plain(source),
        name=plain(module.name),
        ops=[support_view(op) for op in module.ops],
        generics=[generic_view(op, module) for op in module.generics],
    )


@dataclass(frozen=True)
class GenericView:
    """A generic op, in a row: its name, function, versions, types, and description."""

    name: str
    function: str
    versions: str
    types: str
    summary: str


def generic_view(op: GenericOp, module: Module) -> GenericView:
    """Return the view of one generic op."""
    version = next((v for v in module.versions if v.op == op.name), None)
    versions = ""
    if version is not None:
        last = "" if version.last is None else f" to {version.last}"
        versions = f"{version.first}{last}" + (f" of {version.name}" if version.name != op.name else "")
    types = [i for i in op.decl.items if isinstance(i, s.TypeDecl)]
    allowed = "; ".join(", ".join(t.name for t in (lookup(n.name) for n in i.allowed) if t is not None) for i in types)
    summary = plain((op.doc or "").strip().partition("\n\n")[0])
    return GenericView(plain(op.name), plain(op.function_name), plain(versions), plain(allowed), summary)


def support_view(op: OpSpec) -> SupportView:
    """Return the view of one op."""
    formula = Formula(op)
    words = [a for a in op.attrs if a.kind in ("enum", "layout")]
    types = [v.allowed for v in op.type_variables]
    cells = prod(len(a.values) for a in words) * prod(map(len, types))
    tabled = cells <= VARIANTS
    columns = [" ".join(values) for values in itertools.product(*(a.values for a in words))] if tabled else []
    requirements = [
        f"`{r.argument}`: {''.join(p if isinstance(p, str) else formula.text(p) for p in r.expected)}"
        for r in op.checks
        if isinstance(r, Require)
    ]
    return SupportView(
        name=plain(op.name),
        function=plain(op.function_name),
        summary=paragraph((op.doc or "").strip().partition("\n\n")[0]),
        attributes=tuple(_attribute(op, a) for a in op.attrs if a.carried_by is None),
        signatures=tuple((plain(label), plain(call)) for label, call in calls(op)),
        requirements=tuple(plain(r) for r in requirements),
        algorithms=tuple(plain(_algorithm(a, formula)) for a in op.algorithms),
        heading=plain(", ".join(a.name for a in words)),
        cells=cells,
        columns=tuple(plain(c or "all") for c in columns),
        rows=tuple(", ".join(t.name for t in row) for row in itertools.product(*types)) if tabled else (),
    )


def _algorithm(a: Algorithm, formula: Formula) -> str:
    types = ", ".join(dict.fromkeys(t.name for v in a.type_variables for t in v.allowed))
    optional = ", if asked for" if a.optional else ""
    condition = "" if a.condition is None else f", when {formula.text(a.condition)}"
    return f"`{a.name}` ({types}{optional}){condition}: {a.doc}"


def _attribute(op: OpSpec, a: Attr) -> AttributeView:
    default = "required" if not (a.has_default or a.optional) else _shown(a.default if a.has_default else ())
    return AttributeView(plain(a.name), plain(_values(op, a)), plain(default))


def _values(op: OpSpec, a: Attr) -> str:
    if a.compatibility:
        return "accepted, without effect"
    if a.kind in ("enum", "layout"):
        words = [v for v in a.values if a.payload is None or v != a.payload[0]]
        return ", ".join(words) + (f", or {_values(op, op.attr(a.payload[1]))}" if a.payload else "")
    by_rows = a.carried_by is not None  # in an attribute of its own a list is written flat
    count = " x ".join(map(str, a.shape)) if by_rows or not a.shape else str(prod(a.shape))
    bounds = "" if a.minimum is None else f" >= {a.minimum}"
    bounds += "" if a.maximum is None else f" <= {a.maximum}"
    kind = "int64" if a.wide else a.kind
    return f"{count} {kind}{bounds}".strip() + (", or none" if a.optional and a.carried_by is None else "")


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_shown(v) for v in value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def plain(text: str) -> str:
    """Return text on one line that ends no cell of a table and begins no HTML; other Markdown keeps its meaning."""
    joined = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    return joined.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


def paragraph(text: str) -> str:
    """Return the same where a line begins: neither a heading, a list, a rule nor a block of code."""
    return re.sub(r"^(?=[-#+*=_~]|```|\d+[.)]|\[.*\]:)", "\u200b", plain(text))
