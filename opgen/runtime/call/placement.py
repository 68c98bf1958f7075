"""Placement of calls: on the CPU, or on a CUDA device to which numpy arrays are copied.

    with opgen.device("cuda"):      # or "cuda:1"; "cpu" inside of it is the CPU again
        y = nn_ops.op(x)            # x is copied to the device, y comes back as a numpy array

Outside of such blocks the environment variable OPGEN_DEVICE decides (read when opgen's runtime is imported).  A call
with tensors on a device runs there in any case.  A choice holds in the thread (more exactly, in the context:
`contextvars`) that made it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from opgen.diagnostics import UserError, did_you_mean
from opgen.diagnostics.describe import describe, tensor
from opgen.dtypes import DTYPES
from opgen.runtime.memory.buffers import dtype_of

if TYPE_CHECKING:
    from opgen.runtime.devices.arrays import DeviceArray
    from opgen.runtime.devices.cuda_driver import Device

VARIABLE = "OPGEN_DEVICE"

_outside = os.environ.get(VARIABLE, "")
_chosen: ContextVar[str | None] = ContextVar("opgen_device", default=None if _outside in ("", "cpu") else _outside)

chosen = _chosen.get
"""The chosen device, unchecked; None is the CPU.  Every call reads it, so it is the bare lookup."""


def ordinal_of(word: object, asks: str) -> int | None:
    """Return the number of the CUDA device that a word means; None is the CPU.  `asks` names the word's setting."""
    if word == "cpu":
        return None
    found = re.fullmatch(r"cuda(?::(\d{1,4}))?", word) if isinstance(word, str) else None
    if found is None:
        hint = did_you_mean(word, ["cpu", "cuda"]) if isinstance(word, str) else ""
        raise UserError(f"{asks}: expected cpu, cuda or cuda:N, given {describe(word)}{f'; {hint}' if hint else ''}")
    return int(found[1] or 0)


def chosen_device() -> Device | None:
    """Return the device on which calls with numpy arrays run; None is the CPU.

    Raises UserError for an unknown word in the environment, `DeviceUnavailableError` if the device does not exist.
    """
    word = chosen()
    ordinal = None if word is None else ordinal_of(word, VARIABLE)
    if ordinal is None:
        return None
    from opgen.runtime.devices import cuda_driver

    return cuda_driver.device(ordinal)


@contextmanager
def device(name: str) -> Iterator[None]:
    """Run the calls inside on a device: `cpu`, `cuda` (the first CUDA device) or `cuda:N`.

    Numpy arrays and lists are copied there, results come back as numpy arrays.  Raises UserError for another name, and
    `DeviceUnavailableError` if the device does not exist.
    """
    token = _chosen.set(_checked(name))
    try:
        yield
    finally:
        _chosen.reset(token)


def _checked(name: str) -> str | None:
    ordinal = ordinal_of(name, "opgen.device")
    if ordinal is None:
        return None
    from opgen.runtime.devices import cuda_driver

    cuda_driver.device(ordinal)
    return name


def to_device(array: npt.ArrayLike, name: str = "cuda") -> DeviceArray:
    """Return a copy of an array on a CUDA device (`cuda`, or `cuda:N`), for calls that run there in place.

    `DeviceArray.to_numpy()` copies it back; other libraries read it in place (`torch.from_dlpack`).  Raises UserError
    for another name or an unsupported type, and `DeviceUnavailableError` if the device does not exist.
    """
    ordinal = ordinal_of(name, "opgen.to_device")
    if ordinal is None:
        raise UserError("opgen.to_device: expected cuda or cuda:N, given 'cpu'")
    from opgen.runtime.devices import cuda_driver
    from opgen.runtime.devices.arrays import DeviceArray

    given = np.asarray(array)
    dtype = dtype_of(given)
    if dtype is None:
        raise UserError(f"opgen.to_device: expected one of {', '.join(DTYPES)}, given {tensor(given)}")
    return DeviceArray.from_numpy(cuda_driver.device(ordinal), given, dtype)
