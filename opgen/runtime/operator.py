"""What a generated module calls to run an op: one `Operator` each, with the plans of the calls it has seen.

A call goes through three stages, each remembered by the next:

    arguments  --check-->  Call  --resolve-->  Plan  --run-->  results

* *check* is generated code: it makes plain values of the arguments and shapes of the results, or raises.
* *resolve* finds the kernel for the call's types and sizes (`opgen.runtime.specialize`).
* *run* allocates the results and calls the kernel.

A call with tensors on a CUDA device, or inside `opgen.device("cuda")`, is checked each time and then handed to what
runs calls on devices (`opgen.runtime.device_calls`).

A call like an earlier one goes straight to its plan.  Like means: arrays of the same types and shapes that a kernel can
read where they lie, and attributes that are equal and of the same plain Python types (`fingerprint`); whatever else a
caller writes is checked each time.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from opgen.dtypes import DTYPES
from opgen.runtime.address import address
from opgen.runtime.buffers import empty_of, numpy_dtype
from opgen.runtime.describe import describe, tensor
from opgen.runtime.devices.borrowed import Loan, Loans, is_device_array
from opgen.runtime.errors import ArgumentMemoryError, ArgumentTypeError, ArgumentValueError
from opgen.runtime.placement import chosen, chosen_device
from opgen.runtime.tensors import READABLE, Array, Given, check_out, contiguous

if TYPE_CHECKING:
    from opgen.runtime.devices.cuda_driver import Device

PLANS = 4096
"""How many plans an operator remembers; when there are more it forgets all and starts again."""

_Plain: TypeAlias = "tuple[int | float | str | None, ...]"
Value: TypeAlias = "int | float | bool | tuple[int, ...] | tuple[float, ...]"


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a call: its name, its shape in the caller's order of dimensions, and its scalar type."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose arguments fit together, as a generated check returns it.

    `tensors` are the inputs that are tensors, by name and in order; `types` the scalar type of each type variable;
    `words` the
    values of enumerations and layouts; `attributes` all other attributes, lists flat and in the caller's order;
    `integers` the dimensions and named integers of the op.
    """

    tensors: Mapping[str, Given]
    types: Mapping[str, str]
    words: Mapping[str, str]
    attributes: Mapping[str, Value]
    integers: Mapping[str, int]
    results: tuple[Result, ...]


Check: TypeAlias = Callable[..., Call]
"""A generated check: takes the op's tensors, then all its other arguments in the order of its signature."""


Run: TypeAlias = "Callable[[list[c_int64 | int]], None]"
"""Takes the addresses of the tensors that a kernel reads, then those of its results."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel ready to run, and the names of the tensors that it reads, in order."""

    run: Run
    reads: tuple[str, ...]


Resolve: TypeAlias = Callable[[Call], Launch]

Out: TypeAlias = "Sequence[object] | None"
"""What the caller gave as `out`, one thing for each result."""


class Elsewhere(Protocol):
    """What runs checked calls on devices; the results are arrays there, or copied from there."""

    def in_place(self, call: Call, out: Out, loans: Loans) -> tuple[object, ...]:
        """Run a call some of whose tensors lie on a device."""

    def copied(self, call: Call, out: Out, device: Device) -> tuple[object, ...]:
        """Run a call whose tensors are arrays of this machine's on a device."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """`reads` are positions among the op's tensors."""

    run: Run
    reads: tuple[int, ...]
    results: tuple[tuple[Result, np.dtype[Any]], ...]


