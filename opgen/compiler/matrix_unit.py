"""The registers of a matrix unit (AMX), which a process must request from the system before it may use them.

The answer holds for all threads of the process, and for its forks.  Linux refuses if a thread's signal stack is too
small to save the registers.
"""

from __future__ import annotations

import functools
import sys

_ARCH_PRCTL = 158
"""The system call's number on x86-64."""
_REQUEST = 0x1023
"""ARCH_REQ_XCOMP_PERM, of Linux 5.16 and later: request a component of the processor's state by its number."""
_TILE_DATA = 18


@functools.cache
def granted() -> bool:
    """Return True if this process may use the registers; request them the first time."""
    import ctypes  # neither is needed to inspect the cache
    import platform

    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False

    call = ctypes.CDLL(None).syscall
    call.restype = ctypes.c_long
    return int(call(*map(ctypes.c_long, (_ARCH_PRCTL, _REQUEST, _TILE_DATA)))) == 0
