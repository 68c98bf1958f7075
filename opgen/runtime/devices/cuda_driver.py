"""The CUDA driver API through ctypes: only the functions that running kernels needs.

One table has every function's signature, from which its argument types are declared; each returns a CUresult.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

from opgen.diagnostics.devices import DeviceError, DeviceMemoryError, DeviceUnavailableError
from opgen.locks import cached_property
from opgen.runtime.devices.host import Sizes

LIBRARIES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")

_Int, _Handle, _Text = ctypes.POINTER(c_int), ctypes.POINTER(c_void_p), ctypes.POINTER(c_char_p)
_Address = ctypes.POINTER(c_uint64)

SIGNATURES: dict[str, tuple[type, ...]] = {
    "cuInit": (c_uint,),
    "cuGetErrorName": (c_int, _Text),
    "cuGetErrorString": (c_int, _Text),
    "cuDriverGetVersion": (_Int,),
    "cuDeviceGetCount": (_Int,),
    "cuDeviceGet": (_Int, c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (_Int, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (_Handle, c_int),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (_Handle,),
    "cuModuleLoadData": (_Handle, c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (_Handle, c_void_p, c_char_p),
    "cuMemAlloc_v2": (_Address, c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuStreamSynchronize": (c_void_p,),
    "cuLaunchKernel": (c_void_p, *([c_uint] * 7), c_void_p, ctypes.POINTER(c_void_p), ctypes.POINTER(c_void_p)),
}

_OUT_OF_MEMORY = 2
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_POINTER_DEVICE_ORDINAL = 9


class Driver:
    """The driver's library, initialised.  Raises `OSError` if it is missing, `DeviceError` if it does not start."""

    def __init__(self, path: str) -> None:
        self.path = path
        library = ctypes.CDLL(path)
        self._functions: dict[str, Callable[..., int]] = {}
        for name, arguments in SIGNATURES.items():
            function = library[name]
            function.argtypes = list(arguments)
            function.restype = c_int
            self._functions[name] = function
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the table.  Raises `DeviceError` unless it succeeds."""
        code = self._functions[name](*arguments)
        if code == 0:
            return
        kind = DeviceMemoryError if code == _OUT_OF_MEMORY else DeviceError
        raise kind(name, code, self._text("cuGetErrorName", code), self._text("cuGetErrorString", code))

    def _text(self, function: str, code: int) -> str:
        text = c_char_p()
        if self._functions[function](code, ctypes.byref(text)) or text.value is None:
            return "unknown error"
        return text.value.decode(errors="replace")

    def device_count(self) -> int:
        count = c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def version(self) -> tuple[int, int]:
        """Return the newest CUDA version that the driver supports."""
        number = c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return number.value // 1000, number.value % 1000 // 10


class Device:
    """A CUDA device and its primary context, which other libraries in the process share."""

    def __init__(self, driver: Driver, ordinal: int = 0) -> None:
        count = driver.device_count()
        if not 0 <= ordinal < count:
            raise DeviceUnavailableError(f"there is no CUDA device {ordinal}: {count} found")
        self.driver = driver
        self.ordinal = ordinal
        handle = c_int()
        driver.call("cuDeviceGet", ctypes.byref(handle), ordinal)
        self._handle = handle.value
        self._context = c_void_p()
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._handle)

    @property
    def name(self) -> str:
        text = ctypes.create_string_buffer(256)
        self.driver.call("cuDeviceGetName", text, len(text), self._handle)
        return text.value.decode(errors="replace")

    @cached_property
    def capability(self) -> tuple[int, int]:
        """The compute capability, such as (9, 0)."""
        return self._attribute(_CAPABILITY_MAJOR), self._attribute(_CAPABILITY_MINOR)

    def _attribute(self, attribute: int) -> int:
        value = c_int()
        self.driver.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, self._handle)
        return value.value

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the device's context this thread's current one inside, and restore the previous one afterwards."""
        self.driver.call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self.driver.call("cuCtxPopCurrent_v2", ctypes.byref(c_void_p()))

    # The methods below require the context to be current.

    def load(self, image: bytes) -> c_void_p:
        """Return a module from a cubin or PTX."""
        module = c_void_p()
        self.driver.call("cuModuleLoadData", ctypes.byref(module), image)
        return module

    def unload(self, module: c_void_p) -> None:
        self.driver.call("cuModuleUnload", module)

    def function(self, module: c_void_p, name: str) -> c_void_p:
        function = c_void_p()
        self.driver.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def allocate(self, size: int) -> int:
        """Return the address of `size` bytes (at least 1) of device memory."""
        address = c_uint64()
        self.driver.call("cuMemAlloc_v2", ctypes.byref(address), max(1, size))
        return address.value

    def free(self, address: int) -> None:
        self.driver.call("cuMemFree_v2", address)

    def copy_in(self, address: int, source: int, size: int, stream: int = 0) -> None:
        """Copy from host memory to the device, in the stream's order."""
        if size:
            self.driver.call("cuMemcpyHtoDAsync_v2", address, source, size, stream)

    def copy_out(self, target: int, address: int, size: int, stream: int = 0) -> None:
        """Copy from the device to host memory, in the stream's order; the copy is complete after `synchronize`."""
        if size:
            self.driver.call("cuMemcpyDtoHAsync_v2", target, address, size, stream)

    def synchronize(self, stream: int = 0) -> None:
        self.driver.call("cuStreamSynchronize", stream)

    def owner(self, address: int) -> int | None:
        """Return the ordinal of the device that owns an address; None if it is not the driver's memory."""
        ordinal = c_int(-1)
        try:
            self.driver.call("cuPointerGetAttribute", ctypes.addressof(ordinal), _POINTER_DEVICE_ORDINAL, address)
        except DeviceError:
            return None
        return ordinal.value

    def launch(
        self, function: c_void_p, grid: Sizes, block: Sizes, arguments: ctypes.Array[c_void_p], stream: int = 0
    ) -> None:
        """Launch a function; `arguments` point to its arguments."""
        self.driver.call("cuLaunchKernel", function, *grid, *block, 0, stream, arguments, None)


@functools.lru_cache(maxsize=1)
def driver() -> Driver | None:
    """Return this machine's driver, or None if it has none that starts."""
    for name in LIBRARIES:
        try:
            return Driver(name)
        except (OSError, AttributeError, DeviceError):
            continue
    return None


@functools.lru_cache(maxsize=8)
def device(ordinal: int = 0) -> Device:
    """Return a device of this machine.  Raises `DeviceUnavailableError`."""
    found = driver()
    if found is None:
        raise DeviceUnavailableError("there is no CUDA driver on this machine (libcuda.so.1 does not load or start)")
    return Device(found, ordinal)


def cuda_available() -> bool:
    """Return True if there is a driver and at least one device."""
    found = driver()
    if found is None:
        return False
    try:
        return found.device_count() > 0
    except DeviceError:
        return False
