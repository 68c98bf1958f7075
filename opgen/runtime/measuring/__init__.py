"""Measurements: rates of the machine, times of schedules, and the report of `opgen doctor`."""
