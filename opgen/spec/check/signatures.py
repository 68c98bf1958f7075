"""Several signatures of one op: each checked by itself, and all together for ambiguous calls.

Signatures are distinguished by the values a caller may give in one position.  `values_of` returns them as a set of
names (a word, any text, a flag, a list of 4).  For two arguments in one position, neither set may contain the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from opgen.spec.check.attributes import literal, why_wrong
from opgen.spec.model import model as m
from opgen.spec.model.bounds import bounds
from opgen.spec.resolve.kinds import number
from opgen.spec.resolve.names import check_argument, check_function_name, check_name
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import NAME
from opgen.spec.syntax.report import Report

NAME_ARGUMENT = "name"
"""Argument that names a call, which every op may have."""


@dataclass(frozen=True)
class Arguments:
    """Parts of the signatures of an op."""

    inputs: tuple[m.Tensor | m.Sizes, ...]
    attrs: tuple[m.Attr, ...]

    def attr(self, name: str) -> m.Attr | None:
        """Return the attribute that an argument gives, by its name or its alias."""
        return next((a for a in self.attrs if name in (a.name, a.alias)), None)

    @property
    def needed(self) -> list[str]:
        """Arguments that a signature must have."""
        return [i.name for i in self.inputs] + [a.name for a in self.attrs if a.carried_by is None]

    @property
    def optional(self) -> set[str]:
        """Arguments that a call may leave out."""
        aliases = {a.alias for a in self.attrs if a.alias is not None}
        return {a.name for a in self.attrs if a.has_default} | aliases | {NAME_ARGUMENT}

    @property
    def carried(self) -> dict[str, str]:
        """Attributes that are given in another's position, mapped to that other."""
        return {a.name: a.carried_by for a in self.attrs if a.carried_by is not None}


