"""Calls of an op on CUDA devices: with tensors on a device, in place; with numpy arrays, copied for the caller.

The checks are those of every call, and so are their messages.  Devices differ in this:

* Tensors on a device stay there, and the result is a `DeviceArray` on it, or the device array given as `out`.  All
  tensors are on one device, C-contiguous; numpy arrays and lists are accepted beside them only if they hold one number
  (no dimensions).
* The work is on the device's default stream.  A tensor's owner may name another stream: the work starts when the
  contents are made.  The call returns when the work is done if an owner could not wait for it otherwise (a tensor by
  DLPack, or with another stream); else the stream orders it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from opgen.diagnostics.calls import ArgumentMemoryError, ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.describe import describe, tensor
from opgen.diagnostics.devices import DeviceMemoryError
from opgen.dtypes import DTYPES
from opgen.runtime.call.call import Call, Result, Typed, call_key
from opgen.runtime.call.operator import PLANS
from opgen.runtime.call.plan import Out
from opgen.runtime.call.tensors import Array, check_out, contiguous
from opgen.runtime.devices import cuda_driver
from opgen.runtime.devices.arrays import DeviceArray, check_in_place
from opgen.runtime.devices.borrowed import DeviceTensor, Loans, is_device_array
from opgen.runtime.devices.cuda_driver import Device
from opgen.runtime.devices.device import CudaKernel
from opgen.runtime.devices.host import Scalar
from opgen.runtime.kernels import launcher
from opgen.runtime.memory.buffers import numpy_dtype


@dataclass(frozen=True, slots=True)
class DeviceLaunch:
    """A kernel on a device, the tensors that it reads, and the values of its open parameters."""

    kernel: CudaKernel
    reads: tuple[str, ...]
    parameters: Mapping[str, Scalar]


Resolve = Callable[[Call, Device], DeviceLaunch]


class DeviceCalls:
    """The calls of one op on devices; `resolve` finds its kernels, each kept by its call."""

    def __init__(self, op: str, resolve: Resolve) -> None:
        self.op = op
        self._resolve = resolve
        self._plans: dict[tuple[int, bytes], DeviceLaunch] = {}

    def in_place(self, call: Call, out: Out, loans: Loans) -> tuple[DeviceArray, ...]:
        """Run a checked call with at least one tensor on a device."""
        lent = {name: t for name, t in call.tensors.items() if isinstance(t, DeviceTensor)}
        device = self._device_of(lent)
        loans.wait = functools.partial(_finish, device)
        arrays = {name: self._beside(name, t, lent, device) for name, t in call.tensors.items()}
        with device.current():
            for name, t in lent.items():
                check_in_place(self.op, name, t, device, written=False)
            written = self._results(call, out, tuple(lent.values()), device, loans)
            launch = self._launch(call, device)
            names = [b.name for b in launch.kernel.program.kernel.outputs]
            reads = {name: arrays[name] for name in launch.reads}
            with _recorded(self.op, call, launch):
                launch.kernel(reads, launch.parameters, out={n: w.memory for n, w in zip(names, written, strict=True)})
            return tuple(w.result for w in written)

    def copied(self, call: Call, out: Out, device: Device) -> tuple[Array, ...]:
        """Run a checked call on a device with tensors in this machine's memory; the results are copied back there."""
        given = tuple(cast("Array", a) for a in call.tensors.values())
        targets = self._host_results(call, out, given)
        launch = self._launch(call, device)
        reads = {name: contiguous(cast("Array", call.tensors[name])) for name in launch.reads}
        with device.current(), _recorded(self.op, call, launch):
            found = tuple(cast("Array", a) for a in launch.kernel(reads, launch.parameters).values())
        if targets is None:
            return found
        for target, a in zip(targets, found, strict=True):
            target[...] = a
        return targets

    def forget(self) -> None:
        """Drop all plans, and with them the kernels that nothing else refers to."""
        self._plans.clear()

    def _launch(self, call: Call, device: Device) -> DeviceLaunch:
        key = (device.ordinal, call_key(call))
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            found = self._plans[key] = self._resolve(call, device)
        return found

    def _device_of(self, lent: Mapping[str, DeviceTensor]) -> Device:
        """Return the device of a call: that of the first tensor whose device is known (an empty one's need not be)."""
        for t in lent.values():
            ordinal = t.ordinal
            if ordinal is None and t.nbytes:
                first = cuda_driver.device(0)
                with first.current():
                    ordinal = first.owner(t.address)
            if ordinal is not None:
                return cuda_driver.device(ordinal)
        return cuda_driver.device(0)

    def _beside(
        self, argument: str, t: Array | DeviceTensor, lent: Mapping[str, DeviceTensor], device: Device
    ) -> Array | DeviceTensor:
        """Return a tensor of a call with tensors on a device: on it too, or a single number."""
        if isinstance(t, DeviceTensor):
            return t
        if t.ndim:
            where = f"a tensor on device {device.ordinal} like '{next(iter(lent))}' (opgen.to_device copies one there)"
            raise ArgumentTypeError(self.op, argument, where, f"{tensor(t)} in this machine's memory")
        return contiguous(t)

    def _outs(self, call: Call, out: Out) -> Sequence[object]:
        if out is None:
            return (None,) * len(call.results)
        if len(out) != len(call.results):
            raise ArgumentTypeError(self.op, "out", f"{len(call.results)} device arrays", describe(out))
        return out

    def _results(
        self, call: Call, out: Out, inputs: tuple[DeviceTensor, ...], device: Device, loans: Loans
    ) -> tuple[_Written, ...]:
        """Return device memory for the results.  The caller's is checked first, so that a wrong one costs nothing."""
        apart, written = inputs, []
        for result, target in zip(call.results, self._outs(call, out), strict=True):
            memory = None if target is None else self._borrowed(result, target, apart, device, loans)
            apart = apart if memory is None else (*apart, memory)
            written.append((result, target, memory))
        return tuple(
            _Written(made := self._made(result, device), made) if memory is None else _Written(memory, target)
            for result, target, memory in written
        )

    def _made(self, result: Result, device: Device) -> DeviceArray:
        try:
            return DeviceArray(device, result.shape, DTYPES[result.dtype])
        except DeviceMemoryError as error:
            expected = f"a result that fits into the memory of device {device.ordinal}"
            raise ArgumentMemoryError(self.op, result.name, expected, f"{result.dtype}{list(result.shape)}") from error

    def _borrowed(
        self, result: Result, out: object, apart: tuple[DeviceTensor, ...], device: Device, loans: Loans
    ) -> DeviceTensor:
        """Return the caller's memory for a result, if it can be used."""
        if not is_device_array(out):
            expected = f"a device array, because the inputs are on device {device.ordinal}"
            raise ArgumentTypeError(self.op, "out", expected, describe(out))
        found = loans.take(self.op, "out", out)
        expected = f"{result.dtype}{list(result.shape)}"
        if found.dtype != numpy_dtype(DTYPES[result.dtype]):
            raise ArgumentTypeError(self.op, "out", expected, tensor(found))
        if found.shape != result.shape:
            raise ArgumentValueError(self.op, "out", expected, tensor(found))
        check_in_place(self.op, "out", found, device, written=True)
        if any(found.overlaps(t) for t in apart):
            raise ArgumentValueError(
                self.op, "out", "memory that no input or other result uses", "an array that overlaps one of them"
            )
        return found

    def _host_results(self, call: Call, out: Out, inputs: tuple[Array, ...]) -> tuple[Array, ...] | None:
        """Return the caller's arrays for the results, if they can be used; None if new ones are needed."""
        if out is None:
            return None
        found: list[Array] = []
        for result, target in zip(call.results, self._outs(call, out), strict=True):
            dtype = numpy_dtype(DTYPES[result.dtype])
            found.append(check_out(self.op, target, result.shape, dtype, (*inputs, *found)))
        return tuple(found)


