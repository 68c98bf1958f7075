"""Operators: a generated module calls one `Operator` for each op, with the plans of the calls it has seen.

A call goes through three stages, each remembered by the next:

    arguments  --check-->  Call  --resolve-->  Plan  --run-->  results

* *check* is generated code: it makes plain values of the arguments and shapes of the results, or raises.
* *resolve* finds the kernel for the call's types and sizes (`opgen.runtime.call.specialize`).
* *run* allocates the results and calls the kernel.

A call with a symbol for a tensor is not run, but handed to the symbol (`opgen.runtime.call.recording`).

A call with tensors on a CUDA device, or inside `opgen.device("cuda")`, is checked each time.  Then
`opgen.runtime.call.device_calls` runs it.

A call like an earlier one goes straight to its plan.  Calls are alike if kernels can read their arrays in place, the
arrays have the same types and shapes, and the attributes are equal and of the same plain types (`fingerprint`).  Any
other call is checked each time.  Tensors of other libraries in this machine's memory are viewed as arrays first
(`opgen.runtime.call.views`).  The last plan for some attributes is tried first, through its launcher, which checks the
arrays itself (`opgen.runtime.kernels.launcher`): no Python runs between them and the kernel.  Calls in a block that
selects algorithms (`opgen.compiler.algorithms`) have plans of their own.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from opgen.compiler.algorithms import Mode, algorithms, asked
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.describe import describe
from opgen.runtime.call.call import Call, Check, Launch, Resolve, call_key, without_memory
from opgen.runtime.call.placement import chosen, chosen_device
from opgen.runtime.call.plan import Out, Plan, Prepared, PreparedSeveral
from opgen.runtime.call.recording import stand_in, symbol_among
from opgen.runtime.call.tensors import READABLE, Array
from opgen.runtime.call.views import arrays, learn
from opgen.runtime.devices.borrowed import Loan, Loans, is_device_array
from opgen.runtime.kernels.launcher import Launcher
from opgen.runtime.memory.foreign import others
from opgen.runtime.memory.lending import for_caller, lent

if TYPE_CHECKING:
    from opgen.runtime.call.signatures import Signatures
    from opgen.runtime.devices.cuda_driver import Device
    from opgen.spec.model.model import Module

__all__ = ["PLANS", "Call", "Launch", "Operator", "fingerprint"]

PLANS = 4096
"""Number of plans that an operator keeps; beyond it, all are dropped."""

_LONGEST = 4096
"""Calls with more elements in lists are not remembered."""
_DEEPEST = 5
"""Nesting depth of lists in an attribute, with the call's own: lists of lists of numbers."""
_LOOKS = 8
"""Attempts to check a call whose tensors change while its kernel is built."""

_attributes = cast("Callable[[object, int], bytes]", marshal.dumps)
"""Function that makes a key of a call's attributes; ValueError for a value that cannot be serialised."""


H = TypeVar("H", Prepared, PreparedSeveral)
Kind: TypeAlias = "tuple[np.dtype[Any], tuple[int, ...]]"


class Elsewhere(Protocol):
    """Runner of checked calls on devices; the results are arrays there, or copied from there."""

    def in_place(self, call: Call, out: Out, loans: Loans) -> tuple[object, ...]:
        """Run a call with at least one tensor on a device."""

    def copied(self, call: Call, out: Out, device: Device) -> tuple[object, ...]:
        """Run a call with arrays of this machine's memory on a device."""


Refuse: TypeAlias = "Callable[[Call | None, tuple[object, ...], tuple[object, ...]], ArgumentValueError | None]"
"""Function of a call (None: it could not be made) and the arguments of its check; returns the error, or None."""


