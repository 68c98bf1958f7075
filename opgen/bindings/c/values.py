"""Possible values of an attribute, in the words of the messages.

They are those of `opgen.spec.call.arguments`, from which the calls of all bindings get theirs.
"""

from __future__ import annotations

from math import prod

from opgen.spec.model.bounds import expected_scalar
from opgen.spec.model.model import Attr, OpSpec


def plain_words(attr: Attr) -> tuple[str, ...]:
    """Return the words that a caller may write (the one that means a list is excluded)."""
    return tuple(v for v in attr.values if attr.payload is None or v != attr.payload[0])


def elements(attr: Attr) -> int:
    """Return the number of numbers in a list."""
    return prod(attr.shape)


def expected(attr: Attr) -> str:
    """Return the text that completes "expected ..." for a wrong value."""
    if attr.payload is not None:
        return f"one of {', '.join(plain_words(attr))} or a list of integers"
    each = expected_scalar(attr)
    if not attr.shape:
        return each
    return f"a list of {elements(attr)}, each {each}" + (", or an empty one" if attr.optional else "")


def blamed(op: OpSpec, attr: Attr) -> tuple[str, str]:
    """Return the argument and the words for a wrong value of an attribute.

    A list that may replace a word goes by the name of that word's attribute.
    """
    if attr.carried_by is None:
        return attr.name, expected(attr)
    chooser = op.attr(attr.carried_by)
    return chooser.name, f"{expected(chooser)}: {expected_list(attr)}"


def expected_list(attr: Attr) -> str:
    """Return the same for a list that may not be empty."""
    return f"a list of {elements(attr)}, each {expected_scalar(attr)}"
