"""The one lock under which code is built and loaded, kept whole across `fork`.

LLVM is used by one thread at a time (llvmlite takes a lock of its own round every call), so building under one lock
loses nothing, and gives "built once, however many threads ask" for free.  The lock is held while the process forks:
a child never starts with a half-made kernel or with a lock whose owner does not exist in it.
"""

from __future__ import annotations

import os
import threading

BUILD = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=BUILD.acquire, after_in_parent=BUILD.release, after_in_child=BUILD.release)
