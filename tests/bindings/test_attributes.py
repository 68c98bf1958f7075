"""What a caller may write for an attribute, and the messages for what not."""

from __future__ import annotations

import enum
import itertools
import pickle
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentError, ArgumentTypeError, ArgumentValueError
from opgen.runtime.call.arguments import AttributeChecks
from opgen.runtime.call.tensors import TensorChecks

check = AttributeChecks("Op")


class Level(enum.IntEnum):
    TWO = 2


@pytest.mark.parametrize(
    "given",
    [[1, 2, 2, 1], (1, 2, 2, 1), np.array([1, 2, 2, 1]), np.array([1, 2, 2, 1], np.uint8), [np.int64(1), 2, 2, 1],
     [1, Level.TWO, Level.TWO, 1], [1, np.array(2), 2, 1]],
)  # fmt: skip
def test_lists_of_integers(given: object) -> None:
    found = check.integers("strides", given, 4, minimum=1)
    assert found == (1, 2, 2, 1)
    assert all(type(n) is int for n in found)


def test_none_is_the_default() -> None:
    assert check.integers("a", None, 2, default=(1, 1)) == (1, 1)
    assert check.integer("a", None, default=3) == 3
    assert check.number("a", None, default=0.5) == 0.5
    assert check.numbers("a", None, 2, default=(0.5, 1.0)) == (0.5, 1.0)
    assert check.boolean("a", None, default=False) is False
    assert check.word("a", None, ("X", "Y"), default="Y") == "Y"


def test_plain_values() -> None:
    assert check.integer("a", np.int32(5)) == 5
    assert check.number("a", 2) == 2.0
    assert check.number("a", np.float32(0.5)) == 0.5
    assert check.numbers("a", [1, 0.5], 2) == (1.0, 0.5)
    assert check.boolean("a", np.True_) is True
    assert check.word("a", "X", ("X", "Y")) == "X"
    assert check.word("a", b"X", ("X", "Y")) == "X"
    assert check.word("a", np.str_("X"), ("X", "Y")) == "X"
    assert check.integers("a", [], 8, optional=True) == ()


