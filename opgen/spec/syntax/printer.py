"""Printer of syntax trees: the standard layout of a spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

from opgen.diagnostics import InternalError
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.pretty import SPACE, Document, Group, Nest, fill, join, render
from opgen.spec.syntax.print_expression import condition, expanded, expression, range_, value
from opgen.spec.syntax.strings import doc_lines, quote
from opgen.spec.syntax.trivia import Child, Container, Trivia, children_of

WIDTH = 120
_STEP = "  "


def print_file(tree: s.File) -> str:
    """Return the text of a tree; it parses to the same tree."""
    return format_file(tree, Trivia())


def print_item(tree: Child) -> str:
    """Return the text of a single declaration."""
    return "\n".join(_Printer(Trivia(), "").child(tree)) + "\n"


def format_file(tree: s.File, trivia: Trivia) -> str:
    """Return the text of a tree together with its comments and blank lines."""
    children: list[Child] = [] if tree.doc is None else [tree.doc]
    children += tree.items
    lines: list[str] = []
    previous: Child | None = None
    for child in children:
        block = _Printer(trivia, "").child(child)
        together = isinstance(previous, s.ImportDecl) and isinstance(child, s.ImportDecl)
        if lines and not (together and not trivia.blank_before(child)):
            lines.append("")
        lines += block
        previous = child
    closing = trivia.closing(None)
    if closing and lines:
        lines.append("")
    lines += [c.text for c in closing]
    return "\n".join(lines) + "\n" if lines else ""


@dataclass(frozen=True)
class _Printer:
    """Printer of children at one indentation."""

    trivia: Trivia
    margin: str

    def child(self, tree: Child) -> list[str]:
        """Return the lines of a child with its comments (without the blank line before it)."""
        lines: list[str] = []
        for comment in self.trivia.leading(tree):
            if lines and comment.blank_before:
                lines.append("")
            lines.append(self.margin + comment.text)
        if lines and self.trivia.blank_before(tree) and not self.trivia.hoisted(tree):
            lines.append("")
        lines += self._body(tree)
        trailing = self.trivia.trailing(tree)
        if trailing is not None:
            lines[-1] += f"  {trailing.text}"
        return lines

    def _body(self, tree: Child) -> list[str]:
        if isinstance(tree, s.Doc):
            return [self.margin + line if line else "" for line in doc_lines(tree.value)]
        if isinstance(tree, Container):
            return self._container(tree)
        head = self._set(_line(tree))
        doc = getattr(tree, "doc", None)
        return head if doc is None else self._with_doc(head, doc)

    def _with_doc(self, head: list[str], doc: s.Doc) -> list[str]:
        """Append a docstring: on the declaration's line if it was written there (or not written at all) and fits."""
        lines = doc_lines(doc.value)
        if len(lines) == 1 and not self.trivia.own_line(doc):
            joined = f"{head[-1]} {lines[0]}"
            if len(joined) <= WIDTH:
                return [*head[:-1], joined]
        return head + [f"{self.margin}{_STEP}{line}" if line else "" for line in lines]

    def _container(self, tree: Container) -> list[str]:
        lines = self._set((_head(tree), " {"))
        inner = _Printer(self.trivia, self.margin + _STEP)
        first = len(lines)
        for child in children_of(tree):
            leading = self.trivia.leading(child)
            gap = leading[0].blank_before if leading else self.trivia.blank_before(child)
            if gap and len(lines) > first:
                lines.append("")
            lines += inner.child(child)
        for comment in self.trivia.closing(tree):
            if comment.blank_before and len(lines) > first:
                lines.append("")
            lines.append(inner.margin + comment.text)
        return [*lines, self.margin + "}"] if len(lines) > first else [*lines[:-1], lines[-1] + "}"]

    def _set(self, document: Document) -> list[str]:
        return render((self.margin, Nest(len(self.margin), document)), WIDTH).split("\n")


def _head(tree: Container) -> Document:
    if isinstance(tree, s.OpDecl):
        return f"op {tree.name.name}"
    if isinstance(tree, s.FragmentDecl):
        return f"fragment {tree.name.name}"
    if isinstance(tree, s.AlgorithmDecl):
        return f"algorithm {tree.name.name}{' optional' if tree.optional else ''}"
    if isinstance(tree, s.ExampleDecl):
        return f"example {quote(tree.title.value)}"
    results = ", ".join(r.name for r in tree.results)
    parameters = fill([_parameter(p) for p in tree.parameters])
    return (f"function {tree.name.name}(", parameters, ") -> ", f"({results})" if len(tree.results) > 1 else results)


def _parameter(tree: s.ParameterDecl) -> Document:
    return f"{tree.name.name}: {_words(tree.values)}" if tree.values else tree.name.name