@contextmanager
def _recorded(op: str, call: Call, launch: DeviceLaunch) -> Iterator[None]:
    """Record the run of a kernel in the block, and wait for it, if a block of this context records."""
    from opgen.runtime.call.record import CallRun, recording

    calls = recording() if launcher.held() else None
    if calls is None:
        yield
        return
    from opgen.runtime.kernels.ran import KernelRun

    device, name = launch.kernel.device, launch.kernel.program.kernel.name
    device.synchronize()
    begin = time.perf_counter()
    yield
    device.synchronize()
    seconds = time.perf_counter() - begin
    specialized = all(p.dtype.is_float for p in launch.kernel.program.kernel.parameters)
    run = KernelRun(op, name, launch.kernel.code_hash, None, specialized, True, 1, seconds)
    tensors = tuple(Typed(n, t.shape, t.dtype) for n, t in call.tensors.items())
    results = tuple(Typed(r.name, r.shape, numpy_dtype(DTYPES[r.dtype])) for r in call.results)
    attributes = {**call.words, **call.attributes}
    calls.add(CallRun(op, tensors, attributes, results, f"cuda:{device.ordinal}", seconds, (run,)))


def _finish(device: Device) -> None:
    """Wait for all work on the default stream."""
    with device.current():
        device.synchronize()


@dataclass(frozen=True)
class _Written:
    """Memory that a result is written to, and the object returned for it: a `DeviceArray`, or the caller's `out`."""

    memory: DeviceArray | DeviceTensor
    returned: object

    @property
    def result(self) -> DeviceArray:
        return cast("DeviceArray", self.returned)
