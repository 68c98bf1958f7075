"""Malformed calls of a C library."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import subprocess
from ctypes import POINTER, byref, c_char_p, c_int64, c_size_t, c_void_p, cast
from pathlib import Path
from typing import Any

import numpy as np

from opgen.bindings.c.build import Options, build, host_targets
from opgen.bindings.c.names import STRUCT_SIZE, OpNames, spellings
from opgen.grad.load import load
from opgen.spec.model.model import OpSpec
from tests.verification.attack.finding import FoundError, Target
from tests.verification.attack.targets.guarded import Guarded
from tests.verification.attack.targets.ops import SPEC, right_call
from tools.c_library import Tensor, attributes_begun

SANITIZERS = "-fsanitize=undefined -fno-sanitize-recover=all"
OK, INVALID, OUT_OF_MEMORY = 0, 1, 2
NUMBERS = (0, 1, -1, 2, 3, 7, 8, 9, 64, 255, 65535, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 40, (1 << 63) - 1, -(1 << 63))


class CCalls(Target):
    """Malformed calls of the C library: arrays between guard pages, its code checked for undefined behaviour."""

    name = "c_calls"
    batch = 5000
    seconds = 20.0
    memory = 2 << 30

    def prepare(self) -> None:
        """Build the library in a process of its own."""
        (self.folder / "attacked.op").write_text(SPEC)
        self.module = load(self.folder / "attacked.op")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                compiler = os.environ.get("CC", "cc")
                if _can(compiler, SANITIZERS, self.folder):
                    os.environ["CC"] = f"{compiler} {SANITIZERS}"
                build(self.module, "attacked.op", self.folder / "lib", Options(host_targets()[:1], jobs=1))
                code = 0
            finally:
                os._exit(code)
        if os.waitpid(child, 0)[1]:
            raise FoundError("the library cannot be built", "")
        self._dll: ctypes.CDLL | None = None

    def attempt(self, choose: random.Random) -> None:
        if self._dll is None:
            self._dll = ctypes.CDLL(str(self.folder / "lib" / "lib" / "libattacked.so"))
            self._dll.attacked_last_error.restype = c_char_p
        call = right_call(choose)
        op = next(o for o in self.module.ops if o.function_name == call.op)
        names = OpNames(op, "attacked")
        keep: list[Any] = []
        tensors = [self._tensor(call.arguments[t.name], choose, keep) for t in op.tensors]
        outputs = [self._output(op, call.arguments, k, choose, keep) for k in range(len(op.outputs))]
        attributes = self._attributes(op, names, call.arguments, choose, keep)
        pointers = [None if choose.random() < 0.01 else byref(t) for t in (*tensors, *outputs)]
        given: list[Any] = [
            *pointers[: len(tensors)],
            None if choose.random() < 0.01 else byref(attributes),
            *pointers[len(tensors) :],
        ]
        function = getattr(self._dll, names.function)
        if choose.random() < 0.2:
            room = Guarded(choose.choice((0, 1, 64, 4096)), choose.random() < 0.5)
            keep.append(room)
            function = getattr(self._dll, names.with_workspace)
            given += [c_void_p(choose.choice((None, room.address))), c_size_t(room.bytes.size)]
        status = function(*given)
        said = self._dll.attacked_last_error()
        if status not in (OK, INVALID, OUT_OF_MEMORY):
            raise FoundError(f"status {status}", str(call))
        if status == INVALID and not said:
            raise FoundError("refused without a word", str(call))

    def _tensor(self, array: np.ndarray[Any, Any], choose: random.Random, keep: list[Any]) -> Tensor:
        """A descriptor of a copy between guard pages, with up to two of its fields wrong."""
        memory = Guarded(array.nbytes, choose.random() < 0.5)
        memory.bytes[:] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        found = Tensor.without_data(array.shape, array.dtype, memory.address)
        keep += [memory, found]
        for _ in range(choose.choice((0, 0, 0, 1, 2))):
            _spoil(found, array.shape, choose, keep)
        return found

    def _output(self, op: OpSpec, given: dict[str, Any], k: int, choose: random.Random, keep: list[Any]) -> Tensor:
        """A result of the right shape, more or less."""
        x = given.get("a", given.get("x"))
        assert isinstance(x, np.ndarray)
        shape = list(x.shape)
        if op.name == "Product":
            shape = [given["a"].shape[0], given["b"].shape[1]]
        elif op.name == "Windows":
            axis = 2 if given["order"] == "NCL" else 1
            shape[axis] = -(-shape[axis] // given["strides"][axis])
        elif k == 1:
            shape = shape[:1]
        return self._tensor(np.zeros(shape, x.dtype), choose, keep)

    def _attributes(
        self, op: OpSpec, names: OpNames, given: dict[str, Any], choose: random.Random, keep: list[Any]
    ) -> ctypes.Structure:
        assert self._dll is not None
        found = attributes_begun(self._dll, op, names)
        for attr in op.attrs:
            for name in spellings(attr):
                value = given.get(name)
                if attr.shape:
                    values = (c_int64 * 3)(*(value or (1, 1, 1)))
                    if choose.random() < 0.1:
                        values[choose.randrange(3)] = choose.choice(NUMBERS)
                    keep.append(values)
                    setattr(
                        found, names.fields[name], None if choose.random() < 0.02 else cast(values, POINTER(c_int64))
                    )
                    count = choose.choice((0, 1, 2, -1)) if choose.random() < 0.05 else 3
                    setattr(found, names.lengths[name], count)
                elif attr.kind == "int":
                    number = choose.choice(NUMBERS) if choose.random() < 0.1 else value
                    setattr(found, names.fields[name], c_int64(number or 0))
                elif attr.kind == "float":
                    setattr(found, names.fields[name], choose.choice((float("nan"), 1e308, value or 0.0)))
                else:
                    text = (
                        choose.choice((b"", b"x" * 500, b"\xff", b"%n%s", None))
                        if choose.random() < 0.1
                        else str(value).encode()
                    )
                    setattr(found, names.fields[name], text)
                    setattr(found, names.lengths[name], choose.choice((-1, -1, len(text or b""), 0, -2)))
        if op.attrs and choose.random() < 0.03:
            setattr(
                found,
                STRUCT_SIZE,
                choose.choice((0, 8, 9, ctypes.sizeof(found) - 8, ctypes.sizeof(found) + 8, *NUMBERS)) % 2**64,
            )
        return found


def _spoil(tensor: Tensor, shape: tuple[int, ...], choose: random.Random, keep: list[Any]) -> None:
    """Make one field of a descriptor wrong, or unusual."""
    match choose.randrange(11):
        case 0:
            tensor.data = choose.choice((None, 1, tensor.data + 1 if tensor.data else None))
        case 1:
            tensor.device_type = choose.choice((0, 2, 3, 10, -1))
        case 2:
            tensor.ndim = choose.choice((-1, 0, len(shape) + 1, 9, 64, (1 << 31) - 1, -(1 << 31)))
            dims = (c_int64 * 64)(*[choose.choice((1, 2, 1 << 40)) for _ in range(64)])
            tensor.shape = cast(dims, POINTER(c_int64))
            keep.append(dims)
        case 3:
            tensor.code = choose.randrange(256)
        case 4:
            tensor.bits = choose.choice((0, 1, 8, 16, 32, 64, 255))
        case 5:
            tensor.lanes = choose.choice((0, 2, 65535))
        case 6:
            tensor.shape = None
        case 7:
            dims = (c_int64 * max(1, len(shape)))(*shape)
            at = choose.randrange(len(dims))  # never what fits the other tensors: it would be the caller's lie
            dims[at] = choose.choice([n for n in NUMBERS if n < dims[at] or n > 64])
            tensor.shape = cast(dims, POINTER(c_int64))
            keep.append(dims)
        case 8:
            within = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]  # larger ones would be the caller's lie
            strides = (c_int64 * max(1, len(shape)))(*[choose.choice((0, 1, n, n, n)) if n else 0 for n in within])
            tensor.strides = cast(strides, POINTER(c_int64))
            keep.append(strides)
        case 9:
            tensor.byte_offset = choose.choice((0, 1))
        case 10:
            code, bits = choose.choice([(2, 16), (2, 32), (2, 64), (0, 32), (4, 16)])
            tensor.code, tensor.bits = code, bits


def _can(compiler: str, flags: str, folder: Path) -> bool:
    """Whether the compiler has these flags, and what they need."""
    source = folder / "try.c"
    source.write_text("int f(int a) { return a + 1; }\n")
    if shutil.which(compiler.split()[0]) is None:
        return False
    command = [*compiler.split(), *flags.split(), "-shared", "-fPIC", str(source), "-o", str(folder / "try.so")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return False
    try:
        ctypes.CDLL(str(folder / "try.so"))
    except OSError:
        return False
    return True
