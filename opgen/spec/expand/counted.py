"""Sizes computed from elements: an op that has one becomes two ops.

`count found = sum[i](...)` makes `found` an attribute of the op, and adds the op `<Name>Count`, whose result is that
number.  Callers that omit the attribute run the other op first; later stages see two ordinary ops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from opgen.spec.generic.prune import prune
from opgen.spec.generic.trees import expressions_of, names_in
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.fragments import Fragments, in_place
from opgen.spec.syntax.report import Report

SUFFIX = "Count"
"""Suffix of the counting op's name."""

_LEFT_OUT = (s.ExampleDecl, s.VersionsDecl, s.SignatureDecl, s.SpecializeDecl, s.AlgorithmDecl, s.UseDecl)
"""Declarations that the counting op leaves out."""


def counted(report: Report, decl: s.OpDecl, fragments: Fragments) -> Sequence[s.OpDecl]:
    """Return an op with a counted size as the counting op and the op with a size attribute; others unchanged."""
    counts = [i for i in in_place(decl.items, fragments) if isinstance(i, s.CountDecl)]
    if not counts:
        return [decl]
    for extra in counts[1:]:
        report.add("S011", "an op counts one size", extra.span)
    items = tuple(in_place(decl.items, fragments))
    return [_counting(decl, items, counts[0]), _sized(decl, items, counts[0])]


def _counting(decl: s.OpDecl, items: Sequence[s.Item], count: s.CountDecl) -> s.OpDecl:
    """Return the counting op, whose result is the number."""
    span = count.span
    name = s.Ident(decl.name.span, decl.name.name + SUFFIX)
    outputs = {i.name.name for i in items if isinstance(i, s.TensorDecl | s.SeveralDecl) and _is_output(i)}
    kept = [i for i in items if not _belongs(i, outputs) and not isinstance(i, s.CountDecl)]
    doc = s.Doc(span, f"The size `{count.name.name}` that {decl.name.name} has for the same arguments.")
    kept += [
        s.TensorDecl(span, "output", count.name, s.Ident(span, "int64"), (), None, False, count.doc),
        s.DefinitionDecl(span, False, count.name, (), count.value, ()),
    ]
    pruned = prune(kept)
    return s.OpDecl(decl.span, name, doc, (*pruned, *_examples(items, pruned)))


def _examples(items: Sequence[s.Item], kept: Sequence[s.Item]) -> Iterator[s.ExampleDecl]:
    """Yield the op's examples, restricted to the arguments and results of the counting op."""
    names = {i.name.name for i in kept if isinstance(i, s.TensorDecl | s.SeveralDecl | s.StaticDecl | s.AttrDecl)}
    for item in items:
        if isinstance(item, s.ExampleDecl):
            yield dataclasses.replace(item, entries=tuple(e for e in item.entries if e.name.name in names))


def _is_output(item: s.TensorDecl | s.SeveralDecl) -> bool:
    return item.keyword in ("output", "outputs")


def _belongs(item: s.Item, outputs: set[str]) -> bool:
    """True if a declaration belongs to the results, or is of a kind that the counting op leaves out."""
    if isinstance(item, s.TensorDecl | s.SeveralDecl):
        return _is_output(item)
    if isinstance(item, s.DefinitionDecl):
        return item.target.name in outputs
    return isinstance(item, _LEFT_OUT)


def _sized(decl: s.OpDecl, items: Sequence[s.Item], count: s.CountDecl) -> s.OpDecl:
    """Return the op with the size as an attribute."""
    span = count.span
    kind = s.AttrType(span, s.Ident(span, "int64"), (), ())
    least = s.Constant(span, "0")
    size = s.AttrDecl(
        span, count.name, kind, least, None, None, None, False, None, None, count.doc, decl.name.name + SUFFIX
    )
    counting = {n for i in items if not _reads_results(i) for tree in expressions_of(i) for n in names_in(tree)}
    kept = [size if i is count else i for i in items if i is count or not isinstance(i, s.CountDecl)]
    return dataclasses.replace(decl, items=tuple(_by_shape(kept, counting)))


def _reads_results(item: s.Item) -> bool:
    return isinstance(item, s.DefinitionDecl) and not item.let


def _by_shape(items: Sequence[s.Item], counting: set[str]) -> Iterator[s.Item]:
    """Yield the declarations; inputs whose elements only the count reads become shape_only."""
    pruned = {i.name.name for i in prune(items) if isinstance(i, s.TensorDecl) and i.shape_only}
    for item in items:
        own = isinstance(item, s.TensorDecl) and item.keyword == "input" and item.name.name in pruned & counting
        yield dataclasses.replace(item, shape_only=True) if own and isinstance(item, s.TensorDecl) else item