def _words(names: Sequence[s.Ident]) -> str:
    return "{" + ", ".join(n.name for n in names) + "}"


# One function a declaration -----------------------------------------------------------------------


@singledispatch
def _line(tree: object) -> Document:
    raise InternalError(f"no way to print {type(tree).__name__}")


@_line.register(s.ImportDecl)
def _import(tree: s.ImportDecl) -> Document:
    return f"import {quote(tree.path.value)}"


@_line.register(s.ReturnDecl)
def _return(tree: s.ReturnDecl) -> Document:
    return ("return ", fill([expression(v) for v in tree.values]))


@_line.register(s.SignatureDecl)
def _signature(tree: s.SignatureDecl) -> Document:
    label = "" if tree.label is None else f"{quote(tree.label.value)} "
    function = "" if tree.function is None else tree.function.name
    return (f"signature {label}{function}(", fill(list(map(_taken, tree.arguments))), ")")


def _taken(tree: s.Taken) -> Document:
    called = "" if tree.called is None else f" {'or' if tree.also else 'as'} {tree.called.name}"
    default: Document = "" if tree.default is None else (" = ", value(tree.default))
    return (tree.name.name + called, _form_taken(tree.form), default)


def _form_taken(form: s.Elements | s.InPlace | None) -> str:
    if form is None:
        return ""
    if isinstance(form, s.InPlace):
        return f" {{{form.word.name} = {form.payload.name}}}"
    return f"[{', '.join(n.name for n in form.letters)}] else {form.fill.text}"


@_line.register(s.TypeDecl)
def _type(tree: s.TypeDecl) -> Document:
    return ("type ", tree.name.name, " in {", fill([n.name for n in tree.allowed]), "}")


def _dims(dims: Sequence[s.Dim]) -> Document:
    return ("[", fill(list(map(_dim, dims))), "]")


def _dim(tree: s.Dim) -> Document:
    each = "each " if tree.each else ""
    return (each, expression(tree.size), "" if tree.broadcast is None else f" | {tree.broadcast}")


def _layout(layout: s.Ident | None) -> str:
    return "" if layout is None else f" layout {layout.name}"


@_line.register(s.TensorDecl)
def _tensor(tree: s.TensorDecl) -> Document:
    flags = (" shape_only" if tree.shape_only else "") + (" optional" if tree.optional else "")
    head = f"{tree.keyword} {tree.name.name}: {tree.dtype.name}"
    return (head, _dims(tree.dims), _layout(tree.layout) + flags)


@_line.register(s.SeveralDecl)
def _several(tree: s.SeveralDecl) -> Document:
    return (f"{tree.keyword} {tree.name.name}: {tree.dtype.name}", _dims(tree.dims), " one or more")


@_line.register(s.StaticDecl)
def _static(tree: s.StaticDecl) -> Document:
    length = "" if tree.scalar else "..."
    return f"static {tree.name.name}: {tree.dtype.name}[{length}]{' optional' if tree.optional else ''}"


@_line.register(s.RankDecl)
def _rank(tree: s.RankDecl) -> Document:
    return ("rank ", fill(list(map(_rank_rule, tree.rules))))


def _rank_rule(tree: s.RankRule) -> Document:
    if tree.value is None:
        return f"{tree.pack.name} <= {tree.most}"
    return (f"{tree.pack.name} = ", expression(tree.value), "" if tree.tensor is None else f" of {tree.tensor.name}")


@_line.register(s.VersionsDecl)
def _versions(tree: s.VersionsDecl) -> Document:
    last = "" if tree.last is None else f" to {tree.last}"
    each = "" if tree.each is None else f" each {tree.each.name}"
    return f"versions {tree.first}{last}{'' if tree.op is None else f' of {tree.op.name}'}{each}"


@_line.register(s.FormulaDecl)
def _formula(tree: s.FormulaDecl) -> Document:
    parameters = fill([_parameter(p) for p in tree.parameters])
    return Group(Nest(4, (f"function {tree.name.name}(", parameters, ") = ", expression(tree.value))))


@_line.register(s.CountDecl)
def _count(tree: s.CountDecl) -> Document:
    return Group(Nest(4, (f"count {tree.name.name} = ", expression(tree.value))))


@_line.register(s.InheritedDecl)
def _inherited(tree: s.InheritedDecl) -> Document:
    like = "" if tree.like is None else f" like {tree.like.name}"
    return f"{tree.keyword} {tree.name.name}{like}{' shape_only' if tree.shape_only else ''}"