class SignatureBuilder:
    """Checker of one signature; `own`: it is the op's own, which every language and `raw_ops` have."""

    def __init__(self, report: Report, arguments: Arguments, decl: s.SignatureDecl, *, own: bool) -> None:
        self.report = report
        self.arguments = arguments
        self.decl = decl
        self.own = own

    def build(self) -> m.Signature:
        """Return the signature; mistakes go to the report."""
        self._check_order()
        taken = tuple(self._taken(tree) for tree in self.decl.arguments)
        self._check_names(taken)
        label, function = self.decl.label, self.decl.function
        if label is not None and not (0 < len(label.value) <= NAME and label.value.isprintable()):
            self.report.add("S034", f"a label is a line of 1 to {NAME} letters", label.span)
        if function is not None:
            check_name(self.report, function.name, function.span)
            check_function_name(self.report, function.name, function.span)
            if self.own:
                self._refuse_own("other function", function)
        return m.Signature(
            "" if label is None else label.value, taken, "" if function is None else function.name, self.decl.span
        )

    def _refuse_own(self, what: str, tree: s.Node) -> None:
        help = "write it in a second signature"
        self.report.add("S034", f"the first signature is the op's own: it has no {what}", tree.span, help)

    # Order ------------------------------------------------------------------------------------------

    def _check_order(self) -> None:
        arguments = self.arguments
        optional = arguments.optional | {t.name.name for t in self.decl.arguments if t.default is not None}
        needed, carried = arguments.needed, arguments.carried
        known = {*needed, *optional} - set(carried)
        seen: list[str] = []
        for tree in self.decl.arguments:
            name = tree.name.name
            if name in carried:
                self.report.add("S034", f"'{name}' is given in the place of '{carried[name]}'", tree.name.span)
            elif name not in known:
                self.report.unknown("argument", name, tree.name.span, known)
            elif name in seen:
                self.report.add("S034", f"'{name}' stands twice in the signature", tree.name.span)
            elif name not in optional and any(n in optional for n in seen):
                message = f"'{name}' has no default and stands after '{seen[-1]}', which has one"
                self.report.add("S034", message, tree.name.span)
            seen.append(name)
        for name in needed:
            if name not in seen and (self.own or name not in arguments.optional):
                self.report.add("S034", f"the signature lacks '{name}'", self.decl.span)

    def _check_names(self, taken: Sequence[m.SignatureArgument]) -> None:
        """Note names for the caller that already have another meaning."""
        declared = {*self.arguments.needed, *self.arguments.optional, *self.arguments.carried}
        others = [t.called.name for t in self.decl.arguments if t.called is not None]
        for tree in self.decl.arguments:
            if tree.called is not None and (tree.called.name in declared or others.count(tree.called.name) > 1):
                self.report.add("S034", f"'{tree.called.name}' is an argument already", tree.called.span)
        given = {form.payload for form in (t.form for t in taken) if isinstance(form, m.InPlace)}
        for tree in self.decl.arguments:
            if tree.name.name in given:
                message = f"'{tree.name.name}' is given in another place of this signature"
                self.report.add("S034", message, tree.name.span)

    # One argument -----------------------------------------------------------------------------------

    def _taken(self, tree: s.Taken) -> m.SignatureArgument:
        name = tree.name.name
        called: tuple[str, ...] = (name,)
        if tree.called is not None:
            check_argument(self.report, tree.called.name, tree.called.span)
            called = (name, tree.called.name) if tree.also else (tree.called.name,)
        for what, part in (("other names", tree.called), ("forms", tree.form), ("defaults", tree.default)):
            if part is not None and self.own:
                self._refuse_own(what, part)
        attr = self.arguments.attr(name)
        form: m.Elements | m.InPlace | None = None
        if isinstance(tree.form, s.Elements):
            form = self._elements(tree.name, tree.form, attr)
        elif tree.form is not None:
            form = self._in_place(tree.name, tree.form, attr)
        return m.SignatureArgument(name, called, form, self._default(tree, attr))

    def _default(self, tree: s.Taken, attr: m.Attr | None) -> m.AttrDefault:
        if tree.default is None:
            return None
        if attr is None or attr.has_default or attr.payload is not None:
            message = f"'{tree.name.name}' takes no default here: only an attribute without one does"
            self.report.add("S034", message, tree.default.span)
            return None
        wrong = why_wrong(tree.default, attr)
        if wrong is not None:
            self.report.add("S031", f"expected {wrong}", tree.default.span)
            return None
        return literal(tree.default, attr)

    def _elements(self, name: s.Ident, form: s.Elements, attr: m.Attr | None) -> m.Elements | None:
        layout = None if attr is None or attr.layout is None else self.arguments.attr(attr.layout)
        if attr is None or layout is None or attr.kind != "int" or len(attr.shape) != 1:
            message = f"'{name.name}' is not a list of integers in the order of a layout"
            self.report.add("S034", message, form.span)
            return None
        order = layout.values[0] if layout.values else ""
        letters = [ident.name for ident in form.letters]
        for ident in form.letters:
            if len(ident.name) != 1 or ident.name not in order:
                self.report.unknown("dimension", ident.name, ident.span, order)
            elif letters.count(ident.name) > 1:
                self.report.add("S034", f"'{ident.name}' is named twice", ident.span)
        if len(letters) >= len(order):
            self.report.add("S034", f"these are all elements of '{name.name}'", form.span)
        fill, (low, high) = number(form.fill), bounds(attr)
        if isinstance(fill, bool) or not isinstance(fill, int) or not low <= fill <= high:
            self.report.add("S031", f"expected a value of '{name.name}'", form.fill.span)
            return None
        return m.Elements("".join(letters), fill)

    def _in_place(self, name: s.Ident, form: s.InPlace, attr: m.Attr | None) -> m.InPlace | None:
        if attr is None or attr.kind != "enum" or attr.payload is not None:
            message = f"'{name.name}' is not an enumeration in whose place a list could be given"
            self.report.add("S034", message, form.span)
            return None
        if form.word.name not in attr.values:
            self.report.unknown(f"word of {name.name}", form.word.name, form.word.span, attr.values)
        payload = self.arguments.attr(form.payload.name)
        lists = [a.name for a in self.arguments.attrs if a.kind == "int" and a.shape and a.optional]
        if payload is None or payload.name not in lists:
            self.report.unknown("list that may be absent", form.payload.name, form.payload.span, lists)
        return m.InPlace(form.word.name, form.payload.name)


# Several together -----------------------------------------------------------------------------------


