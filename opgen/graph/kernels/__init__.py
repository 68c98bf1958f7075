"""Kernels of graph nodes: requests, symbolic sizes, parallel builds, interpretation."""
