"""Plans: a call reduced to its kernel and arrays once its arguments are checked; and the user's handle (`Prepared`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_int64
from typing import TypeAlias, cast

from opgen.diagnostics import CheckFailed
from opgen.diagnostics.calls import ArgumentMemoryError, ArgumentTypeError, ArgumentValueError, CallMemoryError
from opgen.diagnostics.describe import describe, tensor
from opgen.dtypes import DTYPES
from opgen.runtime.call.call import Call, Launch, Typed
from opgen.runtime.call.checks import Checks
from opgen.runtime.call.interruptible import LONG, run_interruptibly
from opgen.runtime.call.recording import Callee
from opgen.runtime.call.tensors import READABLE, Array, as_out, check_out, contiguous, native
from opgen.runtime.call.views import arrays, learn
from opgen.runtime.kernels import launcher
from opgen.runtime.kernels.launcher import Launcher, Slot, make
from opgen.runtime.memory.address import address
from opgen.runtime.memory.blocks import LARGE, teach
from opgen.runtime.memory.buffers import empty_of, numpy_dtype
from opgen.runtime.memory.foreign import others
from opgen.runtime.memory.lending import for_caller, lent
from opgen.runtime.native.launch_ir import UNREAD

Out: TypeAlias = "Sequence[object] | None"
"""The caller's `out`, one object for each result."""

WRITEABLE = 0x400
"""The bit of `ndarray.flags.num` that means writeable."""


