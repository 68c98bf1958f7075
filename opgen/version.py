"""opgen's version, as pyproject.toml has it.

Querying the installed package for it takes 20 ms, which is too long where a kernel is only looked up in the cache.
"""

VERSION = "0.1.0"
