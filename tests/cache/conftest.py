"""Every test of the cache has a kernel cache of its own."""

from tests.support.kernel_cache import cache_directory

__all__ = ["cache_directory"]
