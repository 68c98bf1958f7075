"""Random signatures of random ops: a call that fits one gives what that says, or is refused because two fit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from opgen.bindings.python.live import module_of
from opgen.diagnostics import DiagnosticError
from opgen.diagnostics.calls import ArgumentError
from opgen.spec.loading import load_text

X = np.ones(3, np.float32)


@dataclass(frozen=True)
class Kind:
    """A kind of attribute: its type, its default, values of it, and what is one."""

    type: str
    default: str
    values: tuple[Any, ...]
    fits: Callable[[Any], bool]


def _words(*words: str) -> Kind:
    return Kind(f"enum {{{', '.join(words)}}}", words[0], words, lambda v: v in words)


def _list(count: int) -> Kind:
    values = ([2] * count, tuple(range(count)))
    return Kind(f"int[{count}]", f"{[0] * count}", values, lambda v: isinstance(v, list | tuple) and len(v) == count)


KINDS = (
    _words("A", "B"),
    _words("B", "C"),
    _words("D", "E"),
    _list(2),
    _list(3),
    Kind("bool", "false", (True, False), lambda v: isinstance(v, bool)),
    Kind("int", "0", (1, 7), lambda v: isinstance(v, int) and not isinstance(v, bool)),
)
TEXT = Kind("", "", ("layer", "other"), lambda v: isinstance(v, str) and v not in "ABCDE")


class Seen(Exception):
    """The arguments that an op's check gets."""


def _random_op(rng: random.Random) -> tuple[str, dict[str, Kind], list[list[str]]]:
    kinds = {f"a{i}": rng.choice(KINDS) for i in range(rng.randint(2, 4))}
    needed = {n for n in kinds if rng.random() < 0.2}
    orders = [["x", *sorted(kinds, key=lambda n: n not in needed), "name"]]
    for _ in range(rng.randint(1, 2)):
        rest = [n for n in [*kinds, "name"] if n in needed or rng.random() < 0.7]
        rng.shuffle(rest)
        orders.append(["x", *sorted(rest, key=lambda n: n not in needed)])
    attrs = "".join(
        f"  attr {n}: {k.type}{'' if n in needed else f' = {k.default}'} compatibility\n" for n, k in kinds.items()
    )
    signatures = "".join(f'  signature "{i}" ({", ".join(order)})\n' for i, order in enumerate(orders))
    tensors = "  type T in {float32}\n  input x: T[n]\n  output y: T[n]\n  y[i] = x[i]\n"
    text = f"op Mixed {{\n{signatures}{attrs}{tensors}}}\n"
    return text, kinds | {"name": TEXT}, orders


def _seen(*given: Any) -> Any:
    raise Seen(given)


def _module(text: str) -> tuple[Any, set[str]]:
    """The module of a text; or None, and the codes of its mistakes."""
    try:
        return module_of(load_text(text, "mixed.op"), "mixed.op"), set()
    except DiagnosticError as error:
        return None, {d.code for d in error.diagnostics}


def _readings(
    orders: list[list[str]], kinds: dict[str, Kind], given: tuple[Any, ...], named: dict[str, Any]
) -> list[dict[str, Any]]:
    """What each signature makes of a call: the arguments that are given, by name; a name does not count."""
    found: list[dict[str, Any]] = []
    for order in orders:
        by_position = dict(zip(order[1:], given, strict=False))
        both = {n: v for n, v in (by_position | named).items() if v is not None}
        fits = len(given) < len(order) and set(named) <= set(order) and not set(named) & set(by_position)
        if fits and all(kinds[n].fits(v) for n, v in both.items()):
            reading = {n: v for n, v in both.items() if n != "name"}
            found += [reading] if reading not in found else []
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_call_is_read_by_the_signature_that_it_fits(seed: int) -> None:
    """The reproduction is the seed."""
    rng = random.Random(seed)
    text, kinds, orders = _random_op(rng)
    print(text)
    made, codes = _module(text)
    assert codes <= {"S034"}
    if made is None:
        return
    own = [n for n in orders[0] if n != "x"]
    made._library.operators["Mixed"]._check = _seen
    needed = {n for n in own if f" attr {n}:" in text and f"{n}: {kinds[n].type} compat" in text}
    for _ in range(200):
        order = rng.choice(orders)[1:]
        count = rng.randint(0, len(order))
        value = {n: rng.choice([*kinds[n].values, *([] if n in needed else [None])]) for n in order}
        given = tuple(value[n] for n in order[:count])
        named = {n: value[n] for n in order[count:] if value[n] is not None}
        readings = _readings(orders, kinds, given, named)
        print(given, named)
        with pytest.raises((Seen, ArgumentError)) as caught:
            made.mixed(X, *given, **named)
        if len(readings) > 1:
            assert "since two signatures fit" in str(caught.value)
        else:
            found = dict(zip(own, caught.value.args[0][1:], strict=True))
            assert [{n: v for n, v in found.items() if v is not None and n != "name"}] == readings