class Operator:
    """One op of a generated module.  `check` is its generated check, `resolve` finds its kernels.

    `elsewhere` gives, when it is first needed, what runs its calls on devices; without it they are refused.
    """

    def __init__(
        self, name: str, check: Check, resolve: Resolve, elsewhere: Callable[[], Elsewhere] | None = None
    ) -> None:
        self.name = name
        self._elsewhere = elsewhere
        self._check = check
        self._resolve = resolve
        self._plans: dict[object, _Plan] = {}

    def __call__(self, tensors: tuple[object, ...], rest: tuple[object, ...], out: object) -> Array:
        """Run an op that has one result."""
        plan = self._plans.get(fingerprint(tensors, rest))
        if plan is None or chosen() is not None:
            return self._first(tensors, rest, None if out is None else (out,))[0]
        arrays = cast("tuple[Array, ...]", tensors)
        result = self._result(plan, 0, out, arrays)
        plan.run([*[address(arrays[i]) for i in plan.reads], address(result)])
        return result

    def several(self, tensors: tuple[object, ...], rest: tuple[object, ...], out: object) -> tuple[Array, ...]:
        """Run an op that has several results; `out` is as long a list or tuple of arrays, or None."""
        if out is not None and not isinstance(out, list | tuple):
            raise ArgumentTypeError(self.name, "out", "a tuple of numpy arrays", describe(out))
        return self._first(tensors, rest, out)

    def _first(self, tensors: tuple[object, ...], rest: tuple[object, ...], out: Out) -> tuple[Array, ...]:
        """Run a call that is not known, or not known to be: checked in full."""
        if self._elsewhere is not None and any(map(is_device_array, tensors)):
            return self._in_place(self._elsewhere(), tensors, rest, out)
        call = self._checked(tensors, rest)
        if self._elsewhere is not None and (device := chosen_device()) is not None:
            return cast("tuple[Array, ...]", self._elsewhere().copied(call, out, device))
        plan = self._plan(call)
        given = tuple(cast("Array", a) for a in call.tensors.values())
        results = self._results(plan, out, given)
        arrays = tuple(self._readable(name, a) for name, a in zip(call.tensors, given, strict=True))
        key = fingerprint(tensors, rest)
        if key is not None and _is_plain(rest) and all(a is b for a, b in zip(arrays, given, strict=True)):
            self._remember(key, plan)
        plan.run([*(address(arrays[i]) for i in plan.reads), *(address(r) for r in results)])
        return results

    def _in_place(
        self, elsewhere: Elsewhere, tensors: tuple[object, ...], rest: tuple[object, ...], out: Out
    ) -> tuple[Array, ...]:
        """Run a call with tensors on a device, which are borrowed as they are checked."""
        with Loans() as loans:
            call = self._checked(tuple(Loan(t, loans) if is_device_array(t) else t for t in tensors), rest)
            return cast("tuple[Array, ...]", elsewhere.in_place(call, out, loans))

    def _checked(self, tensors: tuple[object, ...], rest: tuple[object, ...]) -> Call:
        try:
            call = self._check(*tensors, *rest)
        except ZeroDivisionError as error:
            expected = "sizes and attributes that the requirements can be computed from"
            raise ArgumentValueError(self.name, "name", expected, "a division by zero") from error
        for name, value in call.integers.items():
            if abs(value) >= 2**63:
                raise ArgumentValueError(self.name, name, "an integer of 64 bits", str(value))
        return call

    def _readable(self, name: str, a: Array) -> Array:
        try:
            return contiguous(a)
        except (MemoryError, ValueError) as error:
            expected = "a tensor whose contiguous copy fits into memory"
            raise ArgumentMemoryError(self.name, name, expected, tensor(a)) from error

    def _plan(self, call: Call) -> _Plan:
        """The plan of a checked call."""
        key = call_key(call)
        plan = self._plans.get(key)
        if plan is None:
            launch = self._resolve(call)
            names = list(call.tensors)
            results = tuple((r, numpy_dtype(DTYPES[r.dtype])) for r in call.results)
            plan = _Plan(launch.run, tuple(names.index(n) for n in launch.reads), results)
            self._remember(key, plan)
        return plan

    def _remember(self, key: object, plan: _Plan) -> None:
        if len(self._plans) >= PLANS:
            self._plans.clear()
        self._plans[key] = plan

    def _results(self, plan: _Plan, out: Out, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        count = len(plan.results)
        if out is None:
            return tuple(self._result(plan, i, None, inputs) for i in range(count))
        if len(out) != count:
            raise ArgumentTypeError(self.name, "out", f"{count} numpy arrays", describe(out))
        return tuple(
            self._result(plan, i, out[i], (*inputs, *(o for o in out[:i] if isinstance(o, np.ndarray))))
            for i in range(count)
        )

    def _result(self, plan: _Plan, position: int, out: object, apart: tuple[Array, ...]) -> Array:
        """Memory for a result: new, or the caller's if it can be used."""
        result, dtype = plan.results[position]
        if out is not None:
            return check_out(self.name, out, result.shape, dtype, apart)
        try:
            return empty_of(result.shape, dtype)
        except (MemoryError, ValueError, OverflowError) as error:
            given = f"{result.dtype}{list(result.shape)}"
            raise ArgumentMemoryError(self.name, result.name, "a result that fits into memory", given) from error


def call_key(call: Call) -> bytes:
    """What a checked call's plan is remembered by: everything that decides which kernel it gets."""
    groups = (call.types, call.words, call.attributes, call.integers)
    shapes = tuple(a.shape for a in call.tensors.values())
    return marshal.dumps((shapes, *(tuple(g.items()) for g in groups)), 2)


def fingerprint(tensors: tuple[object, ...], rest: tuple[object, ...]) -> tuple[object, ...] | None:
    """What a call is remembered by: equal for two calls only if one's plan serves the other.

    None if a tensor is not an array that kernels read in place, or an attribute is no plain Python value.  The
    attributes are
    serialised, because `==` does not tell 1 from 1.0 and True.  (Version 2 of the format writes equal values alike; an
    array
    would be written as the bytes it holds, which is why only calls with plain attributes are ever remembered.)
    """
    key: list[object] = []
    for a in tensors:
        if type(a) is not np.ndarray or a.flags.num & READABLE != READABLE:
            return None
        key += (a.dtype, a.shape)
    try:
        return (*key, marshal.dumps(cast("_Plain", rest), 2))
    except ValueError:
        return None


def _is_plain(value: object) -> bool:
    """Whether a value is made of Python's own ints, floats, bools, strings, None, lists and tuples only."""
    if type(value) in (list, tuple):
        return all(_is_plain(v) for v in cast("Sequence[object]", value))
    return value is None or type(value) in (int, float, bool, str)