@_line.register(s.SizesDecl)
def _sizes(tree: s.SizesDecl) -> Document:
    forms = join((SPACE, "or "), [_form(f) for f in tree.forms])
    colon = ":" if not tree.forms or tree.forms[0].like is None else ""
    return Group(Nest(4, (f"sizes {tree.name.name}{colon} ", forms)))


def _form(tree: s.Form) -> Document:
    bindings = ", ".join(f"{b.name.name} = {b.value}" for b in tree.bindings)
    if tree.like is not None:
        return f"like {tree.like.name}" + (f" where {bindings}" if bindings else "")
    return (_dims(tree.dims), _layout(tree.layout), f" where {bindings}" if bindings else "")


@_line.register(s.AttrDecl)
def _attr(tree: s.AttrDecl) -> Document:
    options: list[Document] = []
    if tree.minimum is not None:
        options.append((SPACE, f">= {tree.minimum.text}"))
    if tree.maximum is not None:
        options.append((SPACE, f"<= {tree.maximum.text}"))
    if tree.layout is not None:
        options.append((SPACE, f"layout {tree.layout.name}"))
    if tree.default is not None:
        options.append((SPACE, "= ", value(tree.default)))
    if tree.compatibility:
        options.append((SPACE, "compatibility"))
    if tree.deprecated is not None:
        options.append((SPACE, f"deprecated {quote(tree.deprecated.value)}"))
    if tree.alias is not None:
        options.append((SPACE, f"alias {tree.alias.name}"))
    return Group(Nest(4, (f"attr {tree.name.name}: ", _attr_type(tree.type), *options)))


def _attr_type(tree: s.AttrType) -> Document:
    if tree.words:
        words = [w.name.name if w.payload is None else f"{w.name.name} = {w.payload.name}" for w in tree.words]
        return (f"{tree.kind.name} {{", fill(words), "}", _lengths(tree.shape))
    return (tree.kind.name, _lengths(tree.shape))


def _lengths(shape: Sequence[str | s.Expression]) -> Document:
    if not shape:
        return ""
    return ("[", fill([size if isinstance(size, str) else expression(size) for size in shape]), "]")


@_line.register(s.UseDecl)
def _use(tree: s.UseDecl) -> Document:
    return f"use {tree.fragment.name}"


@_line.register(s.RequireDecl)
def _require(tree: s.RequireDecl) -> Document:
    message = f": {tree.argument.name} {quote(tree.expected.value)}"
    return Group(("require ", Nest(2, Group(expression(tree.condition))), Nest(2, (SPACE, message))))


@_line.register(s.LetDecl)
def _let(tree: s.LetDecl) -> Document:
    return Nest(4, ("let ", ", ".join(n.name for n in tree.names), " = ", expression(tree.value)))


@_line.register(s.PackLet)
def _pack_let(tree: s.PackLet) -> Document:
    names = ", ".join(f"{n.name}..." for n in tree.names)
    return Nest(4, ("let ", names, " = ", expanded(tree.value)))


@_line.register(s.DefinitionDecl)
def _definition(tree: s.DefinitionDecl) -> Document:
    subscripts = fill([expression(e) for e in tree.subscripts])
    where: Document = ""
    if tree.where:
        where = Group(Nest(4, (SPACE, "where ", fill([range_(r) for r in tree.where]))))
    let = "let " if tree.let else ""
    means = "=" if tree.update is None else f"{tree.update}="
    means = f"... {means}" if tree.pack else f" {means}"
    made = expanded(tree.value) if tree.pack else expression(tree.value)
    taken: Document = ""
    if tree.condition is not None:
        taken = Group(Nest(4, (SPACE, "if ", expression(tree.condition))))
    return (let, tree.target.name, "[", subscripts, f"]{means} ", made, where, taken)


@_line.register(s.SpecializeDecl)
def _specialize(tree: s.SpecializeDecl) -> Document:
    return ("specialize ", fill([_entry(e) for e in tree.entries]))


@_line.register(s.Entry)
def _entry(tree: s.Entry) -> Document:
    return (tree.name.name, " = ", value(tree.value))


@_line.register(s.ConstantDecl)
def _constant(tree: s.ConstantDecl) -> Document:
    return (f"constant {tree.name.name}[{', '.join(tree.shape)}] = ", _table(tree.table))


def _table(tree: s.Table) -> Document:
    return ("[", fill([_table(i) if isinstance(i, s.Table) else expression(i) for i in tree.items]), "]")


@_line.register(s.WhenDecl)
def _when(tree: s.WhenDecl) -> Document:
    return ("when ", Nest(2, Group(condition(tree.condition))))


@_line.register(s.GradientDecl)
def _gradient(tree: s.GradientDecl) -> Document:
    return f"gradient of {tree.op.name} with respect to {tree.wrt.name}"
