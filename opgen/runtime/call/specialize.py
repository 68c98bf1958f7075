"""From a checked call to a kernel: an op of a generated module is built on first need, for one call's sizes or for all.

Lowering gives one kernel for each *variant* of an op (scalar types, layouts, enumerations in its mathematics), generic
in sizes and attributes.  Binding its integers to the numbers of a call and simplifying gives a *specialised* kernel,
which is faster, and costs a build.  The policy is the environment variable OPGEN_SPECIALIZE:

    auto    (default) the first SPECIALIZATIONS combinations of integers of a variant get a kernel of their own, all
            others share the generic one
    always  every combination gets its own; the KEPT used last stay loaded, others are loaded again when they are needed
    never   all calls run the generic kernel

Kernels for certain sizes and generic ones round differently.  Under `auto` the kernel of a call depends on the calls
before it in the process.  Under `always` and `never` it does not, and results are the same, bit for bit, in every
process on a machine.

A specialised kernel computes by the op's definition, or by an algorithm of its spec (`opgen.compiler.algorithms`).  A
short one is run by the calling thread alone (`opgen.compiler.sharing`).

The policy is read at the first call of each kind.  `opgen.counters()` returns the number of kernels of each kind, and
of the kinds of calls that took them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from opgen.compiler.algorithms import mode
from opgen.diagnostics import CheckFailed, UserError, did_you_mean
from opgen.locks import BUILD
from opgen.runtime.call.call import Call, Check, Launch, without_memory
from opgen.runtime.call.counters import register
from opgen.runtime.call.operator import Operator
from opgen.runtime.call.shown import show

if TYPE_CHECKING:
    from opgen.compiler.limits import CheckedKernel
    from opgen.compiler.request import Compilation, OpVariant
    from opgen.compiler.sharing import Work
    from opgen.diagnostics.calls import ArgumentValueError
    from opgen.loop.nodes import Kernel
    from opgen.lower import Lowered
    from opgen.runtime.call.device_calls import DeviceCalls, DeviceLaunch
    from opgen.runtime.call.signatures import Signatures
    from opgen.runtime.devices.cuda_driver import Device
    from opgen.runtime.devices.device import CudaKernel
    from opgen.runtime.kernels.kernel import CompiledKernel
    from opgen.spec.call.environment import AttrStored, Environment
    from opgen.spec.model.model import Module, OpSpec

Policy = Literal["auto", "always", "never"]
Number: TypeAlias = "int | float | bool"
_K = TypeVar("_K")
_V = TypeVar("_V")
SPECIALIZATIONS = 64
"""Number of combinations of integers of a variant that get kernels of their own under the policy `auto`."""

KEPT = 512
"""Number of kernels for certain sizes that an op keeps loaded; beyond it, the least recently used quarter is dropped.

