"""Errors of devices and their compilers."""

from __future__ import annotations

from opgen.diagnostics import OpgenError, UserError


class DeviceUnavailableError(UserError):
    """The request needs a CUDA device, driver or compiler that this machine does not have."""


class DeviceError(OpgenError):
    """The CUDA driver refused a call.  `code` is its number, `name` its name (CUDA_ERROR_...)."""

    def __init__(self, call: str, code: int, name: str, text: str) -> None:
        self.call = call
        self.code = code
        self.name = name
        self.text = text
        super().__init__(f"{call}: {name} ({code}): {text}")

    def __reduce__(self) -> tuple[type[DeviceError], tuple[str, int, str, str]]:
        return type(self), (self.call, self.code, self.name, self.text)


class DeviceMemoryError(DeviceError, MemoryError):
    """The device has no memory left."""
