"""The launcher: results and errors as without it, nothing leaked, and the calls that it must leave to Python."""

from __future__ import annotations

import gc
import pickle
import platform
import resource
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opgen
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.dtypes import DTYPES
from opgen.runtime import threads
from opgen.runtime.call import plan
from opgen.runtime.call.operator import Call, Launch, Operator
from opgen.runtime.call.plan import Prepared
from opgen.runtime.kernels import launcher
from opgen.runtime.memory.buffers import numpy_dtype
from tests.bindings.modules import OPS, generated

pytestmark = pytest.mark.skipif(
    platform.python_implementation() != "CPython" or sys.maxsize < 2**63 - 1, reason="CPython of 64 bits only"
)

X = np.random.default_rng(5).standard_normal((1, 5, 4, 3), np.float32)
F = np.random.default_rng(6).standard_normal((3, 3, 3, 2), np.float32)
ATTRIBUTES: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME"}

CHANGED = pytest.mark.filterwarnings("ignore:Setting the (shape|dtype) on a NumPy array:DeprecationWarning")
"""Of tests that change arrays in place, which numpy advises against and still lets callers do."""


@pytest.fixture
def op() -> Iterator[Operator]:
    """The operator of a convolution, without plans."""
    found = generated(OPS)._conv2d
    found._plans.clear()
    found._last.clear()
    yield found
    found._plans.clear()
    found._last.clear()