def check_together(
    report: Report, arguments: Arguments, decls: Sequence[s.SignatureDecl], built: Sequence[m.Signature]
) -> None:
    """Note signatures with a missing or duplicate label, other leading inputs, or no distinguishing value."""
    if any(a.counter for a in arguments.attrs):
        report.add("S034", "an op that counts a size has one signature", decls[1].span)
    labels: list[str] = []
    in_place = True
    for decl, signature in zip(decls, built, strict=True):
        if decl.label is None:
            help = 'write signature "version 2" (...)'
            report.add("S034", "each of several signatures has a label", decl.span, help)
        elif signature.label in labels:
            report.add("S034", f"the label '{signature.label}' is given twice", decl.label.span)
        labels.append(signature.label)
        in_place &= _check_inputs(report, arguments, decl, built[0], signature)
    called = {c: a.name for signature in built for a in signature.arguments for c in a.called}
    for decl, signature in zip(decls, built, strict=True):
        for tree, taken in zip(decl.arguments, signature.arguments, strict=True):
            if tree.called is not None and any(called[c] != taken.name for c in taken.called):
                message = f"'{tree.called.name}' is another argument in another signature"
                report.add("S034", message, tree.called.span)
    for (_, first), (decl, second) in itertools.combinations(
        list(zip(decls, built, strict=True)) if in_place else [], 2
    ):
        _check_told_apart(report, arguments, first, second, decl)


def common(signatures: Sequence[m.Signature]) -> int:
    """Return the number of leading positions in which all signatures have the same argument."""
    columns = itertools.takewhile(lambda names: len(set(names)) == 1, zip(*(s.names for s in signatures), strict=False))
    return sum(1 for _ in columns)


def _check_inputs(
    report: Report, arguments: Arguments, decl: s.SignatureDecl, own: m.Signature, signature: m.Signature
) -> bool:
    """Note inputs in other positions than in the op's own signature; return False if there are any."""
    inputs = {i.name for i in arguments.inputs}
    reach = max((i + 1 for i, name in enumerate(own.names) if name in inputs), default=0)
    if signature.names[:reach] != own.names[:reach]:
        first = ", ".join(own.names[:reach])
        report.add("S034", "the inputs stand in the same places in all signatures", decl.span, f"begin with {first}")
    return signature.names[:reach] == own.names[:reach]


def _check_told_apart(
    report: Report, arguments: Arguments, first: m.Signature, second: m.Signature, decl: s.SignatureDecl
) -> None:
    """Note the first position in which no value distinguishes two signatures."""
    if first.arguments == second.arguments:
        report.add("S034", f"this has the arguments of '{first.label}'", decl.span)
        return
    for a in first.arguments:
        b = next((b for b in second.arguments if b.name == a.name), a)
        if None not in (a.default, b.default) and a.default != b.default:
            report.add("S034", f"'{a.name}' has another default in '{first.label}'", decl.span)
            return
        if None not in (a.form, b.form) and a.form != b.form:
            report.add("S034", f"'{a.name}' has another form in '{first.label}'", decl.span)
            return
    for a, b, tree in zip(first.arguments, second.arguments, decl.arguments, strict=False):
        if a.name == b.name:
            continue
        of_a, of_b = values_of(arguments, a), values_of(arguments, b)
        if of_a <= of_b or of_b <= of_a:
            message = f"nothing tells '{b.name}' from '{a.name}', which stands here in '{first.label}'"
            report.add("S034", message, tree.span, f"both take {min(of_a & of_b)}")
            return
        if not of_a & of_b and not (_may_lack(arguments, a) or _may_lack(arguments, b)):
            return


def _may_lack(arguments: Arguments, argument: m.SignatureArgument) -> bool:
    return argument.name in arguments.optional or argument.default is not None


def values_of(arguments: Arguments, argument: m.SignatureArgument) -> frozenset[str]:
    """Return the values that a caller may give for an argument of a signature, as names of values.

    A text that is a word does not count as "any text": a word takes precedence over a name.
    """
    if any(i.name == argument.name for i in arguments.inputs):
        return frozenset({"a tensor"})
    attr = arguments.attr(argument.name)
    return frozenset({"any text"} if attr is None else _values(arguments, attr, argument.form))


def _values(arguments: Arguments, attr: m.Attr, form: m.Elements | m.InPlace | None) -> Iterator[str]:
    in_place = (form.word, form.payload) if isinstance(form, m.InPlace) else attr.payload
    if attr.kind == "bool":
        yield "true and false"
    elif attr.kind in ("enum", "layout"):
        yield from (f"'{w}'" for w in attr.values if in_place is None or w != in_place[0])
    elif not attr.shape:
        yield from ("an integer", "a number") if attr.kind == "float" else ("an integer",)
    else:
        yield f"a list of {prod(attr.shape)}"
        yield from ["an empty list"] if attr.optional else []
    if in_place is not None and (payload := arguments.attr(in_place[1])) is not None:
        yield f"a list of {payload.shape[0]}"
    if isinstance(form, m.Elements):
        yield from ("an integer", "a list of 1", f"a list of {len(form.letters)}")