class Operator:
    """One op of a generated module.  `check` is its generated check, `resolve` finds its kernels.

    `elsewhere` returns, on first need, the runner of its calls on devices; without it they are refused.  `refuse`
    returns the error of a call whose integers cannot be computed.  `module` returns the op's spec.  `signatures` read
    calls of a function that takes its arguments in several orders.  `title` is the op's name in messages.
    """

    def __init__(
        self,
        name: str,
        check: Check,
        resolve: Resolve,
        elsewhere: Callable[[], Elsewhere] | None = None,
        refuse: Refuse | None = None,
        module: Callable[[], Module] | None = None,
        signatures: Signatures | None = None,
        title: str | None = None,
    ) -> None:
        self.module = module
        self.again: tuple[Callable[..., object], tuple[object, ...]] | None = None
        """A function that returns the operator in another process, and its arguments; None if that is impossible."""
        self._refuse = refuse
        self.name = name
        self._title = title or name
        self._elsewhere = elsewhere
        self._check = check
        self._resolve = resolve
        self._signatures = signatures
        self._plans: dict[object, Plan] = {}
        self._last: dict[bytes, Launcher] = {}

    def __call__(self, tensors: tuple[object, ...], rest: tuple[object, ...], out: object) -> Array:
        """Run an op that has one result."""
        try:
            launch = self._last.get(_attributes(rest, 2))
        except ValueError:
            launch = None
        if launch is not None and chosen() is None and asked() is None:
            result = launch(*tensors, out)
            if result is not None:
                return result
            if (seen := arrays((*tensors, out))) is not None and (result := launch(*seen)) is not None:
                return lent(result) if out is None else cast("Array", out)
        return self._again(tensors, rest, None if out is None else (out,))[0]

    def several(self, tensors: tuple[object, ...], rest: tuple[object, ...], out: object) -> tuple[Array, ...]:
        """Run an op that has several results; `out` is as long a list or tuple of arrays, or None."""
        if out is not None and not isinstance(out, list | tuple):
            raise ArgumentTypeError(self._title, "out", "a tuple of numpy arrays", describe(out))
        return self._again(tensors, rest, out)

    def prepare(self, tensors: tuple[object, ...], rest: tuple[object, ...]) -> Prepared:
        """Return a handle for calls like this one of an op that has one result; the tensors' contents are not read."""
        return self._prepared(Prepared, self.checked(tensors, self._in_order(rest)))

    def prepare_several(self, tensors: tuple[object, ...], rest: tuple[object, ...]) -> PreparedSeveral:
        """Return a handle for calls like this one of an op that has several results."""
        return self._prepared(PreparedSeveral, self.checked(tensors, self._in_order(rest)))

    def _prepared(self, handle: type[H], call: Call) -> H:
        """Return the handle of a checked call."""
        made = handle(self._title, self._plan(call))
        made.operator, made.call = self, without_memory(call)
        kinds = {t.name: (t.dtype, t.shape) for t in made.tensors}
        made.again = (_prepared_again, (self, handle, replace(call, tensors={}), kinds, asked()))
        return made

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        if self.again is None:
            raise TypeError(f"operator '{self.name}' cannot be pickled: it is of no generated module")
        return self.again

    def _in_order(self, written: tuple[object, ...]) -> tuple[object, ...]:
        """Return the arguments other than tensors in the op's own order, for any signature of the call."""
        return written if self._signatures is None else self._signatures.read(written)

    def _again(self, tensors: tuple[object, ...], rest: tuple[object, ...], out: Out) -> tuple[Array, ...]:
        """Run a call that is not the last one with its attributes; it may have a plan."""
        seen, seen_out = arrays(tensors), None if out is None else arrays(tuple(out))
        given = tensors if seen is None else seen
        key = fingerprint(given, rest)
        plan = None if key is None else self._plans.get((asked(), key))
        if plan is None or chosen() is not None:
            return self._first(tensors, rest, out)
        if len(plan.results) == 1 and asked() is None:
            self._last[_attributes(rest, 2)] = plan.launcher()
        results = plan.on(cast("tuple[Array, ...]", given), out if seen_out is None else seen_out)
        return for_caller(results, out, seen is not None)

    def _first(self, tensors: tuple[object, ...], written: tuple[object, ...], out: Out) -> tuple[Array, ...]:
        """Run a call that is not known, or not known to be: checked in full.

        It is remembered as it is written, and only if the attributes are still the same.  A kernel may take long to
        build, and another thread may have changed a list meanwhile.
        """
        key = _plain_key(written)
        rest = self._in_order(written)
        if (symbol := symbol_among(tensors)) is not None:
            return cast("tuple[Array, ...]", symbol.called(self, tensors, rest, out))
        if self._elsewhere is not None and any(map(is_device_array, tensors)):
            return self._in_place(self._elsewhere(), tensors, rest, out)
        if self._elsewhere is not None and (device := chosen_device()) is not None:
            call = self.checked(tensors, rest)
            return cast("tuple[Array, ...]", self._elsewhere().copied(call, out, device))
        call, plan = self._planned(tensors, rest)
        given = tuple(cast("Array", a) for a in call.tensors.values())
        results = plan.new(given, out)
        read = plan.readable(given)
        in_place = all(a is b for a, b in zip(read, given, strict=True))
        if key is not None and in_place and key == _plain_key(written):
            self._remember((asked(), plan.key(given, key)), plan)
        plan.run(read, results)
        for t in (*tensors, *(out or ())):
            learn(t)
        return for_caller(results, out, bool(others(tensors)))

    def _planned(self, tensors: tuple[object, ...], rest: tuple[object, ...]) -> tuple[Call, Plan]:
        """Return a checked call, and its plan.

        If a kernel had to be found, which may take long, everything is checked again: another thread may have changed
        an array or a list meanwhile.
        """
        before = _look(tensors)
        call = self.checked(tensors, rest)
        for _ in range(_LOOKS):
            key = (asked(), call_key(call))
            plan = self._plans.get(key)
            known = plan is not None
            plan = self._plan(call) if plan is None else plan
            if before == _look(tensors) and (known or not others(tensors)):
                return call, plan
            before = _look(tensors)
            call = self.checked(tensors, rest)
            if before == _look(tensors) and (asked(), call_key(call)) == key:
                return call, plan
        name = next(iter(call.tensors), "name")
        raise ArgumentValueError(self._title, name, "tensors that stay as they are during a call", "ones that change")

    def _in_place(
        self, elsewhere: Elsewhere, tensors: tuple[object, ...], rest: tuple[object, ...], out: Out
    ) -> tuple[Array, ...]:
        """Run a call with tensors on a device, which are borrowed during the checks."""
        with Loans() as loans:
            call = self.checked(tuple(Loan(t, loans) if is_device_array(t) else t for t in tensors), rest)
            return cast("tuple[Array, ...]", elsewhere.in_place(call, out, loans))

    def checked(self, tensors: tuple[object, ...], rest: tuple[object, ...]) -> Call:
        """Return the call, if its arguments are consistent.  Raises ArgumentError if not."""
        try:
            call = self._check(*tensors, *rest)
        except ArithmeticError as error:
            expected = "sizes and attributes that the requirements can be computed from"
            plain = ArgumentValueError(self._title, "name", expected, str(error))
            found = None if self._refuse is None else self._refuse(None, tensors, rest)
            raise plain if found is None else found from error
        if self._refuse is not None and (found := self._refuse(call, tensors, rest)) is not None:
            raise found
        for name, value in call.integers.items():
            if not -(2**63) <= value < 2**63:
                raise ArgumentValueError(self._title, name, "an integer of 64 bits", str(value))
        return call

    def _plan(self, call: Call) -> Plan:
        """Return the plan of a checked call."""
        key = (asked(), call_key(call))
        plan = self._plans.get(key)
        if plan is None:
            plan = Plan(self._title, call, self._resolve(call))
            self._remember(key, plan)
        return plan

    def forget(self) -> None:
        """Drop all plans, and with them the kernels that nothing else refers to."""
        self._plans.clear()
        self._last.clear()

    def _remember(self, key: object, plan: Plan) -> None:
        if len(self._plans) >= PLANS:
            self.forget()
        self._plans[key] = plan