def call(x: Any = X, f: Any = F, **more: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = generated(OPS).conv2d(x, f, **{**ATTRIBUTES, **more})
    return found


def prepared() -> Prepared:
    found: Prepared = generated(OPS).prepare.conv2d(X, F, **ATTRIBUTES)
    return found


def test_a_repeated_call_goes_through_the_launcher(op: Operator) -> None:
    first = call()
    assert op._last == {}
    assert np.array_equal(call(), first)
    (launch,) = op._last.values()
    assert type(launch).__name__ == "builtin_function_or_method"
    found = launch(X, F, None)
    assert found is not None
    assert np.array_equal(found, first)
    assert (found.dtype, found.shape, found.flags.c_contiguous, found.flags.owndata) == (
        X.dtype,
        (1, 5, 4, 2),
        True,
        True,
    )


def test_without_it_the_results_are_the_same(op: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    call()
    short = call()
    op._plans.clear()
    op._last.clear()
    monkeypatch.setattr(plan, "make", lambda *_: None)
    call()
    assert [plan._never] == [*op._last.values()] or op._last == {}
    assert np.array_equal(call(), short)
    out = np.empty_like(short)
    assert call(out=out) is out
    assert np.array_equal(prepared()(X, F, out=out), short)


REFUSED = {
    "type": lambda: X.astype(np.float64),
    "byte order": lambda: X.astype(">f4"),
    "shape": lambda: X[:, 1:].copy(),
    "rank": lambda: X[0],
    "strides": lambda: np.asfortranarray(X),
    "misaligned": lambda: np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape),
    "subclass": lambda: X.view(np.recarray),
    "list": X.tolist,
    "None": lambda: None,
    "number": lambda: 1,
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_fit_is_left_to_python(op: Operator, kind: str) -> None:
    call()
    call()
    (launch,) = op._last.values()
    assert launch(REFUSED[kind](), F, None) is None
    assert launch(X, REFUSED[kind](), None) is None


def test_results_that_cannot_be_written_are_left_to_python(op: Operator) -> None:
    right = call()
    call()
    (launch,) = op._last.values()
    shared = np.zeros(X.size + right.size, np.float32)
    x = shared[: X.size].reshape(X.shape)
    overlapping = shared[X.size - 1 : X.size - 1 + right.size].reshape(right.shape)
    beside = shared[X.size :].reshape(right.shape)
    read_only = np.empty_like(right)
    read_only.flags.writeable = False
    for out in (overlapping, read_only, right[..., 0], right.astype(np.float64), np.asfortranarray(right), X):
        assert launch(x, F, out) is None
    assert launch(x, F, beside) is beside
    with pytest.raises(ArgumentValueError, match="memory that no input or other result uses"):
        call(x, out=overlapping)
    with pytest.raises(ArgumentValueError, match="writeable"):
        call(out=read_only)


def test_too_few_and_too_many_arguments_are_left_to_python(op: Operator) -> None:
    call()
    call()
    (launch,) = op._last.values()
    assert launch() is None
    assert launch(X, F) is None
    assert launch(X, F, None, None) is None


def test_another_number_of_threads(op: Operator) -> None:
    run, right = prepared(), call()
    before = threads.get_num_threads()
    try:
        for count in (1, 3, before):
            threads.set_num_threads(count)
            assert run._launch(X, F, None) is None
            assert np.array_equal(run(X, F), right)
            assert run._launch(X, F, None) is not None
            assert np.array_equal(call(), right)
    finally:
        threads.set_num_threads(before)


def test_nothing_is_leaked(op: Operator) -> None:
    run = prepared()
    out = run(X, F)
    bad = X.astype(np.float64)

    def counts() -> list[int]:
        return [sys.getrefcount(o) for o in (X, F, out, bad, X.dtype)]

    counts()
    before = counts()
    for _ in range(1000):
        run(X, F)
        run(X, F, out=out)
        run._launch(bad, F, None)
        run._launch(X, F, bad)
        run._launch(X, F, X)
    assert counts() == before


def test_large_results_lie_on_a_cache_line(op: Operator) -> None:
    large = np.ones((1, 40, 40, 3), np.float32)
    results = [call(large) for _ in range(40)]
    assert [r.ctypes.data % 64 for r in results] == [0] * 40
    assert all(np.array_equal(r, results[0]) for r in results)
    (launch,) = op._last.values()
    found = launch(large, F, None)
    assert found is not None
    assert (found.flags.num, found.strides) == (0x501, results[0].strides)
    fresh, base = np.empty(3), found.base
    assert sys.getrefcount(found) == sys.getrefcount(fresh)
    assert sys.getrefcount(base) == sys.getrefcount(fresh) + 1


def test_large_results_are_freed(op: Operator) -> None:
    x = np.ones((1, 400, 400, 3), np.float32)
    run = generated(OPS).prepare.conv2d(x, F, **ATTRIBUTES)
    byte, before = np.dtype(np.uint8), 0
    for n in range(600):
        run(x, F)
        if n == 100:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # a result has 1250 KiB
    counts = sys.getrefcount(byte)
    run(x, F)
    assert sys.getrefcount(byte) == counts


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_arrays_whose_types_are_other_objects(op: Operator, name: str) -> None:
    """As they are after unpickling: in other processes, from files."""
    x, f = X.astype(numpy_dtype(DTYPES[name])), F.astype(numpy_dtype(DTYPES[name]))
    right = call(x, f)
    other = [pickle.loads(pickle.dumps(a)) for a in (x, f, np.empty_like(right))]
    call(*other[:2])
    (launch,) = op._last.values()
    for given in ((x, f, None), (*other[:2], None), (x, other[1], other[2]), (*other[:2], np.empty_like(right))):
        found = launch(*given)
        assert found is not None
        assert np.array_equal(found, right)
    assert launch(x.astype(x.dtype.newbyteorder()), f, None) is None
    swapped = generated(OPS).prepare.conv2d(x.astype(x.dtype.newbyteorder()), f, **ATTRIBUTES)
    assert swapped._launch(x, f, None) is not None


def test_a_launcher_outlives_a_second_one_that_two_threads_made_at_once(op: Operator) -> None:
    call()
    call()
    (launch,) = op._last.values()
    launcher._load.cache_clear()
    gc.collect()
    found = launch(X, F, None)
    assert found is not None
    assert np.array_equal(found, call())


def test_many_threads_at_once() -> None:
    run = prepared()
    inputs = [X * k for k in range(1, 5)]
    rights = [run(x, F) for x in inputs]
    wrong: list[int] = []

    def work(k: int) -> None:
        wrong.extend(k for _ in range(500) if not np.array_equal(run(inputs[k], F), rights[k]))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert wrong == []


def test_a_layout_that_is_not_known_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launcher._layout_is_right()
    monkeypatch.setattr(launcher, "_HEADER", launcher._HEADER + 8)
    assert not launcher._layout_is_right()


def test_without_a_global_lock_there_is_no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launcher.arrays_are_known.__wrapped__()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert not launcher.arrays_are_known.__wrapped__()


# Prepared calls -------------------------------------------------------------------------------------------------------


def test_a_prepared_call() -> None:
    run = prepared()
    assert repr(run) == (
        "<Conv2D of input float32[1, 5, 4, 3], filter float32[3, 3, 3, 2]: output float32[1, 5, 4, 2]>"
    )
    assert [(t.name, t.shape) for t in run.tensors] == [("input", X.shape), ("filter", F.shape)]
    out = np.empty(run.results[0].shape, run.results[0].dtype)
    assert run(X, F, out=out) is out
    assert np.array_equal(out, call())
    assert np.array_equal(run(np.asfortranarray(X), F.astype(">f4")), out)
    assert np.array_equal(run(X.tolist(), F), out)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ((X[:, 1:], F), r"'input': expected float32\[1, 5, 4, 3\], as prepared, given float32\[1, 4, 4, 3\]"),
        ((X, F[0]), r"'filter': expected float32\[3, 3, 3, 2\], as prepared, given float32\[3, 3, 2\]"),
        ((X,), r"'tensors': expected 2 \(input, filter\), given 1"),
        ((X, F, F), r"'tensors': expected 2 \(input, filter\), given 3"),
        ((X, F.astype(np.float64)), r"'filter': expected float32, given float64\[3, 3, 3, 2\]"),
        ((X, None), r"'filter': expected a tensor, given None"),
    ],
)
def test_arrays_that_do_not_fit_a_prepared_call(tensors: tuple[Any, ...], message: str) -> None:
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match=message):
        prepared()(*tensors)


