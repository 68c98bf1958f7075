"""Machines that schedules are made for: registers, caches and rates, as numbers to estimate costs from."""

from opgen.machine.model import Cache, Machine, typical

__all__ = ["Cache", "Machine", "typical"]