def _prepared_again(
    operator: Operator, handle: type[H], call: Call, kinds: Mapping[str, Kind], which: Mode | None
) -> object:
    """Return a handle that was pickled; without its operator, the object whose calls raise the reason."""
    if not isinstance(operator, Operator):
        return operator
    tensors = {name: stand_in(dtype, shape) for name, (dtype, shape) in kinds.items()}
    with nullcontext() if which is None else algorithms(which):
        return operator._prepared(handle, replace(call, tensors=tensors))


def fingerprint(tensors: tuple[object, ...], rest: tuple[object, ...]) -> tuple[object, ...] | None:
    """Return the key of a call: equal for two calls only if one's plan serves the other.

    None if a tensor is not an array that kernels read in place, or an attribute is not a plain Python value.  The
    attributes are serialised, because `==` does not distinguish 1 from 1.0 and True.  (Version 2 of the format writes
    equal values alike.  An array would be written as the bytes it holds, so only calls with plain attributes are ever
    remembered.)
    """
    key: list[object] = []
    for a in tensors:
        if type(a) is not np.ndarray or a.flags.num & READABLE != READABLE:
            return None
        key += (a.dtype, a.shape)
    try:
        return (*key, _attributes(rest, 2))
    except ValueError:
        return None


def _plain_key(rest: tuple[object, ...]) -> bytes | None:
    """Return the key of a call's attributes; None if one is not a plain Python value."""
    return _attributes(rest, 2) if _is_plain(rest) else None


def _look(tensors: tuple[object, ...]) -> list[object]:
    """Return the parts of arrays that may change: their types and shapes."""
    return [(a.dtype, a.shape) if isinstance(a, np.ndarray) else None for a in tensors]


def _is_plain(value: object) -> bool:
    """Return True for a value made of Python's own ints, floats, bools, strings, None, lists and tuples only.

    Elements and nesting are bounded: a value that nests without end is not an attribute.
    """
    level, left = [value], _LONGEST
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for v in level:
            if type(v) in (list, tuple):
                items = cast("Sequence[object]", v)
                left -= len(items)
                if left < 0:
                    return False
                inner += items
            elif v is not None and type(v) not in (int, float, bool, str):
                return False
        if not inner:
            return True
        level = inner
    return False
