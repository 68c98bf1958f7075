"""Attributes as C: the fields that hold them, their defaults, and the statements that check them."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.bindings.c.expressions import integer, number
from opgen.bindings.c.names import spellings
from opgen.bindings.c.scope import OpScope
from opgen.bindings.c.text import string
from opgen.bindings.c.values import blamed, elements, expected, plain_words
from opgen.spec.model.bounds import bounds
from opgen.spec.model.model import Attr


def call_fields(scope: OpScope, attr: Attr) -> Iterator[str]:
    """Yield the fields of a call for an attribute; lists in logical order."""
    name = scope.field_name(attr.name)
    if attr.shape:
        yield f"{'double' if attr.kind == 'float' else 'int64_t'} {name}[{elements(attr)}];"
        yield f"int32_t {scope.lengths[attr.name]};"
    elif attr.kind in ("enum", "layout"):
        yield f"int32_t {name};"
    else:
        yield f"{ {'int': 'int64_t', 'float': 'double', 'bool': 'bool'}[attr.kind] } {name};"


def defaults(scope: OpScope) -> Iterator[str]:
    """Yield the assignments of `..._attrs_default`: lists and words are NULL, which means the default."""
    for attr in scope.op.attrs:
        for name in spellings(attr):
            field = f"attrs->{scope.public.fields[name]}"
            if attr.shape:
                yield f"{field} = NULL;"
                yield f"attrs->{scope.public.lengths[name]} = 0;"
            elif attr.kind in ("enum", "layout"):
                given = isinstance(attr.default, str) and name == attr.name
                yield f"{field} = {string(str(attr.default)) if given else 'NULL'};"
                yield f"attrs->{scope.public.lengths[name]} = -1;"
            elif attr.has_default and attr.default is not None:
                yield f"{field} = {_scalar(attr)};"
            else:
                yield f"{field} = { {'int': 'INT64_MIN', 'float': 'NAN', 'bool': 'INT64_MIN'}[attr.kind] };"


def _scalar(attr: Attr) -> str:
    if attr.kind == "bool":
        return "1" if attr.default else "0"
    if attr.kind == "float" and isinstance(attr.default, int | float):
        return number(float(attr.default))
    return integer(int(attr.default)) if isinstance(attr.default, int | float) else "0"


def ends(scope: OpScope) -> Iterator[str]:
    """Yield the sizes that a struct of attributes may have had: where each attribute but the last ends."""
    names = scope.public
    for attr in scope.op.attrs[1:]:
        yield f"offsetof({names.attrs}, {names.fields[spellings(attr)[0]]})"


# Tables ---------------------------------------------------------------------------------------------


def tables(scope: OpScope) -> Iterator[str]:
    """Yield the constants that the checks of an op's attributes use."""
    for attr in scope.op.attrs:
        if attr.kind in ("enum", "layout"):
            names = ", ".join(scope.constant(attr.name, w) for w in attr.values)
            yield f"enum {{ {names} }};"
            words = ", ".join(string(w) for w in attr.values)
            yield f"static const char *const {_words(scope, attr)}[] = {{{words}}};"
        if attr.kind == "layout":
            order = attr.values[0]
            rows = ", ".join("{" + ", ".join(str(w.index(x)) for x in order) + "}" for w in attr.values)
            yield f"static const int32_t {scope.axes(attr.name)}[][{len(order)}] = {{{rows}}};"
        if attr.shape:
            yield from _list_table(scope, attr)


def _words(scope: OpScope, attr: Attr) -> str:
    return f"{scope.static}_{attr.name}_words"


def _list_table(scope: OpScope, attr: Attr) -> Iterator[str]:
    floating = attr.kind == "float"
    name = f"{scope.static}_{attr.name}"
    standard, count = "NULL", -1
    default = attr.default if isinstance(attr.default, tuple) else None
    if default:
        values = ", ".join(number(float(v)) if floating else integer(int(v)) for v in default)
        yield f"static const {'double' if floating else 'int64_t'} {name}_default[] = {{{values}}};"
        standard, count = f"{name}_default", len(default)
    elif attr.optional or attr.has_default or attr.carried_by is not None:
        count = 0
    low, high = bounds(attr)
    limits = f"{number(low)}, {number(high)}" if floating else f"{integer(int(low))}, {integer(int(high))}"
    argument, text = blamed(scope.op, attr)
    row = elements(attr) // attr.shape[0] if len(attr.shape) > 1 and attr.carried_by is not None else 0
    optional = attr.optional and attr.carried_by is None
    rule = f"{string(argument)}, {string(text)}, {elements(attr)}, {row}, {'true' if optional else 'false'}"
    kind = f"{scope.library.helper}_{'numbers' if floating else 'integers'}"
    yield f"static const {kind} {name}_rule = {{\n    {rule}, {limits}, {standard}, {count}}};"


# Checks ---------------------------------------------------------------------------------------------


def checks(scope: OpScope) -> Iterator[str]:
    """Yield the statements that check all attributes, in the spec's order, and copy them to the call."""
    for attr in scope.op.attrs:
        if attr.carried_by is None:
            yield from _check(scope, attr)
    for attr in scope.op.attrs:
        if attr.shape and attr.layout is not None:
            width = elements(attr) // attr.shape[0]
            order = f"{scope.axes(attr.layout)}[{scope.field(attr.layout)}]"
            kind = "numbers" if attr.kind == "float" else "integers"
            call = f"{scope.library.helper}_order_{kind}({scope.field(attr.name)}, {attr.shape[0]}, {width}, {order});"
            yield call


