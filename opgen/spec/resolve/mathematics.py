"""Expressions of the mathematics: reads and reductions on top of scalar expressions."""

from __future__ import annotations

from typing import cast

from opgen.spec.model import model as m
from opgen.spec.model.polynomial import digits, same
from opgen.spec.resolve.attribute_tables import table_of
from opgen.spec.resolve.kinds import BOOL, INT, NUMBER, REAL, Kind, Typed
from opgen.spec.resolve.names import check_name
from opgen.spec.resolve.orders import ORDERS, resolve_order
from opgen.spec.resolve.places import PLACES, fresh_name, may_be_place, place_of, used_in
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.resolve.scalars import ScalarResolver
from opgen.spec.resolve.scope import Binding, Readable, Scope
from opgen.spec.resolve.steps import Foretold
from opgen.spec.resolve.subscripts import SubscriptResolver
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import LOOPS
from opgen.spec.syntax.strings import plural

REDUCTIONS: dict[str, m.ReductionKind] = {"sum": "sum", "prod": "prod", "max": "max", "min": "min"}


class MathResolver(ScalarResolver):
    """Resolver of the value of one definition.

    `target` is the tensor being defined.  `foretold` describes tensors that are read at another step.  `unguarded`
    collects reads outside reductions that have no `else` value; they must be proved in bounds.  `elements` are the
    reads of constants, each with the index ranges of the reductions around it.  Only `root`, the value of a `let` with
    the indices `own`, may be an order; `ordered` maps the sorted index to its extent.  `before` are definitions that
    the value needs; their indices have no ranges yet.
    """

    def __init__(self, scope: Scope, target: str, foretold: Foretold, root: s.Expression | None = None) -> None:
        super().__init__(scope)
        self.target = target
        self.foretold = foretold
        self.unguarded: list[m.Read] = []
        self.elements: list[tuple[m.Element, dict[str, m.Expr]]] = []
        self.root = root
        self.own: set[str] = set()
        self.ordered: dict[str, m.Expr] = {}
        self.before: list[m.Definition] = []
        self._reductions = 0

    # Reads ----------------------------------------------------------------------------------------

    def _subscripted(self, tree: s.Subscripted) -> Typed | None:
        name = tree.owner.name
        tensor = self.scope.tensors.get(name)
        if tensor is None and name in self.scope.constants:
            return self._element_of(tree, self.scope.constants[name])
        if tensor is None and self.foretold.is_step(tree):
            return self._read(tree, None)
        if tensor is None:
            if name == self.target:
                step = f"an earlier step is read as in {name}[t - 1, ...] else 0"
                self.report.add("S023", f"'{name}' is read in its own definition", tree.owner.span, step)
                return None
            if name in self.scope.later_tensors:
                self.report.add(
                    "S023", f"'{name}' is read before it is defined", tree.owner.span, f"move `let {name}[...]` up"
                )
                return None
            if name in self.scope.attrs and not all(isinstance(e, s.Constant) for e in tree.subscripts):
                return self._list_element(tree, self.scope.attrs[name])
            if name in self.scope.attrs or name in self.scope.symbols or name in self.scope.poisoned:
                return super()._subscripted(tree)
            self.report.unknown("tensor", name, tree.owner.span, self.scope.known())
            return None
        if tensor.output or tensor.shape_only:
            why = "is an output: its elements cannot be read" if tensor.output else "is shape_only: it has no elements"
            help = f"compute it in a `let` tensor and copy that to '{name}'" if tensor.output else None
            self.report.add("S013", f"'{name}' {why}", tree.owner.span, help)
            return None
        return self._read(tree, tensor)

    def _read(self, tree: s.Subscripted, tensor: Readable | None) -> Typed | None:
        """Resolve a read of a tensor; `tensor` is None if it is read at another step, before its definition."""
        subscripts = [self._subscript(e) for e in tree.subscripts]
        outside = None if tree.outside is None else self.resolve(tree.outside)
        if tree.outside is not None and outside is None:
            return None
        if tensor is None:
            tensor = self.foretold.readable(tree.owner.name, None if outside is None else outside.kind, tree.span)
        if tensor is None or tensor.dims is None:
            return None
        if len(subscripts) != len(tensor.dims):
            expected = plural(len(tensor.dims), "dimension")
            message = f"'{tensor.name}' has {expected}, found {plural(len(subscripts), 'subscript')}"
            self.report.add("S021", message, tree.span)
            return None
        indices = tuple(e for e in subscripts if e is not None)
        if len(indices) < len(subscripts):
            return None
        for subscript, dim in zip(indices, tensor.dims, strict=True):
            self._learn(subscript, dim)
        value = None
        if outside is not None and tree.outside is not None:
            adapted = self.adapt(outside, tensor.dtype)
            if adapted is None:
                message = f"outside '{tensor.name}' the value must be {self.describe(tensor.dtype)}"
                self.report.add("S020", f"{message}, found {self.describe(outside.kind)}", tree.outside.span)
                return None
            value = adapted.expr
        read = m.Read(tensor.name, indices, value, tree.span)
        if value is None and not self._reductions:
            self.unguarded.append(read)
        return Typed(read, tensor.dtype)

    def _list_element(self, tree: s.Subscripted, attr: m.Attr) -> Typed | None:
        """Resolve an element of a list attribute at indices as a read of the tensor that holds the list."""
        if not attr.shape:
            self.report.add("S013", f"'{attr.name}' is not a list", tree.owner.span)
            return None
        if attr.layout is not None:
            message = f"'{attr.name}' follows the layout '{attr.layout}': its elements have letters, not numbers"
            self.report.add("S032", message, tree.span)
            return None
        if len(tree.subscripts) != len(attr.shape):
            shown = f"{plural(len(attr.shape), 'subscript')}, found {len(tree.subscripts)}"
            self.report.add("S021", f"an element of '{attr.name}' takes {shown}", tree.span)
            return None
        return self._read(tree, table_of(self.scope, attr, tree.owner.span))

    def _element_of(self, tree: s.Subscripted, constant: m.Constant) -> Typed | None:
        """Resolve an element of a constant."""
        if tree.outside is not None:
            self.report.add("S013", "a constant is read inside only: it takes no `else`", tree.outside.span)
        if len(tree.subscripts) != len(constant.shape):
            expected = plural(len(constant.shape), "dimension")
            message = f"'{constant.name}' has {expected}, found {plural(len(tree.subscripts), 'subscript')}"
            self.report.add("S021", message, tree.span)
            return None
        subscripts = [self._subscript(e) for e in tree.subscripts]
        indices = tuple(e for e in subscripts if e is not None)
        if len(indices) < len(subscripts):
            return None
        for subscript, size in zip(indices, constant.shape, strict=True):
            self._learn(subscript, m.Number(size))
        element = m.Element(constant, indices, tree.span)
        self.elements.append((element, {}))
        return Typed(element, NUMBER if all(v.denominator == 1 for v in constant.values) else REAL)

    def update(self, decl: s.DefinitionDecl) -> tuple[list[m.Expr | None], Typed | None, m.Expr | None]:
        """Resolve the target, value and condition of an update; as in a reduction, out-of-bounds terms are skipped."""
        self._reductions += 1
        at = [self._subscript(e) for e in decl.subscripts]
        value = self.resolve(decl.value)
        condition = None if decl.condition is None else self.condition(decl.condition)
        self._reductions -= 1
        for element, _ in self.elements:
            if element.span is not None:
                help = f"read it in a `let` tensor, as in let c[i] = {element.constant.name}[i]"
                self.report.add("S013", "an update reads no constant", element.span, help)
        return at, value, condition

    def _subscript(self, tree: s.Expression) -> m.Expr | None:
        return SubscriptResolver(self.scope, self.resolve, self.whole).integer(tree)

    def _learn(self, subscript: m.Expr, dim: m.Expr) -> None:
        """Record the ranges that a subscript implies for its indices."""
        if isinstance(subscript, m.Index) and subscript.span is not None:
            self.scope.indices[subscript.name].bare.append((dim, subscript.span))
            return
        for name, extent in digits(subscript, dim) or ():
            binding = self.scope.indices[name]
            binding.composite.append((extent, binding.span))

    # Reductions -----------------------------------------------------------------------------------

    def _reduction(self, tree: s.Reduction) -> Typed | None:
        if tree.kind in ORDERS:
            return resolve_order(self, tree)
        if tree.place is not None:
            self.report.add("S021", f"'{tree.kind}' takes 1 value, found another", tree.place.span)
            return None
        terms = self._terms(tree)
        if terms is None or tree.kind not in PLACES:
            return terms
        if not may_be_place(self.report, tree, bool(self._reductions), cast("m.Reduce", terms.expr)):
            return None
        return self._place(cast("m.Reduce", terms.expr), terms.kind)

    def _place(self, terms: m.Reduce, kind: Kind) -> Typed:
        """Return the position of an extreme; the extreme itself becomes a tensor defined before."""
        name = fresh_name(self.scope, f"{self.target}_{terms.kind}", (d.tensor for d in self.before))
        indices = tuple(m.IndexRange(n, m.Number(0)) for n in used_in(terms, self.scope.indices))
        subscripts = tuple(m.Index(r.name) for r in indices)
        self.before.append(m.Definition(name, indices, subscripts, terms, kind, (), False, terms.span))
        best = m.Read(name, subscripts, None, terms.span)
        return Typed(place_of(terms, best, not self.is_integer(kind)), "int64")

    def _terms(self, tree: s.Reduction) -> Typed | None:
        """Resolve the reduction itself; for argmax and argmin, the max or min that finds the extreme."""
        bindings = self.bind([(r.index, r.extent) for r in tree.ranges])
        self._reductions += 1
        first = len(self.elements)
        body = self.resolve(tree.body)
        condition = None if tree.condition is None else self.condition(tree.condition)
        self._reductions -= 1
        for binding in bindings:
            del self.scope.indices[binding.name]
        if body is None or (condition is None and tree.condition is not None):
            return None
        if body.kind in (BOOL, INT):
            help = "cast it, as in float(...)" if body.kind == INT else None
            self.report.add(
                "S020",
                f"'{tree.kind}' takes values of a tensor's type, found {self.describe(body.kind)}",
                tree.body.span,
                help,
            )
            return None
        ranges = []
        for binding in bindings:
            extent = self.extent(binding, f"{tree.kind}[{binding.name} < ...]")
            if extent is None:
                return None
            if not binding.used:
                self.report.add("S033", f"the index '{binding.name}' is never used", binding.span)
            ranges.append(m.IndexRange(binding.name, extent))
        for _, known in self.elements[first:]:
            known.update({r.name: r.extent for r in ranges})
        kind = REDUCTIONS[tree.kind] if tree.kind in REDUCTIONS else PLACES[tree.kind]
        return Typed(m.Reduce(kind, tuple(ranges), body.expr, span=tree.span, condition=condition), body.kind)

    def bind(self, indices: list[tuple[s.Ident, s.Expression | None]]) -> list[Binding]:
        """Bring indices into scope; the caller removes them again."""
        bindings = []
        for ident, extent in indices:
            explicit = None if extent is None else Resolver(self.scope).integer(extent)
            name = ident.name
            if (
                name in self.scope.indices
                or name in self.scope.symbols
                or name in self.scope.attrs
                or name in self.scope.tensors
            ):
                self.report.add("S011", f"the index '{name}' hides another '{name}'", ident.span, "choose another name")
                continue
            check_name(self.report, name, ident.span)
            if not self.report.at_most(len(self.scope.indices) + 1, LOOPS, "indices around one value", ident.span):
                continue
            binding = Binding(name, ident.span, explicit)
            if extent is not None and explicit is None:
                binding.explicit = m.Number(1)
            self.scope.indices[name] = binding
            bindings.append(binding)
        return bindings

    def extent(self, binding: Binding, written: str) -> m.Expr | None:
        """Return an index's extent: as written, else the dimension it subscripts alone, or its part of a composite."""
        if binding.explicit is not None:
            return binding.explicit
        for found in (binding.bare, binding.composite):
            for extent, span in found[1:]:
                if not same(extent, found[0][0]):
                    message = f"the index '{binding.name}' ranges over both {show(found[0][0])} and {show(extent)}"
                    self.report.add("S050", message, span, f"say which: {written}")
                    return None
            if found:
                return found[0][0]
        if binding.used:
            message = f"the range of the index '{binding.name}' cannot be told from its uses"
            self.report.add("S050", message, binding.span, f"write {written}")
        else:
            self.report.add("S033", f"the index '{binding.name}' is never used", binding.span)
        return None


def show(expr: m.Expr) -> str:
    """Describe an integer expression for a message."""
    if isinstance(expr, m.Number):
        return str(expr.value)
    if isinstance(expr, m.Symbol | m.Index):
        return expr.name
    if isinstance(expr, m.AttrValue):
        return expr.attr + "".join(f"[{i}]" for i in expr.element)
    if isinstance(expr, m.Operation) and len(expr.op) <= 2:
        return f"{show(expr.left)} {expr.op} {show(expr.right)}"
    return "another extent"