A kernel that a thread is running stays until it is done: the plan or handle that runs it holds it.
"""

_POLICIES: tuple[Policy, ...] = ("auto", "always", "never")


def policy() -> Policy:
    """Return the policy in OPGEN_SPECIALIZE."""
    word = os.environ.get("OPGEN_SPECIALIZE") or "auto"
    for known in _POLICIES:
        if word == known:
            return known
    hint = did_you_mean(word, _POLICIES)
    raise UserError(f"OPGEN_SPECIALIZE is '{word}', expected auto, always or never{f'; {hint}' if hint else ''}")


class Library:
    """The ops of a generated module.  The spec is read from the file beside the module when an op first runs."""

    def __init__(self, module_file: str, spec_file: str) -> None:
        self.path = Path(module_file).with_name(spec_file)
        self.module_name = ""
        """The module's name, which identifies its pickled operators; not known before the module is complete."""
        self.operators: dict[str, Operator] = {}
        self.generics: dict[str, Any] = {}
        """Finder of the operators of generic ops (`opgen.bindings.python.generic`)."""
        self.kernels: dict[str, Kernels] = {}
        self._lock = BUILD
        self._module: Module | None = None
        self._hash: str | None = None
        self._held = False

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        """Reduce to the name of its module, which another process imports."""
        found = None
        with contextlib.suppress(ImportError):
            found = import_module(self.module_name)
        if getattr(found, "_library", None) is not self:
            kept = f"cannot be pickled: no module that can be imported has it (it was made as '{self.module_name}')"
            raise TypeError(f"what is prepared of '{self.path}' {kept}; import the generated module, or opgen.load it")
        return _library_of, (self.module_name,)

    def module(self) -> Module:
        """Return the spec."""
        with self._lock:
            if self._module is None:
                from opgen.compiler import specs as models

                self._module = models.load(self.path, self.spec_hash())
            return self._module

    def hold(self, module: Module) -> None:
        """Take a spec that is already in memory, so that no file is read."""
        with self._lock:
            self._module = module
            self._held = True

    def spec_hash(self) -> str | None:
        """Return the sha256 of the spec's text; None if its file cannot be read."""
        with self._lock:
            if self._hash is None and not self._held:
                with contextlib.suppress(OSError):
                    self._hash = hashlib.sha256(self.path.read_bytes()).hexdigest()
            return self._hash

    def operator(
        self, name: str, check: Check, signatures: Signatures | None = None, title: str | None = None
    ) -> Operator:
        """Return the operator of an op, to be made once; `signatures` are those of its function, if it has several.

        `title` is the op's name in messages, if it differs from `name`.
        """
        kernels = self.kernels[name] = Kernels(self, name)
        made = self.operators[name] = Operator(
            name, check, kernels, kernels.device_calls, kernels.refuse, self.module, signatures, title
        )
        kernels.forget_plans = made.forget
        made.again = (_operator_of, (self, name))
        return made

    def show(self, names: Mapping[str, Any], **signed: str) -> None:
        """Set the signatures that the functions of the module show (`opgen.runtime.call.shown`)."""
        self.module_name = names["__name__"]
        show(names, signed)


def _library_of(module_name: str) -> object:
    """Return the library of a module that is imported."""
    return import_module(module_name)._library


def _operator_of(library: Library, name: str) -> Operator:
    """Return an operator of a library that was pickled."""
    return library.operators[name]


@dataclass
class _Variant:
    """One lowering of an op, and the kernels made of it."""

    source: OpVariant
    specialized: OrderedDict[tuple[object, ...], CompiledKernel] = field(default_factory=OrderedDict)
    generic: CompiledKernel | None = None
    work: Work | None = None
    on_device: OrderedDict[tuple[object, ...], CudaKernel] = field(default_factory=OrderedDict)

    @property
    def checked(self) -> CheckedKernel:
        return self.source.lowered()

    @property
    def lowered(self) -> Lowered:
        return self.checked.lowered