class Plan:
    """A kernel and its arrays: `tensors` are the call's, some of which the kernel reads, and `results`."""

    __slots__ = (
        "_attributes",
        "_generation",
        "_is_short",
        "_launch",
        "_launcher",
        "_op",
        "_reads",
        "results",
        "tensors",
    )

    def __init__(self, op: str, call: Call, launch: Launch) -> None:
        teach()
        names = list(call.tensors)
        self._op = op
        self._launch = launch
        self._attributes = {**call.words, **call.attributes}
        self._reads = tuple(names.index(n) for n in launch.reads)
        self._launcher: Launcher = _never
        self._generation = -1
        self._is_short = False  # until a run shows that it is
        self.tensors = tuple(Typed(n, t.shape, native(cast("Array", t).dtype)) for n, t in call.tensors.items())
        self.results = tuple(Typed(r.name, r.shape, numpy_dtype(DTYPES[r.dtype])) for r in call.results)

    def run(self, arrays: Sequence[Array], results: Sequence[Array]) -> None:
        """Run on arrays that fit.

        Raises CallMemoryError if temporary buffers do not fit in memory, ArgumentValueError if elements of an argument
        are invalid subscripts; then nothing was written.
        """
        addresses: list[c_int64 | int] = [*(address(arrays[i]) for i in self._reads), *(address(r) for r in results)]
        try:
            if launcher.held():
                self._record(addresses)
            elif self._is_short:
                self._launch.run(addresses)
            else:
                self._run_first(addresses, (arrays, results))
        except CheckFailed as failed:
            if self._launch.refused is None:
                raise
            raise self._launch.refused(failed) from None
        except MemoryError as error:
            raise CallMemoryError(f"{self._op}: not enough memory for temporary results") from error

    @property
    def specialized(self) -> bool:
        """True if the kernel is for the sizes of the call."""
        from opgen.runtime.kernels.kernel import BoundKernel

        return isinstance(self._launch.run, BoundKernel) and self._launch.run.specialized

    def _run_first(self, addresses: list[c_int64 | int], held: object) -> None:
        """Run so that Ctrl-C ends the wait; later runs take the short way, unless this one took long.

        `held` are the arrays at the addresses: the run may outlast the call.
        """
        from opgen.runtime.kernels.kernel import Launchable

        def run(_: object = held) -> None:
            self._launch.run(addresses)

        if isinstance(self._launch.run, Launchable):
            self._launch.run.reserve()
        self._is_short = run_interruptibly(run) < LONG
        if self._is_short:
            self._generation = -1

    def _record(self, addresses: list[c_int64 | int]) -> None:
        """Run, and record the call if a block of this context records."""
        from opgen.runtime.call.record import CallRun, recording
        from opgen.runtime.kernels.kernel import Launchable

        run, calls = self._launch.run, recording()
        if calls is None or not isinstance(run, Launchable):
            run(addresses)
            return
        seconds, kernels = run.timed(self._op, addresses)
        calls.add(CallRun(self._op, self.tensors, self._attributes, self.results, "cpu", seconds, kernels))

    def new(self, given: tuple[Array, ...], out: Out) -> tuple[Array, ...]:
        """Return memory for the results: the caller's where it can be used, else new."""
        count = len(self.results)
        if out is None:
            return tuple(self._empty(r) for r in self.results)
        if len(out) != count:
            raise ArgumentTypeError(self._op, "out", f"{count} numpy arrays", describe(out))
        found: list[Array] = []
        for r, o in zip(self.results, out, strict=True):
            target = None if o is None else as_out(self._op, o)
            found.append(
                self._empty(r) if target is None else check_out(self._op, target, r.shape, r.dtype, (*given, *found))
            )
        return tuple(found)

    def _empty(self, result: Typed) -> Array:
        try:
            return empty_of(result.shape, result.dtype)
        except (MemoryError, ValueError, OverflowError) as error:
            expected = "a result that fits into memory"
            raise ArgumentMemoryError(self._op, result.name, expected, str(result)) from error

    def readable(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Return the tensors as kernels read them: those that they cannot read in place are copied."""
        return tuple(self._readable(t.name, a) for t, a in zip(self.tensors, arrays, strict=True))

    def _readable(self, name: str, a: Array) -> Array:
        try:
            return contiguous(a)
        except (MemoryError, ValueError) as error:
            expected = "a tensor whose contiguous copy fits into memory"
            raise ArgumentMemoryError(self._op, name, expected, tensor(a)) from error

    def key(self, arrays: Sequence[Array], rest: bytes) -> tuple[object, ...]:
        """Return the key of a call with arrays of this layout (`opgen.runtime.call.operator.fingerprint`)."""
        return (*(part for t, a in zip(self.tensors, arrays, strict=True) for part in (a.dtype, t.shape)), rest)

    def on(self, arrays: tuple[Array, ...], out: Out) -> tuple[Array, ...]:
        """Return the results for arrays that fit: by the short way if that covers the call."""
        if len(self.results) == 1:
            result = self.launcher()(*arrays, None if out is None else out[0])
            if result is not None:
                return (result,)
        elif (found := self.several(arrays, out)) is not None:
            return found
        results = self.new(arrays, out)
        self.run(arrays, results)
        return results

    def launcher(self) -> Launcher:
        """Return the short way of running the plan, for the current number of threads."""
        from opgen.runtime import threads

        if self._generation != threads.generation():
            self._generation = threads.generation()
            self._launcher = self._made()
        return self._launcher

    def _made(self) -> Launcher:
        from opgen.runtime.kernels.kernel import Launchable

        kernel = self._launch.run
        if not self._is_short or not isinstance(kernel, Launchable):
            return _never
        found = make(kernel, self._slots(kernel.first), len(self.tensors))
        if found is None:
            return _never
        return self._reusing(found) if len(self.results) == 1 and self.results[0].nbytes >= LARGE else found

    def _reusing(self, launcher: Launcher) -> Launcher:
        """Return a launcher that puts new results in reused memory (`opgen.runtime.memory.blocks`)."""

        def launch(*given: object) -> Array | None:
            *tensors, out = given
            return launcher(*tensors, self._empty(self.results[0]) if out is None else out)

        return launch

    def several(self, tensors: tuple[object, ...], out: Out) -> tuple[Array, ...] | None:
        """Return the results of an op that has several, by the short way; None if that does not cover the call."""
        count = len(self.results)
        wanted = (None,) * count if out is None else tuple(out)
        if len(tensors) != len(self.tensors) or len(wanted) != count:
            return None
        try:
            given = [self._empty(r) if o is None else o for r, o in zip(self.results, wanted, strict=True)]
        except ArgumentMemoryError:
            return None
        found = self.launcher()(*tensors, *given)
        return None if found is None else cast("tuple[Array, ...]", tuple(given))

    def _slots(self, start: int) -> tuple[Slot, ...]:
        """Return every array of a call; the first one's address is the kernel's word `start`."""
        words = {position: start + k for k, position in enumerate(self._reads)}
        first = start + len(self._reads)
        return (
            *(Slot(t.dtype, t.shape, READABLE, words.get(k, UNREAD)) for k, t in enumerate(self.tensors)),
            *(Slot(r.dtype, r.shape, READABLE | WRITEABLE, first + k) for k, r in enumerate(self.results)),
        )


def _never(*_: object) -> Array | None:
    """Return None: the launcher of a plan that has none."""
    return None


class _Handle:
    """Base of the handles of ops with one result and with several."""

    operator: Callee
    """The operator of the calls."""
    call: Call
    """The checked call, its tensors without memory."""

    def __init__(self, op: str, plan: Plan) -> None:
        self._op = op
        self._plan = plan
        self._launch = plan.launcher()
        self.again: tuple[Callable[..., object], tuple[object, ...]] | None = None
        """A function that makes the handle in another process, and its arguments; None if that is impossible."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        if self.again is None:
            raise TypeError(f"a prepared call of {self._op} cannot be pickled: prepare it where it is called")
        return self.again

    @property
    def tensors(self) -> tuple[Typed, ...]:
        """The inputs of a call, in this order: each with its name, shape and dtype."""
        return self._plan.tensors

    @property
    def results(self) -> tuple[Typed, ...]:
        """The results of a call: each with its name, shape and dtype."""
        return self._plan.results

    @property
    def specialized(self) -> bool:
        """True if the kernel of the call is for its sizes."""
        return self._plan.specialized

    def __repr__(self) -> str:
        taken = ", ".join(f"{t.name} {t}" for t in self.tensors)
        return f"<{self._op} of {taken}: {', '.join(f'{r.name} {r}' for r in self.results)}>"

    def _checked(self, tensors: tuple[object, ...], out: Out) -> tuple[Array, ...]:
        """Run a call that the launcher does not cover, or not now: all arrays are checked."""
        given = self._arrays(tensors)
        read = self._plan.readable(given)
        results = self._plan.new(given, out)
        self._plan.run(read, results)
        self._launch = self._plan.launcher()
        for t in (*tensors, *(out or ())):
            learn(t)
        return for_caller(results, out, bool(others(tensors)))

    def _arrays(self, tensors: tuple[object, ...]) -> tuple[Array, ...]:
        wanted = self.tensors
        if len(tensors) != len(wanted):
            expected = f"{len(wanted)} ({', '.join(t.name for t in wanted)})"
            raise ArgumentTypeError(self._op, "tensors", expected, str(len(tensors)))
        check = Checks(self._op)
        found = tuple(
            cast("Array", check.typed(t.name, value, t.dtype.name)) for t, value in zip(wanted, tensors, strict=True)
        )
        for t, a in zip(wanted, found, strict=True):
            if a.shape != t.shape:
                raise ArgumentValueError(self._op, t.name, f"{t}, as prepared", tensor(a))
        return found


class Prepared(_Handle):
    """A call of an op with its attributes, and the types and shapes of its tensors, fixed: only the tensors are given.

    It runs on the CPU.  Arrays that do not fit raise as a call of the op does; those that are not C-contiguous are
    copied.  Many threads may call it at once.
    """

    def __call__(self, *tensors: object, out: Array | None = None) -> Array:
        """Return the result for other tensors of the same types and shapes, written to `out` if that is given."""
        result = self._launch(*tensors, out)
        if result is not None:
            return result
        if (seen := arrays((*tensors, out))) is not None and (result := self._launch(*seen)) is not None:
            return lent(result) if out is None else out
        return self._checked(tensors, None if out is None else (out,))[0]


class PreparedSeveral(_Handle):
    """`Prepared` for an op with several results."""

    def __call__(self, *tensors: object, out: Sequence[Array] | None = None) -> tuple[Array, ...]:
        """Return the results for other tensors of the same types and shapes, written to `out` if that is given."""
        if out is not None and not isinstance(out, list | tuple):
            raise ArgumentTypeError(self._op, "out", "a tuple of numpy arrays", describe(out))
        found = self._plan.several(tensors, out)
        if found is not None:
            return found
        seen, seen_out = arrays(tensors), None if out is None else arrays(tuple(out))
        if seen is not None or seen_out is not None:
            found = self._plan.several(tensors if seen is None else seen, out if seen_out is None else seen_out)
        return self._checked(tensors, out) if found is None else for_caller(found, out, seen is not None)
