"""opgen's version, as pyproject.toml has it.

Asking the installed package for it takes 20 ms, which is too long where a kernel is only to be found in the cache.
"""

VERSION = "0.1.0"
