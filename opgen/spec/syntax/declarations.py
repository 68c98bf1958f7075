"""Builder of declarations from lark's tree: the part of the tree builder above expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from lark import Token, Tree

from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.tree import Branch, Child, TreeBuilder, as_branch

T = TypeVar("T")


class FileBuilder(TreeBuilder):
    """Builds the syntax tree of a file."""

    def file(self, root: Branch) -> s.File:
        doc, *items = root.children
        return s.File(self._source, self.doc(doc), tuple(self._declaration(i) for i in items))

    def _declaration(self, child: Child) -> s.Declaration:
        node = as_branch(child)
        return _DECLARATIONS[node.data](self, node)

    def _import(self, node: Branch) -> s.ImportDecl:
        return s.ImportDecl(self.span(node), self.text(node.children[0]))

    def _function(self, node: Branch) -> s.FunctionDecl:
        name, *rest = node.children
        branches = [as_branch(c) for c in rest if c is not None and not isinstance(c, str)]
        parameters = tuple(self._parameter(b) for b in branches if b.data == "parameter")
        lets = tuple(self._let(b) for b in branches if b.data == "shape_let")
        results = next(b for b in branches if b.data == "results")
        returns = branches[-1]
        doc = next((self.doc(c) for c in rest if isinstance(c, str)), None)
        values = tuple(self.expression(c) for c in returns.children)
        return s.FunctionDecl(
            self.span(node),
            self.ident(name),
            parameters,
            tuple(map(self.ident, results.children)),
            doc,
            lets,
            s.ReturnDecl(self.span(returns), values),
        )

    def _formula(self, node: Branch) -> s.FormulaDecl:
        name, *parameters, value, doc = node.children
        given = tuple(self._parameter(as_branch(p)) for p in parameters if p is not None)
        return s.FormulaDecl(self.span(node), self.ident(name), given, self.expression(value), self.doc(doc))

    def _parameter(self, node: Branch) -> s.ParameterDecl:
        name, values = node.children
        return s.ParameterDecl(self.span(node), self.ident(name), () if values is None else self._idents(values))

    def _idents(self, child: Child) -> tuple[s.Ident, ...]:
        return tuple(map(self.ident, as_branch(child).children))

    def _fragment(self, node: Branch) -> s.FragmentDecl:
        name, doc, *items = node.children
        return s.FragmentDecl(self.span(node), self.ident(name), self.doc(doc), tuple(map(self._item, items)))

    def _op(self, node: Branch) -> s.OpDecl:
        name, doc, *items = node.children
        return s.OpDecl(self.span(node), self.ident(name), self.doc(doc), tuple(map(self._item, items)))

    # Items of an op -------------------------------------------------------------------------------

    def _item(self, child: Child) -> s.Item:
        node = as_branch(child)
        return _ITEMS[node.data](self, node)

    def _signature(self, node: Branch) -> s.SignatureDecl:
        label, function, *arguments = node.children
        return s.SignatureDecl(
            self.span(node),
            tuple(self._taken(as_branch(a)) for a in arguments),
            None if label is None else self.text(label),
            self.maybe_ident(function),
        )

    def _taken(self, node: Branch) -> s.Taken:
        name, called, form, default = node.children
        how, other = (None, None) if called is None else as_branch(called).children
        return s.Taken(
            self.span(node),
            self.ident(name),
            self.maybe_ident(other),
            how is not None and str(how) == "or",
            None if form is None else self._form_taken(as_branch(form)),
            None if default is None else self.value(default),
        )

    def _form_taken(self, node: Branch) -> s.Elements | s.InPlace:
        *names, last = node.children
        if node.data == "in_place":
            return s.InPlace(self.span(node), self.ident(names[0]), self.ident(last))
        return s.Elements(self.span(node), tuple(map(self.ident, names)), self.constant(last))

    def _type(self, node: Branch) -> s.TypeDecl:
        name, allowed = node.children
        return s.TypeDecl(self.span(node), self.ident(name), self._idents(allowed))

    def _tensor(self, node: Branch) -> s.TensorDecl:
        keyword, name, dtype, dims, *options, doc = node.children
        role: Literal["input", "output"] = "input" if str(keyword) == "input" else "output"
        layouts: list[s.Ident] = []
        flags: set[str] = set()
        for option in map(as_branch, options):
            if option.data == "layout":
                layouts.append(self.ident(option.children[0]))
            elif option.data in flags:
                self._report.add("S001", f"'{option.data}' is given twice", self.span(option))
            flags.add(option.data)
        layout = self._once(layouts, "layout")
        return s.TensorDecl(
            self.span(node),
            role,
            self.ident(name),
            self.ident(dtype),
            self._dims(dims),
            layout,
            "shape_only" in flags,
            self.doc(doc),
            "optional" in flags,
        )

    def _inherited(self, node: Branch) -> s.InheritedDecl:
        keyword, name, like, shape_only, doc = node.children
        role: Literal["input", "output"] = "input" if str(keyword) == "input" else "output"
        return s.InheritedDecl(
            self.span(node), role, self.ident(name), self.maybe_ident(like), shape_only is not None, self.doc(doc)
        )

    def _dims(self, child: Child) -> tuple[s.Dim, ...]:
        return tuple(self._dim(as_branch(c)) for c in as_branch(child).children if c is not None)

    def _dim(self, node: Branch) -> s.Dim:
        each, size, broadcast = node.children
        stretched = None if broadcast is None else str(broadcast)
        return s.Dim(self.span(node), self.expression(size), stretched, each is not None)

    def _several(self, node: Branch) -> s.SeveralDecl:
        keyword, name, dtype, dims, _, doc = node.children
        role: Literal["inputs", "outputs"] = "inputs" if str(keyword) == "inputs" else "outputs"
        return s.SeveralDecl(
            self.span(node), role, self.ident(name), self.ident(dtype), self._dims(dims), self.doc(doc)
        )

    def _static(self, node: Branch) -> s.StaticDecl:
        _, name, dtype, several, optional, doc = node.children
        return s.StaticDecl(
            self.span(node),
            self.ident(name),
            self.ident(dtype),
            several is None,
            optional is not None,
            self.doc(doc),
        )

    def _rank(self, node: Branch) -> s.RankDecl:
        return s.RankDecl(self.span(node), tuple(self._rank_rule(as_branch(c)) for c in node.children[1:]))

    def _rank_rule(self, node: Branch) -> s.RankRule:
        if node.data == "most_rank":
            pack, most = node.children
            return s.RankRule(self.span(node), self.ident(pack), str(most), None, None)
        pack, value, tensor = node.children
        return s.RankRule(self.span(node), self.ident(pack), None, self.expression(value), self.maybe_ident(tensor))

    def _versions(self, node: Branch) -> s.VersionsDecl:
        _, first, last, op, _, each = node.children
        until = None if last is None else str(last)
        foreign = None if op is None else self._foreign(as_branch(op))
        return s.VersionsDecl(self.span(node), str(first), until, foreign, self.maybe_ident(each))

    def _foreign(self, node: Branch) -> s.Ident:
        """Return the name of an op of a set, prefixed with the set's name."""
        return s.Ident(self.span(node), ".".join(self.ident(part).name for part in node.children))

    def _sizes(self, node: Branch) -> s.SizesDecl:
        name, *forms, doc = node.children
        return s.SizesDecl(
            self.span(node), self.ident(name), tuple(self._form(as_branch(f)) for f in forms), self.doc(doc)
        )

    def _form(self, node: Branch) -> s.Form:
        if node.data == "like_form":
            name, *bindings = node.children
            given = tuple(self._binding(as_branch(b)) for b in bindings if b is not None)
            return s.Form(self.span(node), (), None, given, self.ident(name))
        dims, layout, *bindings = node.children
        given = tuple(self._binding(as_branch(b)) for b in bindings if b is not None)
        return s.Form(self.span(node), self._dims(dims), self.maybe_ident(layout), given)

    def _binding(self, node: Branch) -> s.Binding:
        name, value = node.children
        return s.Binding(self.span(node), self.ident(name), str(value))

    def _attr(self, node: Branch) -> s.AttrDecl:
        name, kind, *options, doc = node.children
        chosen: dict[str, list[Branch]] = {}
        for option in map(as_branch, options):
            chosen.setdefault(option.data, []).append(option)

        def pick(what: str, shown: str, read: Callable[[Child], T]) -> T | None:
            given = chosen.get(what, [])
            for extra in given[1:]:
                self._report.add("S001", f"'{shown}' is given twice", self.span(extra))
            return read(given[0].children[0]) if given and given[0].children else None

        pick("compatibility", "compatibility", self.value)
        return s.AttrDecl(
            self.span(node),
            self.ident(name),
            self._attr_type(as_branch(kind)),
            pick("minimum", ">=", self.constant),
            pick("maximum", "<=", self.constant),
            pick("layout", "layout", self.ident),
            pick("default", "=", self.value),
            "compatibility" in chosen,
            pick("deprecated", "deprecated", self.text),
            pick("alias", "alias", self.ident),
            self.doc(doc),
        )

    def _attr_type(self, node: Branch) -> s.AttrType:
        kind, *rest = node.children
        if node.data == "word_type":
            given = [c for c in rest if isinstance(c, Tree) and c.data == "word"]
            words = tuple(map(self._word, given))
            return s.AttrType(self.span(node), self.ident(kind), self._lengths(rest[len(given) :]), words)
        return s.AttrType(self.span(node), self.ident(kind), self._lengths(rest), ())

    def _lengths(self, children: Sequence[Child]) -> tuple[str | s.Expression, ...]:
        """Return the lengths of a list: numbers and "..." as texts, the rest as expressions."""
        lengths: list[str | s.Expression] = []
        for child in children:
            if child is None:
                continue
            length = str(child) if isinstance(child, Token) else self.expression(child)
            literal = isinstance(length, s.Constant) and length.text.isdigit()
            lengths.append(length.text if literal and isinstance(length, s.Constant) else length)
        return tuple(lengths)

    def _word(self, node: Branch) -> s.Word:
        name, payload = node.children
        return s.Word(self.span(node), self.ident(name), self.maybe_ident(payload))

    def _once(self, given: Sequence[s.Ident], what: str) -> s.Ident | None:
        for extra in given[1:]:
            self._report.add("S001", f"'{what}' is given twice", extra.span)
        return given[0] if given else None

    def _use(self, node: Branch) -> s.UseDecl:
        return s.UseDecl(self.span(node), self.ident(node.children[0]))

    def _require(self, node: Branch) -> s.RequireDecl:
        condition, argument, expected = node.children
        return s.RequireDecl(self.span(node), self.expression(condition), self.ident(argument), self.text(expected))

    def _let(self, node: Branch) -> s.LetDecl:
        *names, value = node.children
        return s.LetDecl(self.span(node), tuple(map(self.ident, names)), self.expression(value))

    def _pack_let(self, node: Branch) -> s.PackLet:
        *names, value = node.children
        pattern = self.expression(as_branch(value).children[0])
        return s.PackLet(self.span(node), tuple(map(self.ident, names)), pattern)

    def _count(self, node: Branch) -> s.CountDecl:
        _, name, value, doc = node.children
        return s.CountDecl(self.span(node), self.ident(name), self.expression(value), self.doc(doc))

    def _definition(self, node: Branch) -> s.DefinitionDecl:
        let, target, subscripts, value, *where = node.children
        return s.DefinitionDecl(
            self.span(node),
            let is not None,
            self.ident(target),
            self._all(subscripts),
            self.expression(value),
            tuple(self.range(r) for r in where if r is not None),
        )

    def _pack_definition(self, node: Branch) -> s.DefinitionDecl:
        target, subscripts, value, *where = node.children
        return s.DefinitionDecl(
            self.span(node),
            True,
            self.ident(target),
            self._all(subscripts),
            self.expression(as_branch(value).children[0]),
            tuple(self.range(r) for r in where if r is not None),
            pack=True,
        )

    def _update(self, node: Branch) -> s.DefinitionDecl:
        target, subscripts, update, value, *where, condition = node.children
        return s.DefinitionDecl(
            self.span(node),
            False,
            self.ident(target),
            self._all(subscripts),
            self.expression(value),
            tuple(self.range(r) for r in where if r is not None),
            str(update).removesuffix("="),
            None if condition is None else self.expression(condition),
        )

    def _example(self, node: Branch) -> s.ExampleDecl:
        title, *entries = node.children
        return s.ExampleDecl(self.span(node), self.text(title), tuple(self._entry(as_branch(e)) for e in entries))

    def _specialize(self, node: Branch) -> s.SpecializeDecl:
        return s.SpecializeDecl(self.span(node), tuple(self._entry(as_branch(e)) for e in node.children))

    def _entry(self, node: Branch) -> s.Entry:
        name, value = node.children
        return s.Entry(self.span(node), self.ident(name), self.value(value))

    def _gradient(self, node: Branch) -> s.GradientDecl:
        op, wrt = node.children
        return s.GradientDecl(self.span(node), self.ident(op), self.ident(wrt))

    # Algorithms -----------------------------------------------------------------------------------

    def _constant(self, node: Branch) -> s.ConstantDecl:
        name, *sizes, table = node.children
        return s.ConstantDecl(self.span(node), self.ident(name), tuple(map(str, sizes)), self._table(as_branch(table)))

    def _table(self, node: Branch) -> s.Table:
        cells = [as_branch(c) for c in as_branch(node.children[0]).children if c is not None]
        if not cells:
            self._report.add("S001", "a constant holds at least one number", self.span(node))
        return s.Table(
            self.span(node), tuple(self._table(c) if c.data == "listed" else self.expression(c) for c in cells)
        )

    def _when(self, node: Branch) -> s.WhenDecl:
        return s.WhenDecl(self.span(node), self.expression(node.children[0]))

    def _algorithm(self, node: Branch) -> s.AlgorithmDecl:
        name, optional, doc, *items = node.children
        return s.AlgorithmDecl(
            self.span(node), self.ident(name), optional is not None, self.doc(doc), tuple(map(self._item, items))
        )