class Kernels:
    """The kernels of one op, found by call."""

    def __init__(self, library: Library, name: str) -> None:
        self.counters = register(name)
        self._library = library
        self._name = name
        self._variants: dict[tuple[object, ...], _Variant] = {}
        self._from_shelf: OrderedDict[str, CompiledKernel] = OrderedDict()
        self.forget_plans: Callable[[], None] = lambda: None
        self._lock = BUILD
        self._device_calls: DeviceCalls | None = None

    def device_calls(self) -> DeviceCalls:
        """Return the runner of the op's calls on CUDA devices."""
        with self._lock:
            if self._device_calls is None:
                from opgen.runtime.call.device_calls import DeviceCalls

                self._device_calls = DeviceCalls(self._name, self.on_device)
            return self._device_calls

    def refuse(
        self, call: Call | None, tensors: tuple[object, ...], rest: tuple[object, ...]
    ) -> ArgumentValueError | None:
        """Return the error of a call (None: it could not be made) whose integers or shapes cannot be computed."""
        from opgen.runtime.call.call import is_far

        if call is not None and not is_far(call):
            return None
        from opgen.runtime.call.refusals import refusal

        module = self._library.module()
        shaped = tensors if call is None else tuple(call.tensors.values())
        return refusal(module, module.op(self._name), shaped, rest)

    def on_device(self, call: Call, device: Device) -> DeviceLaunch:
        """Return the kernel for a call on a CUDA device; the policy of specialisation is the CPU's.

        Raises `DeviceUnavailableError` if its compiler is missing.
        """
        from opgen.runtime.call.device_calls import DeviceLaunch

        with self._lock:
            variant, values, environment = self._values(call)
            with self._noting():
                compiled = _compiled_for(device, variant, values, environment)
            if _let_go(variant.on_device) and self._device_calls is not None:
                self._device_calls.forget()
            left = {p.name: values[p.name] for p in compiled.program.kernel.parameters}
            return DeviceLaunch(compiled, tuple(b.name for b in variant.lowered.kernel.inputs), left)

    def __call__(self, call: Call) -> Launch:
        """Return the kernel for a call, with the call's numbers in place."""
        with self._lock:
            key = self._shelf_key(call)
            shelved = None if key is None else self._shelved(key)
            if shelved is not None:
                self.counters.specialized_plans += 1
                reads = tuple(b.name for b in shelved.kernel.inputs)
                return Launch(shelved.bind(()), reads, functools.partial(self.refused, without_memory(call)))
            return self._made(call, key)

    def _shelf_key(self, call: Call) -> str | None:
        """Return the key of a kernel made for just this call, if the policy allows one."""
        from opgen.runtime.call import index as shelf

        wanted = policy()
        if wanted == "never" or (wanted == "auto" and len(self._from_shelf) >= SPECIALIZATIONS):
            return None
        spec = self._library.spec_hash()
        return None if spec is None else shelf.key_of(spec, self._name, call, mode())

    def _shelved(self, key: str) -> CompiledKernel | None:
        """Return the kernel that was made for just this call, by this process or an earlier one."""
        from opgen.runtime.call import index as shelf

        if key not in self._from_shelf and (found := shelf.take(key)) is not None:
            self._keep(self._from_shelf, key, found)
            self.counters.specialized += 1
        return _used(self._from_shelf, key)

    def _keep(self, kernels: OrderedDict[_K, CompiledKernel], key: _K, compiled: CompiledKernel) -> None:
        """Remember a kernel; beyond the limit, forget some, and the plans that hold them."""
        kernels[key] = compiled
        if _let_go(kernels):
            self.forget_plans()

    def _made(self, call: Call, key: str | None) -> Launch:
        from opgen.runtime.call import index as shelf

        variant, values, environment = self._values(call)
        compiled = self._compiled(variant, values, environment)
        if key is not None and not compiled.kernel.parameters:
            shelf.put(key, compiled)
            self._keep(self._from_shelf, key, compiled)
        alone = compiled is variant.generic and compiled.parallel and _is_small(variant, values)
        bound = compiled.bind([values[p.name] for p in compiled.kernel.parameters], alone)
        reads = tuple(b.name for b in variant.lowered.kernel.inputs)
        return Launch(bound, reads, functools.partial(self.refused, without_memory(call)))

    def refused(self, call: Call, failed: CheckFailed) -> ArgumentValueError:
        """Return the error of a call for which a check of the kernel fails."""
        from opgen.runtime.call.elements import refused

        module = self._library.module()
        op = module.op(self._name)
        return refused(op, environment_of(module, op, call), failed)

    def _values(self, call: Call) -> tuple[_Variant, dict[str, Number], Environment]:
        """Return the variant of a call, the value of each parameter of its generic kernel, and the call itself."""
        module = self._library.module()
        op = module.op(self._name)
        variant = self._variant(module, op, call)
        environment = environment_of(module, op, call)
        return variant, variant.checked.values(environment), environment

    def _variant(self, module: Module, op: OpSpec, call: Call) -> _Variant:
        from opgen.compiler.request import OpVariant
        from opgen.lower import Variant, structural_attrs

        words = {a.name: call.words[a.name] for a in structural_attrs(op)}
        key = (*call.types.items(), *words.items())
        if key not in self._variants:
            self._variants[key] = _Variant(OpVariant(module, op, Variant(call.types, words)))
        return self._variants[key]

    def _compiled(self, variant: _Variant, values: Mapping[str, Number], call: Environment) -> CompiledKernel:
        kernel = variant.lowered.kernel
        integers = _integers(kernel, values)
        key = (mode(), *integers.values())
        found = _used(variant.specialized, key)
        if found is None and not _room(len(variant.specialized)):
            return self._generic(variant)
        self.counters.specialized_plans += 1
        if found is None:
            found = self._build(variant, call)
            self._keep(variant.specialized, key, found)
            self.counters.specialized += 1
        return found

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        """Count the schedules that fail in the block."""
        from opgen.schedule.fallback import noting

        with noting() as noted:
            yield
        self.counters.fallbacks += len(noted)

    def _generic(self, variant: _Variant) -> CompiledKernel:
        self.counters.generic_plans += 1
        if variant.generic is None:
            variant.generic = self._build(variant, None)
            self.counters.generic += 1
        return variant.generic

    def _build(self, variant: _Variant, call: Environment | None) -> CompiledKernel:
        """Return the kernel for a call, or for all sizes."""
        from opgen.compiler import toolchain
        from opgen.compiler.request import Compilation
        from opgen.loop.analysis.bounds import kept_proofs

        with kept_proofs(), self._noting():
            return build(Compilation(variant.source, toolchain.host(), call, algorithms=mode()))


