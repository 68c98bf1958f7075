"""Plans: which calls share one, what is checked each time, and results given by the caller; with a made-up kernel."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from opgen.diagnostics.calls import ArgumentMemoryError, ArgumentTypeError, ArgumentValueError
from opgen.runtime.call import operator as room
from opgen.runtime.call.checks import Checks
from opgen.runtime.call.operator import Call, Launch, Operator, fingerprint

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@dataclass
class Fake:
    """An op that returns nothing in particular, and counts what it is asked."""

    results: int = 1
    checks: int = 0
    resolved: list[Call] = field(default_factory=list)
    runs: list[list[Any]] = field(default_factory=list)

    def check(self, x: object, n: object, scale: object) -> Call:
        self.checks += 1
        check = Checks("Fake")
        number = check.integer("n", n)
        factor = check.number("scale", scale, default=1.0)
        name, (array,) = check.common_type(("float32", "float64"), {"x": x})
        shape = check.rank("x", array, 2)
        results = tuple(check.result(f"y{i}", shape, None, name, "x", shape) for i in range(self.results))
        return Call({"x": array}, {"T": name}, {}, {"n": number, "scale": factor}, {"rows": shape[0]}, results)

    def resolve(self, call: Call) -> Launch:
        self.resolved.append(call)
        return Launch(self.runs.append, ("x",))

    def operator(self) -> Operator:
        return Operator("Fake", self.check, self.resolve)


def test_an_equal_call_is_not_checked_again() -> None:
    fake = Fake()
    run = fake.operator()
    first = run((X,), (1, None), None)
    second = run((X.copy(),), (1, None), None)
    assert (fake.checks, len(fake.resolved), len(fake.runs)) == (1, 1, 2)
    assert first.shape == second.shape == (2, 3)
    assert first.dtype == second.dtype == np.float32
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize("other", [True, 1.0, np.float64(1.0), np.array(1.0), "1", None, (1,)])
def test_what_only_seems_equal_is_checked(other: object) -> None:
    """1 == 1.0 == True, and the bytes of np.int64(1) are those of np.float64(5e-324)."""
    fake = Fake()
    run = fake.operator()
    run((X,), (1, None), None)
    with pytest.raises(ArgumentTypeError, match="argument 'n'"):
        run((X,), (other, None), None)
    assert fake.checks == 2


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [nested(50), nested(100_000), [[0] * 2000] * 3, (nested(3000),)])
def test_what_nests_without_end_is_no_attribute(value: Any) -> None:
    fake = Fake()
    run = fake.operator()
    begin = time.perf_counter()
    for _ in range(2):
        with pytest.raises((ArgumentTypeError, ArgumentValueError)):
            run((X,), (value, None), None)
    assert time.perf_counter() - begin < 1


def test_bytes_of_numbers_are_not_confused() -> None:
    fake = Fake()
    run = fake.operator()
    run((X,), (np.int64(1), None), None)
    with pytest.raises(ArgumentTypeError):
        run((X,), (np.float64(5e-324), None), None)


def test_zeros_of_both_signs_have_plans_of_their_own() -> None:
    fake = Fake()
    run = fake.operator()
    for scale in (0.0, -0.0, np.float64(0.0), np.float64(-0.0)):
        run((X,), (1, scale), None)
    assert [str(c.attributes["scale"]) for c in fake.resolved] == ["0.0", "-0.0"]


@pytest.mark.parametrize(
    "given",
    [X[::-1], X.astype(">f4"), X.tolist(), np.broadcast_to(X[0], (2, 3)), X.view(np.matrix), np.asfortranarray(X)],
    ids=["negative", "swapped", "list", "broadcast", "subclass", "fortran"],
)
def test_other_tensors_share_the_plan_and_are_copied(given: Any) -> None:
    fake = Fake()
    run = fake.operator()
    run((X,), (1, None), None)
    run((given,), (1, None), None)
    run((given,), (1, None), None)
    assert (len(fake.resolved), len(fake.runs)) == (1, 3)
    assert fake.checks == 3


def test_types_and_shapes_have_plans_of_their_own() -> None:
    fake = Fake()
    run = fake.operator()
    for x in (X, X.astype(np.float64), X.reshape(3, 2), X):
        run((x,), (1, None), None)
    assert len(fake.resolved) == 3


def test_out() -> None:
    fake = Fake()
    run = fake.operator()
    out = np.empty((2, 3), np.float32)
    for _ in range(2):
        assert run((X,), (1, None), out) is out
    assert fake.checks == 1
    for _ in range(2):
        with pytest.raises(ArgumentValueError, match="memory that no input or other result uses"):
            run((X,), (1, None), X)
    with pytest.raises(ArgumentTypeError, match="float32"):
        run((X,), (1, None), np.empty((2, 3)))


def test_a_wrong_out_is_found_before_anything_runs() -> None:
    fake = Fake()
    with pytest.raises(ArgumentValueError):
        fake.operator()((X,), (1, None), np.empty((3, 2), np.float32))
    assert fake.runs == []


def test_several_results() -> None:
    fake = Fake(results=2)
    run = fake.operator()
    one, two = run.several((X,), (1, None), None)
    assert one.shape == two.shape == (2, 3)
    a, b = np.empty((2, 3), np.float32), np.empty((2, 3), np.float32)
    found = run.several((X,), (1, None), (a, b))
    assert found[0] is a
    assert found[1] is b
    with pytest.raises(ArgumentValueError, match="memory that no input or other result uses"):
        run.several((X,), (1, None), (a, a))
    with pytest.raises(ArgumentTypeError, match="expected 2 numpy arrays"):
        run.several((X,), (1, None), (a,))
    with pytest.raises(ArgumentTypeError, match="a tuple of numpy arrays"):
        run.several((X,), (1, None), a)


def test_results_beyond_memory() -> None:
    fake = Fake()
    for rows in (2**25, 2**28):
        large = np.lib.stride_tricks.as_strided(X, (rows, 2**30), (0, 0))
        with pytest.raises(ArgumentMemoryError, match="fits into memory"):
            fake.operator()((large,), (1, None), None)
    assert fake.runs == []


def test_a_division_by_zero_in_a_check_is_the_callers() -> None:
    def check(x: object) -> Call:
        return Call({}, {}, {}, {}, {"q": 1 // 0}, ())

    with pytest.raises(ArgumentValueError, match="expected sizes and attributes that the requirements can be computed"):
        Operator("Fake", check, Fake().resolve)((X,), (), None)


def test_plans_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PLANS", 8)
    fake = Fake()
    run = fake.operator()
    for n in range(50):
        run((X,), (n, None), None)
        assert len(run._plans) <= 8
    assert len(fake.runs) == 50


def test_many_threads() -> None:
    fake = Fake()
    run = fake.operator()
    errors: list[Exception] = []

    def work(seed: int) -> None:
        try:
            for n in range(200):
                assert run((X,), ((n * seed) % 17, None), None).shape == (2, 3)
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(s,)) for s in range(1, 7)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert errors == []
    assert len(fake.runs) == 1200


def test_fingerprints() -> None:
    assert fingerprint((X,), ([1, 2], "a", None)) == fingerprint((X.copy(),), ([1, 2], "a", None))
    assert fingerprint((X.T,), ()) is None
    assert fingerprint((X.tolist(),), ()) is None
    assert fingerprint((X,), (object(),)) is None
    different = [(1,), (1.0,), (True,), ("1",), ([1],), ((1,),), (None,), (2**40,), (b"1",)]
    assert len({fingerprint((X,), d) for d in different}) == len(different)


def test_arrays_that_change_while_their_kernel_is_built_are_looked_at_again() -> None:
    """Another thread may resize an array: the kernel for its former size would read beyond its end."""
    fake = Fake()
    x = np.ones((4, 3), np.float32)

    def resolve(call: Call) -> Launch:
        if len(fake.resolved) < 2:
            x.resize((2, 1 + len(fake.resolved)), refcheck=False)
        return fake.resolve(call)

    run = Operator("Fake", fake.check, resolve)
    assert run((x,), (1, None), None).shape == (2, 2)
    assert [c.results[0].shape for c in fake.resolved] == [(4, 3), (2, 1), (2, 2)]
    assert len(fake.runs) == 1


def test_arrays_that_never_stay_the_same() -> None:
    fake = Fake()
    x = np.ones((1, 1), np.float32)

    def resolve(call: Call) -> Launch:
        x.resize((1, x.size + 1), refcheck=False)
        return fake.resolve(call)

    with pytest.raises(ArgumentValueError, match="expected tensors that stay as they are during a call"):
        Operator("Fake", fake.check, resolve)((x,), (1, None), None)
    assert fake.runs == []