def test_preparing_checks_as_a_call_does() -> None:
    with pytest.raises(ArgumentValueError, match="did you mean 'SAME'"):
        generated(OPS).prepare.conv2d(X, F, strides=[1, 1, 1, 1], padding="SMAE")


def test_every_op_can_be_prepared() -> None:
    ops = generated(OPS)
    y = call()
    sizes = {"input_sizes": X.shape, "filter_sizes": F.shape}
    tensors = {"input": X, "filter": F, "out_backprop": y}
    for name in ("conv2d_backprop_input", "conv2d_backprop_filter_v2", "conv2d_backprop_input_v2"):
        function, prepare = getattr(ops, name), getattr(ops.prepare, name)
        names = [n for n in function.__annotations__ if n in tensors or n in sizes]
        given = {n: {**tensors, **sizes}[n] for n in names}
        run = prepare(**given, **ATTRIBUTES)
        assert [t.name for t in run.tensors] == [n for n in names if n in tensors]
        assert np.array_equal(run(*(tensors[t.name] for t in run.tensors)), function(**given, **ATTRIBUTES))
    assert {n for n in vars(ops.prepare) if not n.startswith("_")} == set(ops.__all__) - {"prepare", "raw_ops"}


TWO = '''
op Both {
  """Twice and three times."""
  type T in {float32}
  input x: T[count] """A row."""
  output two: T[count] """Twice."""
  output three: T[count] """Three times."""
  two[i] = 2 * x[i]
  three[i] = 3 * x[i]
}
'''