def _room(count: int) -> bool:
    """Return True if one more combination of integers gets a kernel of its own, after `count` of them."""
    wanted = policy()
    return wanted == "always" or (wanted == "auto" and count < SPECIALIZATIONS)


def _is_small(variant: _Variant, values: Mapping[str, Number]) -> bool:
    """Return True if a call of a variant's generic kernel is for the calling thread alone."""
    from opgen.compiler import toolchain
    from opgen.compiler.sharing import work_of
    from opgen.runtime.kernels.run import is_small

    if variant.work is None:
        variant.work = work_of(variant.lowered.kernel, toolchain.host().machine)
    return is_small(variant.work, values)


def _used(kernels: OrderedDict[_K, _V], key: _K) -> _V | None:
    """Return the kernel kept under a key, and mark it as used last."""
    found = kernels.get(key)
    if found is not None:
        kernels.move_to_end(key)
    return found


def _let_go(kernels: OrderedDict[_K, _V]) -> bool:
    """Forget a quarter of the kernels if there are too many; return True if there were."""
    if len(kernels) <= KEPT:
        return False
    for _ in range(max(1, KEPT // 4)):
        kernels.popitem(last=False)
    return True


def _integers(kernel: Kernel, values: Mapping[str, Number]) -> dict[str, Number]:
    return {p.name: values[p.name] for p in kernel.parameters if not p.dtype.is_float}


def _compiled_for(device: Device, variant: _Variant, values: Mapping[str, Number], call: Environment) -> CudaKernel:
    """Return a variant's kernel for a device: for just these integers if they have or may have one, else generic."""
    integers = _integers(variant.lowered.kernel, values)
    own, shared = (device.ordinal, *integers.values()), (device.ordinal,)
    found = _used(variant.on_device, own)
    if found is not None:
        return found
    if _room(sum(key != shared for key in variant.on_device)):
        found = variant.on_device[own] = build_for(device, variant.source, call)
        return found
    if shared not in variant.on_device:
        variant.on_device[shared] = build_for(device, variant.source, None)
    return variant.on_device[shared]


def environment_of(module: Module, op: OpSpec, call: Call) -> Environment:
    """Return the call as the shape language sees it: lists and shapes in logical order."""
    from opgen.spec.call.arguments import logical_axes
    from opgen.spec.call.environment import Environment

    words: dict[str, AttrStored] = dict(call.words)
    attrs: dict[str, AttrStored] = dict(words)
    for name, value in call.attributes.items():
        attr = op.attr(name)
        if isinstance(value, tuple) and value and attr.layout is not None:
            axes = logical_axes(op, attr.layout, words, attr.shape[0])
            width = len(value) // attr.shape[0]
            value = tuple(v for axis in axes for v in value[axis * width : (axis + 1) * width])
        attrs[name] = value
    shapes = {
        t.name: tuple(call.tensors[t.name].shape[axis] for axis in logical_axes(op, t.layout, words, t.rank))
        for t in op.tensors
    }
    return Environment(op, {f.name: f for f in module.functions}, call.integers, attrs, shapes)


def build(request: Compilation) -> CompiledKernel:
    """Return the kernel of a request, loaded: built if it is not in the cache."""
    from opgen.compiler.make import artifact
    from opgen.runtime.kernels.kernel import load

    return load(artifact(request))


def build_for(device: Device, source: OpVariant, call: Environment | None) -> CudaKernel:
    """Return the kernel of an op for a CUDA device, for the sizes of a call or for all, loaded."""
    from opgen.compiler.make import artifact
    from opgen.compiler.request import Compilation, Cuda
    from opgen.runtime.devices.device import CudaKernel

    target = Cuda(device.capability)
    return CudaKernel(artifact(Compilation(source, target, call, algorithms="off", schedule="automatic")), device)
