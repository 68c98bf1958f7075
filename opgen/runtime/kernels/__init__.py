"""Kernels in the process: loaded, bound to their parameters, and launched."""
