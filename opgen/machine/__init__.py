"""The machine that a schedule is made for: its registers, caches and rates, as numbers that a cost can be made of."""

from opgen.machine.model import Cache, Machine, typical

__all__ = ["Cache", "Machine", "typical"]