_DECLARATIONS: dict[str, Callable[[FileBuilder, Branch], s.Declaration]] = {
    "import_decl": FileBuilder._import,
    "function_decl": FileBuilder._function,
    "formula_decl": FileBuilder._formula,
    "fragment_decl": FileBuilder._fragment,
    "op_decl": FileBuilder._op,
}

_ITEMS: dict[str, Callable[[FileBuilder, Branch], s.Item]] = {
    "signature_decl": FileBuilder._signature,
    "type_decl": FileBuilder._type,
    "tensor_decl": FileBuilder._tensor,
    "inherited_decl": FileBuilder._inherited,
    "sizes_decl": FileBuilder._sizes,
    "attr_decl": FileBuilder._attr,
    "use_decl": FileBuilder._use,
    "require_decl": FileBuilder._require,
    "shape_let": FileBuilder._let,
    "definition": FileBuilder._definition,
    "update": FileBuilder._update,
    "example_decl": FileBuilder._example,
    "specialize_decl": FileBuilder._specialize,
    "gradient_decl": FileBuilder._gradient,
    "constant_decl": FileBuilder._constant,
    "when_decl": FileBuilder._when,
    "algorithm_decl": FileBuilder._algorithm,
    "several_decl": FileBuilder._several,
    "static_decl": FileBuilder._static,
    "rank_decl": FileBuilder._rank,
    "versions_decl": FileBuilder._versions,
    "pack_let": FileBuilder._pack_let,
    "pack_definition": FileBuilder._pack_definition,
    "count_decl": FileBuilder._count,
}