def _fail(condition: str) -> list[str]:
    return [f"if (!{condition}) {{", "    return false;", "}"]


def _check(scope: OpScope, attr: Attr) -> Iterator[str]:
    if attr.shape:
        yield from _check_list(scope, attr)
    elif attr.kind in ("enum", "layout"):
        yield from _check_word(scope, attr)
    else:
        yield from _check_scalar(scope, attr)


def _given(scope: OpScope, name: str) -> tuple[str, str]:
    return f"attrs->{scope.public.fields[name]}", f"attrs->{scope.public.lengths[name]}"


def _check_list(scope: OpScope, attr: Attr) -> Iterator[str]:
    helper = scope.library.helper
    values, length = _given(scope, attr.name)
    if attr.alias is not None:
        other, other_length = _given(scope, attr.alias)
        names = f"{string(attr.name)}, {string(attr.alias)}"
        yield from _fail(f"{helper}_check_alias(op, {names}, {values} != NULL, {other} != NULL)")
        length = f"{other} != NULL ? {other_length} : {length}"
        values = f"{other} != NULL ? {other} : {values}"
    yield from _fail(_list_call(scope, attr, values, length))


def _list_call(scope: OpScope, attr: Attr, values: str, length: str) -> str:
    kind = "numbers" if attr.kind == "float" else "integers"
    rule = f"&{scope.static}_{attr.name}_rule"
    found = f"{scope.field(attr.name)}, &call->{scope.lengths[attr.name]}"
    return f"{scope.library.helper}_check_{kind}(op, {rule}, {values}, {length}, {found})"


def _check_word(scope: OpScope, attr: Attr) -> Iterator[str]:
    helper = scope.library.helper
    given, given_length = _given(scope, attr.name)
    standard = string(attr.default) if isinstance(attr.default, str) else "NULL"
    count = len(plain_words(attr))
    call = f"{helper}_check_word(op, {string(attr.name)}, {string(expected(attr))}, {given}, {given_length}"
    call += f", {standard}, {_words(scope, attr)}, {count}, &{scope.field(attr.name)})"
    if attr.payload is None:
        yield from _fail(call)
        return
    word, carrier = attr.payload
    carried = scope.op.attr(carrier)
    values, length = _given(scope, carrier)
    yield from _fail(
        f"{helper}_check_alias(op, {string(attr.name)}, {string(carrier)}, {given} != NULL, {values} != NULL)"
    )
    yield f"if ({values} != NULL) {{"
    yield f"    {scope.field(attr.name)} = {scope.constant(attr.name, word)};"
    yield from (f"    {line}" for line in _fail(_list_call(scope, carried, values, length)))
    yield "} else {"
    yield f"    memset({scope.field(carrier)}, 0, sizeof {scope.field(carrier)});"
    yield f"    call->{scope.lengths[carrier]} = 0;"
    instead = f"a list in place of '{word}'"
    yield f"    if ({helper}_is_word({given}, {given_length}, {string(word)})) {{"
    shown = f"{helper}_given_word({given}, {given_length})"
    yield f"        return {helper}_wrong(op, {string(attr.name)}, {string(instead)}, {shown});"
    yield "    }"
    yield from (f"    {line}" for line in _fail(call))
    yield "}"


def _check_scalar(scope: OpScope, attr: Attr) -> Iterator[str]:
    given = f"attrs->{scope.public.fields[attr.name]}"
    field = scope.field(attr.name)
    if attr.kind == "bool":
        yield f"{field} = {given} != 0;"
        if not (attr.has_default or attr.compatibility):
            yield from _fail(
                f"{scope.library.helper}_check_flag(op, {string(attr.name)}, {string(expected(attr))}, {given})"
            )
        return
    yield f"{field} = {given};"
    low, high = bounds(attr)
    limits = f"{integer(int(low))}, {integer(int(high))}" if attr.kind == "int" else f"{number(low)}, {number(high)}"
    required = "false" if attr.has_default else "true"
    name = "integer" if attr.kind == "int" else "number"
    rule = f"{string(attr.name)}, {string(expected(attr))}, {field}, {limits}, {required}"
    yield from _fail(f"{scope.library.helper}_check_{name}(op, {rule})")


def given(scope: OpScope, attr: Attr) -> str:
    """Return the caller's value of an attribute, for messages."""
    helper = scope.library.helper
    if attr.kind in ("enum", "layout"):
        word = f"{_words(scope, attr)}[{scope.field(attr.name)}]"
        if attr.payload is None:
            return f"{helper}_given_word({word}, -1)"
        carried = scope.op.attr(attr.payload[1])
        values, length = _given(scope, carried.name)
        row = elements(carried) // carried.shape[0] if len(carried.shape) > 1 else 0
        return (
            f"{values} != NULL ? {helper}_given_integers({values}, {length}, {row}) : {helper}_given_word({word}, -1)"
        )
    if attr.kind == "bool":
        return f'{scope.field(attr.name)} ? "True" : "False"'
    if not attr.shape:
        return f"{helper}_given_{'integer' if attr.kind == 'int' else 'number'}({scope.field(attr.name)})"
    kind = "numbers" if attr.kind == "float" else "integers"
    rule = f"&{scope.static}_{attr.name}_rule"
    values, length = _given(scope, attr.name)
    if attr.alias is not None:
        other, other_length = _given(scope, attr.alias)
        values, length = f"{other} != NULL ? {other} : {values}", f"{other} != NULL ? {other_length} : {length}"
    return f"{helper}_given_{kind}_or_default({rule}, {values}, {length})"