def test_several_results(tmp_path: Path) -> None:
    (tmp_path / "both.op").write_text(TWO)
    ops = opgen.load(tmp_path / "both.op")
    x = np.arange(5, dtype=np.float32)
    run = ops.prepare.both(x)
    for given in (x, x, x.tolist(), x[::-1]):
        for two, three in (ops.both(given), run(given)):
            assert np.array_equal(two, 2 * np.asarray(given))
            assert np.array_equal(three, 3 * np.asarray(given))
    a, b = np.empty_like(x), np.empty_like(x)
    for give in (run, ops.both):
        a[:], b[:] = 0, 0
        found = give(x, out=(a, b))
        assert (found[0] is a, found[1] is b) == (True, True)
        assert np.array_equal(a, 2 * x)
        assert np.array_equal(b, 3 * x)
        with pytest.raises(ArgumentValueError, match="memory that no input or other result uses"):
            give(x, out=(a, a))
        with pytest.raises(ArgumentTypeError, match="a tuple of numpy arrays"):
            give(x, out=a)
    for give in (run, ops.both):
        for out in ((None, b), (a, None), [None, None]):
            found = give(x, out=out)
            assert all(o is None or o is r for o, r in zip(out, found, strict=True))
            assert np.array_equal(found[0], 2 * x)
            assert np.array_equal(found[1], 3 * x)
    a[:] = 7
    for tensors, out in (((x, a), (b,)), ((), (x, a, b))):
        with pytest.raises(ArgumentTypeError, match=f"'tensors': expected 1 .x., given {len(tensors)}"):
            run(*tensors, out=out)
    for out in ((b,), (a, b, b)):
        with pytest.raises(ArgumentTypeError, match="'out': expected 2 numpy arrays"):
            ops.both(x, out=out)
    assert a.tolist() == [7] * 5


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int32"])
@pytest.mark.parametrize("batch", [0, 1, 40], ids=["empty", "small", "large"])
def test_every_type_and_size(name: str, batch: int) -> None:
    """The first call runs by the longer way, the others by the launcher."""
    dtype = numpy_dtype(DTYPES[name])
    x = np.round(8 * np.repeat(X, batch, axis=0)).astype(dtype)
    f = np.round(2 * F).astype(dtype)
    first = call(x, f)
    run = generated(OPS).prepare.conv2d(x, f, **ATTRIBUTES)
    out = np.empty_like(first)
    for found in (call(x, f), call(x, f, out=out), run(x, f), run(x, f, out=out)):
        assert (found.dtype, found.shape) == (dtype, (batch, 5, 4, 2))
        assert found.tobytes() == first.tobytes()


@CHANGED
def test_arguments_that_change_while_their_kernel_is_built(op: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another thread may change them: the plan is not remembered by what they have become."""
    x, strides, resolve = X.copy(), [1, 1, 1, 1], op._resolve
    expected = call(x.reshape(1, 4, 5, 3), strides=[1, 2, 2, 1])
    op._plans.clear()

    def changing(checked: Call) -> Launch:
        found = resolve(checked)
        x.shape = (1, 4, 5, 3)
        strides[1:3] = [2, 2]
        return found

    with monkeypatch.context() as patch:
        patch.setattr(op, "_resolve", changing)
        np.testing.assert_array_equal(call(x, strides=strides), expected)
    for _ in range(3):
        assert np.array_equal(call(x, strides=strides), expected)


@CHANGED
def test_arrays_that_change_between_calls(op: Operator) -> None:
    x, run = X.copy(), prepared()
    for give in (run, call):
        for _ in range(3):
            right = give(x, F)
        x.shape = (1, 4, 5, 3)
        if give is run:
            with pytest.raises(ArgumentValueError, match="as prepared"):
                give(x, F)
        else:
            assert give(x, F).shape == (1, 4, 5, 2)
        x.shape = X.shape
        x.dtype = np.int32
        with pytest.raises(ArgumentTypeError):
            give(x, F)
        x.dtype = np.float32
        out = np.empty_like(right)
        out.setflags(write=False)
        with pytest.raises(ArgumentValueError, match="writeable"):
            give(x, F, out=out)
        out.setflags(write=True)
        assert give(x, F, out=out) is out
        assert np.array_equal(out, right)


def test_a_masked_result_is_refused(op: Operator) -> None:
    out = np.ma.masked_array(call(), mask=True)
    for give in (call, prepared()):
        with pytest.raises(ArgumentTypeError, match="'out': expected an array without a mask"):
            give(X, F, out=out)


def test_an_empty_result_overlaps_nothing(op: Operator) -> None:
    x = X[..., :0].copy()
    f, memory = F[:, :, :0].copy(), np.zeros(100, np.float32)
    assert not call(x, f).any()
    none = generated(OPS).prepare.conv2d(X[:0], F, **ATTRIBUTES)
    weights = memory[: F.size].reshape(F.shape)
    out = np.ndarray((0, 5, 4, 2), np.float32, memory, 20)
    for _ in range(2):
        assert none(X[:0], weights, out=out) is out