INTEGERS = "expected a list of 2, each a 32-bit integer"
WORDS = "expected one of SAME, VALID"
ROWS = "expected one of X, Y or a list of integers: a list of 4, each a 32-bit integer"
REFUSED: list[tuple[Callable[[], object], type[ArgumentError], str]] = [
    (lambda: check.integers("a", [1, 1.0], 2), ArgumentTypeError, f"{INTEGERS}, given [1, 1.0]"),
    (lambda: check.integers("a", [1, 1.5], 2), ArgumentTypeError, f"{INTEGERS}, given [1, 1.5]"),
    (lambda: check.integers("a", [True, 1], 2), ArgumentTypeError, f"{INTEGERS}, given [True, 1]"),
    (lambda: check.integers("a", np.ones(2), 2), ArgumentTypeError, f"{INTEGERS}, given [1.0, 1.0]"),
    (lambda: check.integers("a", ["1", "1"], 2), ArgumentTypeError, f"{INTEGERS}, given ['1', '1']"),
    (lambda: check.integers("a", "ab", 2), ArgumentTypeError, f"{INTEGERS}, given 'ab'"),
    (lambda: check.integers("a", 1, 2), ArgumentTypeError, f"{INTEGERS}, given 1"),
    (lambda: check.integers("a", None, 2), ArgumentTypeError, f"{INTEGERS}, given nothing"),
    (lambda: check.integers("a", [1], 2), ArgumentValueError, f"{INTEGERS}, given [1]"),
    (lambda: check.integers("a", [], 2), ArgumentValueError, f"{INTEGERS}, given []"),
    (lambda: check.integers("a", [1], 2, optional=True), ArgumentValueError, f"{INTEGERS}, or an empty one, given [1]"),
    (lambda: check.integers("a", [0, 1], 2, minimum=1), ArgumentValueError, f"{INTEGERS} >= 1, given [0, 1]"),
    (lambda: check.integers("a", [9, 1], 2, minimum=0, maximum=8), ArgumentValueError,
     "expected a list of 2, each an integer >= 0 and <= 8, given [9, 1]"),
    (lambda: check.integers("a", [2**31, 1], 2), ArgumentValueError, f"{INTEGERS}, given [2147483648, 1]"),
    (lambda: check.integer("a", 1.0), ArgumentTypeError, "expected a 32-bit integer, given 1.0"),
    (lambda: check.integer("a", True), ArgumentTypeError, "expected a 32-bit integer, given True"),
    (lambda: check.integer("a", 2**31, minimum=1), ArgumentValueError,
     "expected a 32-bit integer >= 1, given 2147483648"),
    (lambda: check.integer("a", 2**63, minimum=2**40), ArgumentValueError,
     "expected a 64-bit integer >= 1099511627776, given 9223372036854775808"),
    (lambda: check.integer("a", 0, minimum=1), ArgumentValueError, "expected a 32-bit integer >= 1, given 0"),
    (lambda: check.number("a", "x"), ArgumentTypeError, "expected a number, given 'x'"),
    (lambda: check.number("a", -0.5, minimum=0), ArgumentValueError, "expected a number >= 0, given -0.5"),
    (lambda: check.number("a", 10**400), ArgumentTypeError, "expected a number, given an integer of 1329 bits"),
    (lambda: check.boolean("a", 1), ArgumentTypeError, "expected true or false, given 1"),
    (lambda: check.word("a", "same", ("SAME", "VALID")), ArgumentValueError,
     f"{WORDS} (did you mean 'SAME'?), given 'same'"),
    (lambda: check.word("a", "FULL", ("SAME", "VALID")), ArgumentValueError, f"{WORDS}, given 'FULL'"),
    (lambda: check.word("a", 1, ("SAME", "VALID")), ArgumentTypeError, f"{WORDS}, given 1"),
    (lambda: check.word("a", None, ("SAME", "VALID")), ArgumentTypeError, f"{WORDS}, given nothing"),
    (lambda: check.word_or_list("a", [[0, 0], [1]], ("X", "Y"), "LIST", (2, 2)), ArgumentValueError,
     f"{ROWS}, given [[0, 0], [1]]"),
    (lambda: check.word_or_list("a", [[0, 0], [1, 0.5]], ("X", "Y"), "LIST", (2, 2)), ArgumentTypeError,
     f"{ROWS}, given [[0, 0], [1, 0.5]]"),
    (lambda: check.word_or_list("a", [0, 0, 1, 1], ("X", "Y"), "LIST", (2, 2)), ArgumentValueError,
     f"{ROWS}, given [0, 0, 1, 1]"),
    (lambda: check.word_or_list("a", "LIST", ("X", "Y"), "LIST", (2, 2)), ArgumentValueError,
     "expected a list in place of 'LIST', given 'LIST'"),
    (lambda: check.word_or_list("a", "x", ("X", "Y"), "LIST", (2, 2)), ArgumentValueError,
     "expected one of X, Y or a list of integers (did you mean 'X'?), given 'x'"),
    (lambda: check.alias("a", [1], "b", [1]), ArgumentValueError, "expected only one of 'a' and 'b', given both"),
    (lambda: check.name(3), ArgumentTypeError, "expected a string or None, given 3"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED, ids=[m for _, _, m in REFUSED])
def test_refused(call: Callable[[], object], kind: type[ArgumentError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert isinstance(error, UserError)
    assert str(error) == f"Op: argument '{error.argument}': {message}"
    expected, given = message.removeprefix("expected ").rsplit(", given ", 1)
    assert (error.op, error.expected) == ("Op", expected)
    assert error.given == given


def test_a_list_in_place_of_a_word() -> None:
    assert check.word_or_list("a", "X", ("X",), "LIST", (2, 2)) == ("X", ())
    assert check.word_or_list("a", [[0, 1], (2, 3)], ("X",), "LIST", (2, 2), minimum=0) == ("LIST", (0, 1, 2, 3))
    assert check.word_or_list("a", np.array([[0, 1], [2, 3]]), ("X",), "LIST", (2, 2)) == ("LIST", (0, 1, 2, 3))


class Endless(Sequence[int]):
    """A sequence that does not end, whatever it says of its length."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, _: Any) -> Any:
        return 1


class Broken(Endless):
    def __getitem__(self, _: Any) -> Any:
        raise ZeroDivisionError


LONG = 10**7
LONG_LISTS: list[object] = [[1] * LONG, (1,) * LONG, range(LONG), np.ones(LONG, np.int64), Endless(), ["a"] * LONG]


@pytest.mark.parametrize("given", LONG_LISTS, ids=lambda g: type(g).__name__)
@pytest.mark.parametrize("rows", [1, 2])
def test_of_a_long_list_the_length_is_enough(given: object, rows: int) -> None:
    """Its elements are not converted, which would take seconds and gigabytes."""
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(ArgumentError):
        check.integers("a", given, 4)
    with pytest.raises(ArgumentError):
        check.numbers("a", given, 4, optional=True)
    with pytest.raises(ArgumentError):
        check.word_or_list("a", given, ("X", "Y"), "Y", (4, 2)[:rows])
    with pytest.raises(ArgumentError):
        check.word_or_list("a", [given, given], ("X", "Y"), "Y", (2, 2))
    with pytest.raises(ArgumentError):
        TensorChecks("Op").vector("a", given, (4,))
    seconds, (_, peak) = time.process_time() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 1
    assert peak < 1 << 20


def test_what_only_looks_like_a_list() -> None:
    for given in (Broken(), (n for n in [1, 2]), itertools.count(), {1, 2}, {1: 2}, iter([1, 2])):
        with pytest.raises(ArgumentTypeError):
            check.integers("a", given, 2)
        with pytest.raises(ArgumentTypeError):
            TensorChecks("Op").typed("a", given, "float32")


def test_an_alias_speaks_for_its_argument() -> None:
    assert check.alias("a", None, "b", [2]) == [2]
    assert check.alias("a", [1], "b", None) == [1]
    assert check.alias("a", None, "b", None) is None


def test_errors_travel_between_processes() -> None:
    error = ArgumentValueError("Op", "a", "X", "Y")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), type(copy), copy.argument) == (str(error), ArgumentValueError, "a")


def test_kinds_of_errors() -> None:
    assert issubclass(ArgumentValueError, ValueError)
    assert issubclass(ArgumentTypeError, TypeError)


def test_shown_values_run_no_code_of_theirs() -> None:
    class Loud:
        def __repr__(self) -> str:
            raise RuntimeError("must not be called")

    with pytest.raises(ArgumentTypeError, match="given an object of type Loud"):
        check.integers("a", Loud(), 2)
    with pytest.raises(ArgumentTypeError, match=r"given \[an object of type Loud, 1\]"):
        check.integers("a", [Loud(), 1], 2)


def test_long_values_are_shown_short() -> None:
    with pytest.raises(ArgumentValueError) as caught:
        check.integers("a", list(range(1000)), 4)
    assert len(caught.value.given) == 80
    assert caught.value.given.startswith("[0, 1, 2, 3, ")
    assert caught.value.given.endswith("...")
